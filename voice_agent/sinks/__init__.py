"""Where speech goes: files, memory, the speaker, a function, a WebSocket, a telephone line, a WebRTC peer.

``open_sink`` makes one from a word on a command line.
"""

from __future__ import annotations

from voice_agent.sinks.base import BaseSink, Sink
from voice_agent.sinks.callback import CallbackSink
from voice_agent.sinks.file import FileSink
from voice_agent.sinks.memory import MemorySink
from voice_agent.sinks.opening import open_sink
from voice_agent.sinks.speaker import SpeakerSink
from voice_agent.sinks.tee import TeeSink
from voice_agent.sinks.telephony import TelephoneSink
from voice_agent.sinks.webrtc import WebRtcSink
from voice_agent.sinks.websocket import WebSocketSink

__all__ = [
    "BaseSink",
    "CallbackSink",
    "FileSink",
    "MemorySink",
    "Sink",
    "SpeakerSink",
    "TeeSink",
    "TelephoneSink",
    "WebRtcSink",
    "WebSocketSink",
    "open_sink",
]

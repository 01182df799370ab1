"""Speech engines besides our own, behind the same Protocol (``voice_agent.protocols.Synthesizer``)."""

from __future__ import annotations

from voice_agent.synthesizers.command import CommandSynthesizer
from voice_agent.synthesizers.function import FunctionSynthesizer
from voice_agent.synthesizers.openai_speech import OpenAISpeech
from voice_agent.synthesizers.session import QueueSession, QueueSynthesizer, Sound

__all__ = ["CommandSynthesizer", "FunctionSynthesizer", "OpenAISpeech", "QueueSession", "QueueSynthesizer", "Sound"]

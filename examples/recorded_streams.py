"""Speaks recorded LLM streams, with the pauses they had, into one WAV file, and draws what was said.

    python examples/recorded_streams.py [FOLDER]      (default: out)

The streams are real wire formats: OpenAI chat and responses, Anthropic, Ollama, raw SSE, plain tokens. Nothing but the
embedded voice is needed: no key, no server, no sound card.
"""

from __future__ import annotations

import asyncio
import json
import sys
import wave
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from tts_engine.scheduler import Scheduler
from voice_agent import speak
from voice_agent.cli.timeline import show_timeline
from voice_agent.errors import SaylineError, SourceError
from voice_agent.sinks.file import FileSink
from voice_agent.turn import TurnConfig

STREAMS = Path(__file__).parent.parent / "tests" / "cases" / "llm_streams"
NAMES = (
    "openai_chat_basic",
    "openai_chat_tools_between",
    "openai_responses_reasoning_tool",
    "anthropic_markdown_emoji",
    "sse_openai_cut_reads",
    "ollama_generate_no_stop",
    "openai_chat_error_mid_sentence",
    "text_split_emoji_and_tag",
)


async def replay(name: str, case: dict[str, Any]) -> AsyncIterator[Any]:
    """The chunks of a recorded stream, each after the wait that was recorded."""
    lines = (STREAMS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    for line, delay_ms in zip(lines, case["delay_ms"], strict=True):
        await asyncio.sleep(delay_ms / 1000)
        yield json.loads(line)


def draw(path: Path, picture: Path) -> None:
    """Waveform and spectrogram of a WAV file."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with wave.open(str(path)) as file:
        rate = file.getframerate()
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768
    figure, (upper, lower) = pyplot.subplots(2, 1, figsize=(14, 6), sharex=True, layout="constrained")
    upper.plot(np.arange(len(samples)) / rate, samples, linewidth=0.3)
    upper.set(ylabel="amplitude", title=path.name)
    lower.specgram(samples + 1e-6, NFFT=600, Fs=rate, noverlap=450, vmin=-140)
    lower.set(xlabel="seconds", ylabel="Hz")
    figure.savefig(picture, dpi=110)
    pyplot.close(figure)


async def main(folder: Path) -> None:
    path = folder / "demo.wav"
    engine = Scheduler()
    engine.start()
    try:
        async with FileSink(path) as sink:
            for name in NAMES:
                case = yaml.safe_load((STREAMS / f"{name}.yaml").read_text(encoding="utf-8"))
                config = TurnConfig(format="text" if case["format"] == "text" else None)
                try:
                    show_timeline(await speak(replay(name, case), sink, config=config, synthesizer=engine), name)
                except SourceError as error:
                    print(f"{name}: spoken up to where the stream broke ({error})", file=sys.stderr)
    finally:
        engine.close()
    print(path)
    try:
        draw(path, path.with_suffix(".png"))
        print(path.with_suffix(".png"))
    except ImportError:
        print("no picture: pip install 'sayline[plot]'", file=sys.stderr)


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
    try:
        target.mkdir(parents=True, exist_ok=True)
        asyncio.run(main(target))
    except (OSError, SaylineError) as error:
        sys.exit(f"error: {error}")

"""``sayline doctor``: what works on this machine, and what to install for the rest."""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
import time
from dataclasses import asdict, dataclass

from voice_agent.cli.running import print_json
from voice_agent.errors import DeviceError, SaylineError


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked. ``needed``: Sayline cannot speak without it. ``advice``: what to do if it is not ok."""

    what: str
    ok: bool
    detail: str
    needed: bool = False
    advice: str = ""


def examine(json: bool) -> int:
    """Checks, prints, and gives the exit code: 0 if Sayline can speak here, 5 if not."""
    findings = _examine()
    if json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            mark = "ok  " if finding.ok else "FAIL" if finding.needed else "--  "
            print(f"{mark} {finding.what}: {finding.detail}")
            if not finding.ok and finding.advice:
                print(f"     {finding.advice}")
    return 0 if all(finding.ok for finding in findings if finding.needed) else 5


def _examine() -> list[Finding]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    version = platform.python_version()
    return [
        Finding("Python", sys.version_info >= (3, 11), version, needed=True, advice="install Python 3.11 or newer"),
        Finding("Machine", True, f"{platform.system()} {platform.machine()}, {cores} cores"),
        *_voice(),
        _speaker(),
        _llm(),
        _package("Pictures of speech", "matplotlib", "plot"),
        _package("Speech recognition", "faster_whisper", "stt"),
        _package("Echo canceller", "livekit", "aec"),
        _package("Server", "fastapi", "server"),
    ]


def _voice() -> list[Finding]:
    """Loads the embedded voice and speaks a sentence in each language."""
    try:
        started_s = time.perf_counter()
        from tts_engine.engine import Engine
        from tts_engine.types import Utterance

        engine = Engine.load()
        loaded_s = time.perf_counter() - started_s
        found = [Finding("Embedded voice", True, f"whole and loaded in {loaded_s:.2f} s", needed=True)]
        for name, text in (("English", "This is a test."), ("Chinese", "这是一次测试。")):
            for chunk in engine.speak(Utterance(text)):
                assert chunk.format.sample_rate
            started_s = time.perf_counter()
            first_s = 0.0
            audio_s = 0.0
            for chunk in engine.speak(Utterance(text)):
                first_s = first_s or time.perf_counter() - started_s
                audio_s += chunk.duration_s
            factor = (time.perf_counter() - started_s) / audio_s
            detail = f"first packet after {1000 * first_s:.0f} ms, real-time factor {factor:.3f}"
            found.append(Finding(f"{name} speech", factor < 1, detail, needed=True, advice="this machine is too slow"))
        return found
    except SaylineError as error:
        return [Finding("Embedded voice", False, str(error), needed=True, advice="install Sayline again")]


def _speaker() -> Finding:
    from voice_agent.sound_device import import_sounddevice

    try:
        sounddevice = import_sounddevice("playing", "or write to a file with --out file.wav")
        device = sounddevice.query_devices(kind="output")
    except DeviceError as error:
        return Finding("Speaker", False, str(error))
    except Exception as error:  # PortAudio's own error class is only there when PortAudio is
        return Finding("Speaker", False, f"no output device ({error})", advice="write to a file with --out file.wav")
    return Finding("Speaker", True, f"{device['name']}, {device['default_samplerate']:.0f} Hz")


def _llm() -> Finding:
    url, key = os.environ.get("OPENAI_BASE_URL"), os.environ.get("OPENAI_API_KEY")
    if url or key:
        return Finding("LLM for chat", True, f"{url or 'api.openai.com'}, {'with' if key else 'without'} a key")
    return Finding(
        "LLM for chat",
        False,
        "neither OPENAI_BASE_URL nor OPENAI_API_KEY is set",
        advice="set OPENAI_BASE_URL=http://localhost:11434/v1 for Ollama, or OPENAI_API_KEY; or use --llm demo",
    )


def _package(what: str, module: str, extra: str) -> Finding:
    there = importlib.util.find_spec(module) is not None
    return Finding(what, there, "installed" if there else "not installed", advice=f"pip install 'sayline[{extra}]'")

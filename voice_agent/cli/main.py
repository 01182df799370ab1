"""The commands: say, pipe, chat, serve, listen, voices, profile, doctor, compile."""

from __future__ import annotations

import sys
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from voice_agent.cli.running import (
    EXIT_CODES,
    finish,
    print_json,
    progress,
    run,
    show_report,
    sink_for,
    standard_input,
    text_of,
    warn,
)
from voice_agent.errors import InputError, SinkError

if TYPE_CHECKING:
    from voice_agent.sinks.base import Sink

app = typer.Typer(
    name="sayline",
    help="Makes any LLM speak while it is still writing. English and Chinese, on one CPU core.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Out = Annotated[
    str | None,
    typer.Option("--out", "-o", metavar="FILE", help="Write .wav or .pcm; - is WAV to stdout, pcm:- raw PCM."),
]
Play = Annotated[
    bool | None,
    typer.Option("--play/--no-play", help="Play to the speaker (default without --out) or only compute.", show_default=False),
]
VoiceName = Annotated[str, typer.Option("--voice", "-v", help="auto, or a name from `sayline voices`.")]
Speed = Annotated[float, typer.Option("--speed", "-s", help="Speaking rate, a factor from 0.5 to 2.")]
Precision = Annotated[str, typer.Option("--precision", help="Arithmetic: auto, float32, bfloat16 or int8.")]
Compile = Annotated[str, typer.Option("--compile", help="What computes: auto, onnx, cuda, or none (eager torch).")]
ShowTimeline = Annotated[bool, typer.Option("--timeline", help="Show when each sentence passed each stage.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead, one object or list a line.")]


class Llm(StrEnum):
    """Which model ``chat`` talks to."""

    openai = "openai"
    demo = "demo"


class Spoken(StrEnum):
    """What the user of ``chat --mic`` speaks."""

    auto = "auto"
    en = "en"
    zh = "zh"


@app.callback(invoke_without_command=True)
def options(version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False) -> None:
    # what stands before a command
    if version:
        print(f"sayline {metadata.version('sayline')}")
        raise typer.Exit


@app.command()
def say(
    text: Annotated[list[str], typer.Argument(metavar="TEXT", help=r"Plain text or markdown, with tags such as \[break_300].")],
    out: Out = None,
    play: Play = None,
    voice: VoiceName = "auto",
    speed: Speed = 1.0,
    precision: Precision = "auto",
    compile: Compile = "auto",
    timeline: ShowTimeline = False,
    json: Json = False,
) -> None:
    """Say TEXT."""
    _speak(" ".join(text), "text", out, play, voice, speed, (precision, compile), timeline, json)


@app.command()
def pipe(
    out: Out = None,
    play: Play = None,
    voice: VoiceName = "auto",
    speed: Speed = 1.0,
    precision: Precision = "auto",
    compile: Compile = "auto",
    timeline: ShowTimeline = False,
    json: Json = False,
    format: Annotated[
        str, typer.Option("--format", help="text; or auto, which also reads SSE, OpenAI, Anthropic and Ollama JSON lines.")
    ] = "text",
) -> None:
    """Speak standard input while it arrives: ollama run llama3.2 "Tell me a joke" | sayline pipe"""
    from voice_agent.llm.shapes import FORMATS

    if format not in ("auto", *FORMATS):
        raise typer.BadParameter(f"{format!r} is none of auto, {', '.join(FORMATS)}", param_hint="--format")
    _speak(None, None if format == "auto" else format, out, play, voice, speed, (precision, compile), timeline, json)


@app.command()
def chat(
    once: Annotated[str | None, typer.Option("--once", metavar="TEXT", help="Ask this, speak the answer, and end.")] = None,
    llm: Annotated[Llm, typer.Option("--llm", help="openai: any server that speaks its API; demo: a script.")] = Llm.openai,
    model: Annotated[str, typer.Option("--model", "-m", help="The model's name on the server.")] = "gpt-4o-mini",
    base_url: Annotated[str | None, typer.Option("--base-url", help="The server; default OPENAI_BASE_URL.")] = None,
    system: Annotated[str | None, typer.Option("--system", help="System prompt; default teaches the speech tags.")] = None,
    tools: Annotated[
        str | None,
        typer.Option("--tools", metavar="FILE.py", help="Functions decorated with @tool, for the model to call."),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option("--resume", metavar="FILE", help="Keep the conversation in this file, or go on with it."),
    ] = None,
    events: Annotated[
        str | None, typer.Option("--events", metavar="FILE", help="Write captions, turns and tools as JSON lines.")
    ] = None,
    mic: Annotated[bool, typer.Option("--mic", help="Talk instead of typing. Ctrl-C ends.")] = False,
    input: Annotated[str | None, typer.Option("--input", help="The microphone: a number or part of a name.")] = None,
    output: Annotated[str | None, typer.Option("--output", help="The loudspeaker: a number or part of a name.")] = None,
    push_to_talk: Annotated[
        bool, typer.Option("--push-to-talk", help="With --mic: listen from one press of the space bar to the next.")
    ] = False,
    wake: Annotated[
        str | None, typer.Option("--wake", metavar="PHRASE", help="With --mic: answer only what begins with this phrase.")
    ] = None,
    headphones: Annotated[
        bool, typer.Option("--headphones", help="With --mic: the microphone does not hear the loudspeaker.")
    ] = False,
    stt: Annotated[
        str | None,
        typer.Option(
            "--stt",
            metavar="MODEL_DIR|remote|URL",
            help="With --mic: a Whisper model's folder (default: the installed base model), or a server with "
            "/v1/audio/transcriptions; remote is that of OPENAI_BASE_URL.",
        ),
    ] = None,
    stt_model: Annotated[str, typer.Option("--stt-model", help="The model's name on the server of --stt.")] = "whisper-1",
    language: Annotated[Spoken, typer.Option("--language", help="With --mic: what is spoken.")] = Spoken.auto,
    out: Out = None,
    play: Play = None,
    voice: VoiceName = "auto",
    speed: Speed = 1.0,
    timeline: ShowTimeline = False,
    json: Json = False,
) -> None:
    """Talk with an LLM: type, or with --mic speak, and hear the answer while it is written.

    Typing, Ctrl-C stops the answer and Ctrl-D ends.

    The key is read from OPENAI_API_KEY; a local server needs none.
    """
    from voice_agent.cli.chat import ChatOptions, converse

    options = ChatOptions(llm.value, model, base_url, system, tools, resume, events)
    if mic:
        from voice_agent.cli.mic import MicOptions, converse_by_mic

        if once is not None:
            raise typer.BadParameter("--once is a typed question, --mic is for spoken ones")
        if out in ("-", "pcm:-"):
            raise typer.BadParameter("--mic shows the words on the standard output, so --out - has no place there")
        heard = MicOptions(input, stt, stt_model, push_to_talk, headphones, language.value, wake)
        run(converse_by_mic(options, heard, _sink(out, play, json, output), voice, speed, timeline, json))
        return
    if any((input, push_to_talk, wake, headphones, stt)):
        raise typer.BadParameter("--input, --push-to-talk, --wake, --headphones and --stt go with --mic")
    run(converse(once, options, _sink(out, play, json, output), voice, speed, timeline, json))


@app.command()
def serve(
    config: Annotated[Path | None, typer.Option("--config", "-c", metavar="FILE", help="Settings as YAML.")] = None,
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on [127.0.0.1].")] = None,
    port: Annotated[int | None, typer.Option("--port", "-p", help="Port to listen on [8000].")] = None,
    allow_anyone: Annotated[
        bool | None, typer.Option("--allow-anyone", help="Serve other machines without API keys.", show_default=False)
    ] = None,
    llm: Annotated[str | None, typer.Option("--llm", help="openai (the default), demo (a script) or none.")] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="The model's name on the LLM's server.")] = None,
    base_url: Annotated[str | None, typer.Option("--base-url", help="The LLM's server; default OPENAI_BASE_URL.")] = None,
    precision: Annotated[str | None, typer.Option("--precision", help="Arithmetic: auto, float32, bfloat16 or int8.")] = None,
    compile: Annotated[
        str | None, typer.Option("--compile", help="What computes: auto, onnx, cuda, or none (eager torch).")
    ] = None,
    set: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Any setting, such as limits.text_chars=8000.")
    ] = None,
    show_config: Annotated[bool, typer.Option("--show-config", help="Print the settings as JSON and end.")] = False,
) -> None:
    """Serve speech over HTTP, WebSocket and WebRTC: OpenAI's endpoints, live sockets, a web page.

    Flags go before SAYLINE_* variables, these before the file. An API key is read from SAYLINE_API_KEY.
    """
    from voice_agent.cli import serve as serving

    async def start() -> int:
        flags = {
            "host": host,
            "port": port,
            "allow_anyone": allow_anyone,
            "llm.kind": llm,
            "llm.model": model,
            "llm.base_url": base_url,
            "engine.precision": precision,
            "engine.compile": compile,
        }
        settings = serving.settings(config, flags, set or [])
        if show_config:
            serving.show(settings)
            return 0
        return await serving.serve(settings)

    run(start())


@app.command()
def listen(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The microphone; of a stereo file the left channel.")],
    played: Annotated[
        Path | None,
        typer.Option("--played", metavar="FILE", help="What the agent played meanwhile; default: the right channel."),
    ] = None,
    echo: Annotated[str, typer.Option("--echo", help="guard, aec, half_duplex or headphones.")] = "guard",
    vad_mode: Annotated[int, typer.Option("--vad-mode", min=0, max=3, help="How strict the detector is.")] = 2,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Also draw a picture (.png, .svg).")] = None,
    json: Json = False,
) -> None:
    """Replay a recording and show what the ears decide: speech, turns, interruptions."""
    from voice_agent.cli.listen import listen as replay

    finish(lambda: replay(file, played, echo, vad_mode, plot, json))


@app.command()
def voices(json: Json = False) -> None:
    """List the voices."""
    from tts_engine.weights import VoiceManifest

    def show() -> None:
        speakers = VoiceManifest.load().speakers.values()
        if json:
            print_json([{"name": s.name, "languages": s.languages, "description": s.description} for s in speakers])
            return
        print("auto      en, zh  heart for English, xiaobei for Chinese and mixed sentences")
        for speaker in speakers:
            print(f"{speaker.name:<9} {', '.join(speaker.languages):<7} {speaker.description}")

    finish(show)


@app.command()
def profile(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to speak, to nobody.")],
    trace: Annotated[
        Path, typer.Option("--trace", metavar="FILE", help="The Chrome trace (chrome://tracing, ui.perfetto.dev).")
    ] = Path("sayline-trace.json"),
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="How often it is spoken for the table.")] = 7,
    precision: Precision = "auto",
    compile: Annotated[
        str,
        typer.Option("--compile", help="auto, onnx, cuda, or none: eager torch, whose operations are then in the trace too."),
    ] = "auto",
    voice: VoiceName = "auto",
    json: Json = False,
) -> None:
    """Show where the milliseconds go, from the text to the sink."""
    from voice_agent.cli.profile import profile as measure

    run(measure(text, trace, rounds, (precision, compile), voice, json))


@app.command()
def doctor(json: Json = False) -> None:
    """Check what works on this machine, and say what to install."""
    from voice_agent.cli.doctor import examine

    finish(lambda: examine(json))


@app.command(name="compile")
def compile_voice(
    voice: Annotated[Path | None, typer.Option("--voice", help="A voice folder; default: the embedded voice.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The file to write; default: beside the weights.")] = None,
) -> None:
    """Make the fast int8 form of a voice from its weights, after they were replaced. Takes some ten seconds."""

    def make() -> None:
        from tts_engine.engine import Engine
        from tts_engine.weights import EMBEDDED_VOICE

        if out is not None and not out.absolute().parent.is_dir():
            raise SinkError(f"cannot write {out}: the folder {out.absolute().parent} does not exist; create it first")
        print("measuring ranges on 200 sentences", file=sys.stderr)
        print(Engine.compile(voice or EMBEDDED_VOICE, out))

    finish(make)


def _sink(out: str | None, play: bool | None, json: bool, device: str | None = None) -> Sink:
    if json and out in ("-", "pcm:-"):
        raise typer.BadParameter("--json and --out - both want the standard output")
    try:
        return sink_for(out, play, device)
    except InputError as error:
        raise typer.BadParameter(str(error), param_hint="--out") from None


def _speak(
    text: str | None,
    format: str | None,
    out: str | None,
    play: bool | None,
    voice: str,
    speed: float,
    arithmetic: tuple[str, str],
    timeline: bool,
    json: bool,
) -> None:
    # imported before a loop runs, which would put Ctrl-C off until all are loaded
    from tts_engine.engine import EngineConfig
    from voice_agent.own_engine import own_engine
    from voice_agent.playback import Playback
    from voice_agent.text.prosody import ProsodyConfig
    from voice_agent.turn import Turn, TurnConfig

    sink = _sink(out, play, json)

    async def speak() -> None:
        config = TurnConfig(prosody=ProsodyConfig(voice=voice, speed=speed), format=format)
        source = text if text is not None else text_of(standard_input()) if format == "text" else standard_input()
        precision, compiled = arithmetic
        engine = own_engine(config, EngineConfig(precision=precision, compile=compiled))  # type: ignore[arg-type]
        engine.start()
        try:
            turn = Turn(engine, config, pending_s=lambda: sink.playhead.pending_s)
            async with sink, progress(lambda: turn.report().audio_s, shown=out is not None and not json):
                await engine.ready()
                try:
                    await Playback(turn, sink).play(source)
                finally:
                    report = turn.report()
                    show_report(report, timeline, json)
            if not report.sentences:
                warn("there was nothing to say: the text has no letter or digit that can be spoken")
        finally:
            engine.close()

    run(speak())

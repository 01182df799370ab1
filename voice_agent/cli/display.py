"""What a spoken chat shows: on a terminal a live line with state, level and words; elsewhere one line a turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

from tts_engine.text.language import is_han
from voice_agent.captions import (
    Caption,
    Event,
    Level,
    Listening,
    RecognitionFailed,
    Speaking,
    Thinking,
    ToolUsed,
    Transcribed,
    TurnBegan,
    TurnEnded,
)
from voice_agent.cli.running import warn

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

__all__ = ["Display", "LiveDisplay", "PlainDisplay"]

_BLOCKS = " ▁▂▃▄▅▆▇█"
_METER = 20  # characters
_FLOOR_DB, _TOP_DB = -70.0, -10.0
_STATES = {"listening": ("●", "green"), "thinking": ("…", "yellow"), "speaking": ("♪", "cyan")}


class Display(Protocol):
    """Shows events while the block runs."""

    def show(self, event: Event) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


class PlainDisplay:
    """Lines: what the user said, what was heard of the answer, what failed."""

    def show(self, event: Event) -> None:
        for line in _lines(event):
            print(line, flush=True)
        _complain(event)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass


class LiveDisplay:
    """Finished turns scroll up; below them the state, the level of the microphone, and the words as they are said."""

    def __init__(self, console: Console | None = None, hint: str = "") -> None:
        """``hint``: what the keys do."""
        from rich.console import Console
        from rich.live import Live

        self._console = console or Console()
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._hint = hint
        self._state = "listening"
        self._levels = [_FLOOR_DB] * _METER
        self._heard = ""  # of the user, so far
        self._said = ""  # by the agent, so far

    def show(self, event: Event) -> None:
        match event:
            case Listening() | Thinking() | Speaking():
                self._state = type(event).__name__.lower()
            case Level(db=db):
                self._levels = [*self._levels[1:], db]
            case Transcribed(text=text, final=final):
                self._heard = "" if final else text
            case TurnBegan() | TurnEnded():
                self._said = ""
            case Caption(text=text):
                self._said += ("" if not self._said or is_han(text[:1]) else " ") + text
        for line in _lines(event):
            self._console.print(line, highlight=False, markup=False)
        _complain(event)
        self._live.update(self._picture(), refresh=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def _picture(self) -> RenderableType:
        from rich.text import Text

        sign, color = _STATES[self._state]
        picture = Text()
        picture.append(f"{sign} {self._state:<10}", style=color)
        picture.append("".join(map(_block, self._levels)), style="dim")
        picture.append(f" {self._levels[-1]:4.0f} dB", style="dim")
        if self._hint:
            picture.append(f"   {self._hint}", style="dim")
        if self._heard:
            picture.append(f"\nyou> {self._heard}", style="italic")
        if self._said:
            picture.append(f"\nbot> {self._said}")
        return picture


def _lines(event: Event) -> list[str]:
    """What stays of an event, as lines."""
    match event:
        case Transcribed(text=text, final=True, unanswered=unanswered):
            return [f"you> {text}" + (f"  ({unanswered})" if unanswered else "")]
        case TurnEnded(report=report) if report.heard or report.interrupted:
            return [f"bot> {report.heard}" + (" (interrupted)" if report.interrupted else "")]
        case ToolUsed(name=name, result=None):
            return [f"     ({name} …)"]
        case _:
            return []


def _complain(event: Event) -> None:
    match event:
        case RecognitionFailed(error=error):
            warn(error)
        case TurnEnded(error=str(error)):
            warn(error)


def _block(db: float) -> str:
    share = (db - _FLOOR_DB) / (_TOP_DB - _FLOOR_DB)
    return _BLOCKS[round(min(max(share, 0.0), 1.0) * (len(_BLOCKS) - 1))]

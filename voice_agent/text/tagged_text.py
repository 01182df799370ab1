"""A text with its prosody plan written into it as tags, for engines that take tags as text."""

from __future__ import annotations

from dataclasses import replace

from tts_engine.types import Mark, Tag, Utterance
from voice_agent.text.pieces import Sentence
from voice_agent.text.plan import ProsodyConfig
from voice_agent.text.prosody import ProsodyPlanner
from voice_agent.text.rules import BREAK_RANGE_MS
from voice_agent.text.sentences import SentenceSplitter
from voice_agent.text.speakable import Cleaner
from voice_agent.text.tags import Dialect, TagReader, render


def inject_prompt(
    text: str, sentiment: str | None = None, *, config: ProsodyConfig | None = None, dialect: Dialect = "sayline"
) -> str:
    """The text with its plan written into it, for engines that take tags: ``[speed_1.2]Get out![break_100]``.

    Markup goes as it does for speech, each sentence is planned in turn, and tags that already stand in the text win.
    ``sentiment`` is an LLM's own label for the whole text, see ``ProsodyPlanner.plan``.
    """
    planner, reader, cleaner, splitter = ProsodyPlanner(config), TagReader(dialect), Cleaner(), SentenceSplitter()
    items = [clean for item in reader.feed(text) + reader.flush() for clean in cleaner.feed(item)] + cleaner.flush()
    written: list[tuple[str, Utterance]] = []
    end = 0
    for piece in [piece for item in items for piece in splitter.feed(item)] + splitter.flush():
        start, stop = (piece.runs[0].start, piece.runs[-1].end) if piece.runs else (end, end)
        sentence = Sentence(piece.text, piece.runs, piece.kind, piece.marks)
        utterance = planner.plan(sentence, raw=text[end:stop], sentiment=sentiment)
        blank = " " if written and any(character.isspace() for character in text[end:start]) else ""
        if written:
            before = written[-1][1]
            together_ms = min(before.break_after_ms + utterance.break_before_ms, BREAK_RANGE_MS[1])
            written[-1] = (written[-1][0], replace(before, break_after_ms=together_ms))
            utterance = replace(utterance, break_before_ms=0)
        if utterance.text:
            written.append((blank, utterance))
        end = stop
    return "".join(blank + render(utterance.text, _all_marks(utterance), dialect) for blank, utterance in written)


def _all_marks(utterance: Utterance) -> list[Mark]:
    """The plan of an utterance as marks: the values before its text, its own marks, the break behind it."""
    before = [Tag("break", utterance.break_before_ms)] if utterance.break_before_ms else []
    before.append(Tag("speed", utterance.speed))
    before += [Tag("pitch", utterance.pitch)] if utterance.pitch else []
    before += [Tag("volume", utterance.volume)] if utterance.volume != 1.0 else []
    after = Mark(len(utterance.text), Tag("break", utterance.break_after_ms))
    return [*(Mark(0, tag) for tag in before), *utterance.marks, after]

"""The record of what was heard: at any cut the exact raw prefix."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tts_engine.types import AudioChunk, AudioFormat, Run, Utterance, WordTime
from voice_agent.heard import HeardText, RawText
from voice_agent.playback import Playback
from voice_agent.sinks.memory import MemorySink
from voice_agent.testing.clock import run_virtual
from voice_agent.testing.fake_engine import FakeSynthesizer
from voice_agent.turn import Turn


def spoken(raw: str, *, tokens: int | None = None, seed: int = 0) -> tuple[HeardText, int]:
    """The record of a text that was spoken to its end, and how many samples that took."""

    async def source() -> AsyncIterator[str]:
        rng = random.Random(seed)
        rest = raw
        while rest:
            count = tokens or rng.randint(1, 7)
            yield rest[:count]
            rest = rest[count:]
            await asyncio.sleep(0.01)

    async def main() -> tuple[HeardText, int]:
        sink = MemorySink()
        turn = Turn(FakeSynthesizer(), pending_s=lambda: 0.0)
        await Playback(turn, sink).play(source())
        return turn.record, sink.playhead.heard_samples

    return run_virtual(main())


def prefixes(record: HeardText, total: int) -> list[str]:
    """What was heard at cuts every 10 ms; each prefix once, in order."""
    heard = [record.heard(sample) for sample in [*range(0, total, 240), total]]
    return [text for text, before in zip(heard, ["-", *heard], strict=False) if text != before]


@pytest.mark.parametrize(
    "marked",  # with a bar where each prefix that can be heard ends
    [
        "Hello| there.| Bye!",
        "你|好，|世|界。",
        "**Great**| news!| 🎉 The| end.",
        'He| said| "yes"| (twice).',
        "**很|好**|你",
        "很|好|**你**",
        "很|好|“你”",
        "说|“好”|了",
        "A| twenty-five| mile| walk.",
        "Say| it| now.| [break_300]Then| go.",
        "One.| ```\ncode\n``` Two.",
        "Only| this.| ```\ncode\n```",
        "I| am| &amp; you| are.",
        "See| [the| page]|(http://a.b/c) now.",
        "好|的| OK| 吗",
        "   leading| blanks",
        "# A| heading|\n\n1.| one|\n2.| two|\n",
        "It's| the| dogs'| bone,| isn't| it?",
        "Wait…| what?!| No...| yes",
        "He| — she| too| – left",
    ],
)
def test_prefixes(marked: str) -> None:
    parts = marked.split("|")
    record, total = spoken("".join(parts))
    assert prefixes(record, total) == ["".join(parts[:count]) for count in range(len(parts) + 1)]


@pytest.mark.parametrize("raw", ["", "```\ncode\n```", "😊", "...", "<think>only thoughts</think>"])
def test_what_cannot_be_said_counts_as_heard_at_the_end(raw: str) -> None:
    record, total = spoken(raw)
    assert total == 0
    assert record.heard(0) == raw


MIXED = (
    "Sure! Here is **what** I found:\n\n- Order `4711` costs $5.50, i.e. cheap.\n- 订单2023年有3.14公斤，很好。\n\n"
    "```python\nprint(1)\n```\n| a | b |\n|---|---|\n| 1 | 2 |\n\nDone 🎉. Visit https://example.com/x?y=1 (soon)."
)


@pytest.mark.parametrize("tokens", [1, 2, 5, 1000])
def test_prefixes_do_not_depend_on_how_the_text_arrived(tokens: int) -> None:
    record, total = spoken(MIXED, tokens=tokens)
    heard = prefixes(record, total)
    assert heard[0] == ""
    assert heard[-1] == MIXED
    for shorter, longer in pairwise(heard):
        assert longer.startswith(shorter)
    whole, _ = spoken(MIXED, tokens=1000)
    if tokens != 1:
        assert [word.end for word in record.words] == [word.end for word in whole.words]


@given(st.text(alphabet="ab c.,!?-*`_[]()<>'\"&;#|\n你好，。1３٣\0\ud800🎉", max_size=60))
@settings(max_examples=examples(150))
def test_any_text_gives_growing_prefixes_and_ends_whole(raw: str) -> None:
    record, total = spoken(raw, tokens=7)
    ends = [record.heard_end(sample) for sample in [*range(0, total, 2400), total]]
    assert ends == sorted(ends)
    assert all(0 <= end <= len(raw) for end in ends)
    assert ends[-1] == len(raw)


def test_the_error_is_at_most_one_word() -> None:
    """Against the fake engine's own times: what sounds at the cut is the last word heard or the one after it."""
    record, total = spoken("The quick brown fox jumps over the lazy dog. 敏捷的棕色狐狸跳过了懒狗。")
    for cut in range(0, total, 240):
        begun = sum(word.start_sample < cut for word in record.words)
        ended = sum(word.end_sample <= cut for word in record.words)
        assert ended <= record.heard_words(cut) <= begun


def chunk(utterance: Utterance, start: int, count: int, words: tuple[WordTime, ...], last: bool) -> AudioChunk:
    return AudioChunk(np.zeros(count, np.float32), AudioFormat(), utterance, start, words, last)


def test_a_number_read_digit_by_digit_in_chinese_counts_by_digit() -> None:
    utterance = Utterance("打4711吧", runs=(Run("打4711吧", 0, 6),))
    raw = RawText()
    raw.append("打4711吧")
    record = HeardText(raw)
    record.planned(utterance)
    words = [
        WordTime(0, 1, 0, 100),
        *(WordTime(1, 5, 100 * n, 100 * n + 100) for n in range(1, 5)),
        WordTime(5, 6, 500, 600),
    ]
    record.add(chunk(utterance, 0, 600, tuple(words), True), 1000)
    record.finish()
    assert [record.heard(1000 + cut) for cut in (49, 50, 149, 150, 250, 350, 450, 550, 600)] == [
        "", "打", "打", "打4", "打47", "打471", "打4711", "打4711吧", "打4711吧",
    ]  # fmt: skip


def test_an_english_number_is_one_word_however_many_are_spoken() -> None:
    raw = RawText()
    raw.append("It is 3.14 now")
    utterance = Utterance("It is 3.14 now", runs=(Run("It is 3.14 now", 0, 14),))
    record = HeardText(raw)
    record.planned(utterance)
    words = [(0, 2), (3, 5), (6, 10), (6, 10), (6, 10), (6, 10), (11, 14)]
    times = [WordTime(a, b, 100 * n, 100 * n + 100) for n, (a, b) in enumerate(words)]
    record.add(chunk(utterance, 0, 350, tuple(times[:4]), False), 0)
    record.add(chunk(utterance, 350, 350, tuple(times[4:]), True), 350)
    assert record.heard(399) == "It is"
    assert record.heard(400) == "It is 3.14"
    assert [word.shown for word in record.words] == ["It", "is", "3.14", "now"]


def test_a_sentence_without_word_times_counts_as_one_word() -> None:
    raw = RawText()
    raw.append("No times here.")
    utterance = Utterance("No times here.", runs=(Run("No times here.", 0, 14),))
    record = HeardText(raw)
    record.planned(utterance)
    record.add(chunk(utterance, 0, 500, (), False), 0)
    record.add(chunk(utterance, 500, 500, (), True), 500)
    assert record.heard(499) == ""
    assert record.heard(500) == "No times here."


def test_raw_text_reads_any_stretch() -> None:
    raw, whole = RawText(), ""
    rng = random.Random(1)
    for _ in range(300):
        part = "x" * rng.randint(0, 3) + rng.choice(["", "é", "好"])
        raw.append(part)
        whole += part
        start, end = rng.randint(-2, len(whole) + 2), rng.randint(-2, len(whole) + 2)
        assert raw.between(start, end) == whole[max(start, 0) : max(end, 0)]
    assert str(raw) == whole

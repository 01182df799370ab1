"""The heard-text record against a recogniser: at every 10 ms cut of 20 replies, is the last word that counts the right one?

    python -m benchmarks.heard_text [--replies 20] [--cuts 40]

Sayline speaks each reply into memory. Whisper (base, int8) gives the time of each word in that audio, which knows nothing
of our durations. At a cut the reference is the number of words whose middle, as the recogniser has it, lies before the cut;
ours is the number of words that the record counts as heard. Words that the recogniser took for as many others stand where
those do; what it left out is bridged.

The recogniser's times lie early. By how much is measured where speech begins and ends around a pause (by its level, -45
dBFS), again without our durations, and a second row has this taken off.

Then the audio is cut at random places, and what is before the cut, or behind it, is transcribed: the part of the whole text
that fits the transcript best is what the recogniser has heard. This also settles cuts at which its times and the record are
more than one word apart: a word that it still hears behind the cut has not been heard before it.
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
import random
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import soxr

from benchmarks.measure import Row, report
from tests.edits import edits
from tests.recogniser import chinese_characters, english_words, recogniser, transcribe
from tts_engine.scheduler import Scheduler
from tts_engine.types import Samples
from voice_agent.heard import HeardText
from voice_agent.llm.deltas import Break, TextDelta, ToolCall
from voice_agent.playback import Playback
from voice_agent.sinks.memory import MemorySink
from voice_agent.turn import Turn

RATE = 24_000
CUT_SAMPLES = RATE // 100
SILENCE = np.zeros(RATE // 2, np.float32)
AFTER_TOOL = [
    TextDelta("Let me look that up for you."),
    Break("tool_call"),
    ToolCall("order", {"number": 1}),
    TextDelta("Your parcel has left the warehouse and will be with you tomorrow morning."),
]
REPLIES: dict[str, list[Any]] = {
    "en": [
        AFTER_TOOL,
        "I am sorry about that. The driver could not find your house, so the parcel is back at the depot.",
        "Of course! You can send it back within a month, and the money will be on your account a few days later.",
        "**Good news:** the blue one is in stock again. Shall I put one aside for you?",
        "The shop opens at nine in the morning and closes at six in the evening, except on Sundays.",
        "Please hold the button until the light turns green. Then let it go and wait for a moment.",
        "There are two ways to get there. The train is faster, but the bus stops right in front of the door.",
        "Thank you for waiting. I have found your booking, and everything looks fine.",
        "That depends on the weather. If it rains, we move the table inside and light the fire.",
        "No problem at all. I have changed the address and sent you a message to confirm it.",
    ],
    "zh": [
        "您好，请问有什么可以帮您？我可以查询订单，也可以帮您退货。",
        "非常抱歉给您带来不便。我们今天就给您重新发货，请您放心。",
        "您的包裹昨天晚上已经离开仓库，明天上午就能送到。",
        "好的，我帮您查一下。这个颜色现在没有货，下个星期才会有。",
        "请先打开手机上的应用，然后点击右上角的按钮。",
        "**没关系**，您可以慢慢考虑。如果有问题，随时联系我们。",
        "我们早上九点开门，晚上六点关门，星期天休息。",
        "这个问题比较复杂，我需要请同事帮忙，请您稍等一下。",
        "地址已经改好了，快递员会在下午给您打电话。",
        "谢谢您的耐心等待，祝您生活愉快，再见。",
    ],
}


@dataclass(frozen=True)
class Spoken:
    """A reply, its audio and its record."""

    language: str
    samples: Samples
    record: HeardText


async def spoken(source: Any, language: str, engine: Scheduler) -> Spoken:
    sink = MemorySink()
    turn = Turn(engine)
    await Playback(turn, sink).play(source)
    return Spoken(language, sink.samples, turn.record)


def units(text: str, language: str) -> list[str]:
    return english_words(text) if language == "en" else chinese_characters(text)


def recognised(reply: Spoken) -> list[tuple[str, float, float]]:
    """The recogniser's words (Chinese: characters), each with its begin and end in seconds."""
    audio = soxr.resample(reply.samples, RATE, 16_000)
    segments, _ = recogniser().transcribe(audio, language=reply.language, beam_size=5, word_timestamps=True)
    found = []
    for segment in segments:
        for word in segment.words or []:
            parts = units(word.word, reply.language)
            length_s = (word.end - word.start) / max(len(parts), 1)
            begins = [word.start + number * length_s for number in range(len(parts))]
            found += [(part, begin, begin + length_s) for part, begin in zip(parts, begins, strict=True)]
    return found


def lead_s(replies: Sequence[Spoken], words: Sequence[Sequence[tuple[str, float, float]]]) -> float:
    """By how much the recogniser's times are early, measured at the edges of pauses."""
    early = []
    for reply, found in zip(replies, words, strict=True):
        blocks = reply.samples[: len(reply.samples) // CUT_SAMPLES * CUT_SAMPLES].reshape(-1, CUT_SAMPLES)
        loud = np.flatnonzero(np.sqrt((blocks**2).mean(axis=1)) > 10 ** (-45 / 20))
        stretches = [part for part in np.split(loud, np.flatnonzero(np.diff(loud) > 18) + 1) if len(part) > 8]
        begins, ends = np.array([begin for _, begin, _ in found]), np.array([end for _, _, end in found])
        for stretch in stretches:
            begin_s, end_s = stretch[0] / 100, (stretch[-1] + 1) / 100
            early.append(begin_s - begins[np.abs(begins - begin_s).argmin()])
            early.append(end_s - ends[np.abs(ends - end_s).argmin()])
    return float(np.median(early))


def cut_errors(reply: Spoken, theirs: Sequence[tuple[str, float, float]], lead: float = 0.0) -> list[int]:
    """For each 10 ms cut: our number of heard words less the recogniser's, its times taken ``lead`` seconds later."""
    ours: list[str] = []  # spoken units in order, and the record's word that each belongs to
    owner: list[int] = []
    for number, word in enumerate(reply.record.words):
        parts = units(word.shown, reply.language)
        ours += parts
        owner += [number] * len(parts)
    matcher = difflib.SequenceMatcher(None, ours, [word for word, _, _ in theirs], autojunk=False)
    pairs = [
        pair
        for _, a, a_end, b, b_end in matcher.get_opcodes()
        if a_end - a == b_end - b
        for pair in zip(range(a, a_end), range(b, b_end), strict=True)
    ]
    middles = np.interp(range(len(ours)), [a for a, _ in pairs], [sum(theirs[b][1:]) / 2 + lead for _, b in pairs])
    last = {number: position for position, number in enumerate(owner)}
    first = {number: position for position, number in reversed(list(enumerate(owner)))}
    words = sorted(last)
    heard_s = np.maximum.accumulate([(middles[first[number]] + middles[last[number]]) / 2 for number in words])
    errors = []
    for cut in range(0, len(reply.samples), CUT_SAMPLES):
        counted = bisect_right(words, reply.record.heard_words(cut) - 1)
        errors.append(counted - int(np.searchsorted(heard_s, cut / RATE, side="right")))
    return errors


def transcribed_error(reply: Spoken, cut: int, *, behind: bool) -> int:
    """At a cut: our number of heard words less the recogniser's, by what it writes down of the audio before or behind it."""
    whole = units(str(reply.record.raw), reply.language)
    ours = len(units(reply.record.heard(cut), reply.language))
    part = np.concatenate([SILENCE, reply.samples[cut:]]) if behind else reply.samples[:cut]
    written = units(transcribe(part, reply.language), reply.language)

    def fits(count: int) -> int:
        return edits(written, whole[count:] if behind else whole[:count])

    return ours - min(range(len(whole) + 1), key=lambda count: (fits(count), abs(count - ours)))


def transcribed_errors(replies: Sequence[Spoken], cuts: int, *, behind: bool, seed: int = 0) -> list[int]:
    """:func:`transcribed_error` at random cuts."""
    rng = random.Random(seed)
    errors = []
    for _ in range(cuts):
        reply = rng.choice(replies)
        cut = rng.randrange(RATE // 2, len(reply.samples) - (RATE // 2 if behind else 0))
        errors.append(transcribed_error(reply, cut, behind=behind))
    return errors


def settled(reply: Spoken, errors: Sequence[int]) -> list[int]:
    """The errors of all cuts, where one of more than a word is settled by what is heard behind the cut."""
    return [
        transcribed_error(reply, number * CUT_SAMPLES, behind=True) if abs(error) > 1 else error
        for number, error in enumerate(errors)
    ]


def distribution(name: str, errors: Sequence[int]) -> Row:
    counts = Counter(min(abs(error), 3) for error in errors)
    share = {size: 100 * counts[size] / len(errors) for size in range(4)}
    return {
        "what": name,
        "cuts": len(errors),
        "right, %": round(share[0], 2),
        "off by 1, %": round(share[1], 2),
        "off by 2, %": round(share[2], 2),
        "more, %": round(share[3], 2),
        "worst": max(map(abs, errors)),
    }


async def speak_all(count: int) -> list[Spoken]:
    engine = Scheduler()
    await engine.ready()
    try:
        chosen = [(source, "en") for source in REPLIES["en"][: (count + 1) // 2]]
        chosen += [(source, "zh") for source in REPLIES["zh"][: count // 2]]
        return [await spoken(source, language, engine) for source, language in chosen]
    finally:
        engine.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replies", type=int, default=20)
    parser.add_argument("--cuts", type=int, default=40)
    options = parser.parse_args()
    replies = asyncio.run(speak_all(options.replies))
    rows, leads = [], {}
    for language, name in (("en", "English words"), ("zh", "Chinese characters")):
        own = [reply for reply in replies if reply.language == language]
        words = [recognised(reply) for reply in own]
        lead = lead_s(own, words)
        leads[language] = round(lead, 3)
        for taken, what in ((0.0, "every 10 ms"), (lead, f"every 10 ms, recogniser's lead of {lead:.3f} s taken off")):
            by_reply = [cut_errors(reply, theirs, taken) for reply, theirs in zip(own, words, strict=True)]
            rows.append(distribution(f"{name}, {what}", [error for errors in by_reply for error in errors]))
            print(f"{name}, {what}: worst of each reply {[max(map(abs, errors)) for errors in by_reply]}", file=sys.stderr)
        decided = [error for reply, errors in zip(own, by_reply, strict=True) for error in settled(reply, errors)]
        rows.append(distribution(f"{name}, the same, errors of two and more settled by the audio behind the cut", decided))
        for behind, part in ((False, "before"), (True, "behind")):
            found = transcribed_errors(own, options.cuts // 2, behind=behind)
            rows.append(distribution(f"{name}, audio {part} a cut transcribed", found))
    report(
        "heard_text",
        rows,
        recogniser="whisper base int8",
        lead_s=leads,
        seconds=round(sum(len(r.samples) for r in replies) / RATE),
    )


if __name__ == "__main__":
    main()

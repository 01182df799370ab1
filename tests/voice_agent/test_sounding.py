"""Where an utterance sounds: the silence at the edges of a span is found, for any packets."""

from __future__ import annotations

import numpy as np
import pytest

from tts_engine.types import AudioChunk, AudioFormat, Utterance, WordTime
from voice_agent.heard import HeardText, RawText
from voice_agent.sounding import Sounding
from voice_agent.testing.sink_conformance import tone

RATE = 24_000
SILENCE = np.zeros(2400, np.float32)
SPEECH = np.concatenate([SILENCE, tone(0.2), SILENCE, tone(0.1, level=0.05), SILENCE])  # a word from 0.1 s, one from 0.4 s


def sounding(samples: np.ndarray, size: int) -> Sounding:
    found = Sounding(RATE)
    for start in range(0, len(samples), size):
        found.feed(samples[start : start + size])
    return found


@pytest.mark.parametrize("size", [1, 100, 240, 1000, 20_000])
def test_silence_at_the_edges_is_no_part_of_a_word(size):
    found = sounding(SPEECH, size)
    assert found.samples == len(SPEECH)
    assert found.begins(0, 9600) == pytest.approx(2400, abs=240)
    assert found.ends(0, 9600) == pytest.approx(7200, abs=240)
    assert found.begins(8000, 14_400) == pytest.approx(9600, abs=240)  # 20 dB below the first word
    assert found.ends(8000, 14_400) == pytest.approx(12_000, abs=240)


def test_edges_inside_sound_stay():
    found = sounding(SPEECH, 480)
    assert (found.begins(3333, 5555), found.ends(3333, 5555)) == (3333, 5555)


def test_silence_alone_stays():
    for found in (sounding(SPEECH, 480), Sounding(RATE)):
        assert (found.begins(7400, 9000), found.ends(7400, 9000)) == (7400, 9000)


def test_stereo_and_a_packet_that_ends_inside_a_block():
    found = Sounding(RATE)
    found.feed(np.stack([SPEECH[:2500], SPEECH[:2500]], axis=1))
    assert found.begins(0, 9600) == 2400


@pytest.mark.parametrize("size", [240, 999, 4800, 20_000])
def test_the_record_counts_words_by_what_sounds_of_them(size):
    utterance = Utterance("first second")
    record = HeardText(RawText())
    record.raw.append(utterance.text)
    record.planned(utterance)
    words = (WordTime(0, 5, 0, 9600), WordTime(6, 12, 9600, 14_400))  # as durations have it: the pause belongs to the word
    before = 0
    for start in range(0, len(SPEECH), size):
        stop = min(start + size, len(SPEECH))
        begun = tuple(word for word in words if start <= word.start_sample < stop)
        chunk = AudioChunk(SPEECH[start:stop], AudioFormat(RATE), utterance, start, begun, stop == len(SPEECH))
        record.add(chunk, 1000 + start)
        assert record.heard_words(1000 + start) >= before  # what counted as heard still does
        before = record.heard_words(1000 + stop)
    first, second = record.words
    assert first.end_sample == pytest.approx(1000 + 7200, abs=240)
    assert second.heard_sample == pytest.approx(1000 + 10_800, abs=240)
    if size > 2400:  # a packet with the beginning of the sound
        assert first.heard_sample == pytest.approx(1000 + 4800, abs=240)


def test_a_sentence_that_failed_halfway_does_not_move_the_next():
    record = HeardText(RawText())
    broken, next_one = Utterance("broken"), Utterance("whole", index=1)
    for utterance in (broken, next_one):
        record.raw.append(utterance.text)
        record.planned(utterance)
    record.add(AudioChunk(SPEECH[:4800], AudioFormat(RATE), broken, 0, (WordTime(0, 6, 0, 9600),)), 0)
    record.add(AudioChunk(SPEECH, AudioFormat(RATE), next_one, 0, (WordTime(0, 5, 0, 9600),), last=True), 50_000)
    assert record.words[0].start_sample == pytest.approx(2400, abs=240)
    assert record.words[1].start_sample == pytest.approx(52_400, abs=240)
    assert record.words[1].end_sample == pytest.approx(57_200, abs=240)

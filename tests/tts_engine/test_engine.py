"""The engine speaks utterances: packets, times of words, breaks, tags, voices, errors."""

from __future__ import annotations

import resource
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tts_engine.engine import Engine, EngineConfig
from tts_engine.errors import EngineError, InputError, VoiceError
from tts_engine.expansion import LONGEST_FRAMES
from tts_engine.models.base import Encoding
from tts_engine.planning import AUDIBLE, FRAME_SAMPLES
from tts_engine.types import AudioChunk, Mark, Tag, Utterance

TEXT = "Your order has shipped, and it should arrive on Friday."


def spoken(engine: Engine, utterance: Utterance | str) -> np.ndarray:
    utterance = Utterance(utterance) if isinstance(utterance, str) else utterance
    return np.concatenate([chunk.samples for chunk in engine.speak(utterance)])


def chunks_of(engine: Engine, utterance: Utterance) -> list[AudioChunk]:
    return list(engine.speak(utterance))


def with_chunks(engine: Engine, *sizes: int) -> Engine:
    return Engine(engine.voice, engine.model, engine.front_end, replace(engine.config, chunk_frames=sizes))


@pytest.mark.parametrize("sizes", [(1,), (2, 3), (64,), (6, 8, 12, 20, 32, 48, 64)], ids=str)
@pytest.mark.parametrize("text", [TEXT, "你好，我想改一下订单。", "我用 Python 写的 API。"])
def test_packets_of_any_size_give_the_same_samples(engine: Engine, text: str, sizes: tuple[int, ...]) -> None:
    marks = (Mark(4, Tag("break", 700)), Mark(4, Tag("volume", 0.5)))
    utterance = Utterance(text, break_before_ms=130, break_after_ms=210, marks=marks)
    whole, cut = spoken(with_chunks(engine, 50), utterance), spoken(with_chunks(engine, *sizes), utterance)
    assert len(whole) == len(cut)
    np.testing.assert_allclose(cut, whole, atol=1e-4)


def test_packets_follow_one_another_without_a_gap(engine: Engine) -> None:
    chunks = chunks_of(engine, Utterance(TEXT, break_after_ms=100))
    at = 0
    for chunk in chunks:
        assert chunk.start_sample == at
        at += len(chunk.samples)
    assert [chunk.last for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert chunks[0].format.sample_rate == 24_000
    assert not np.isnan(np.concatenate([chunk.samples for chunk in chunks])).any()


def test_the_first_packet_is_small_and_audible(engine: Engine) -> None:
    first = chunks_of(engine, Utterance(TEXT))[0]
    assert first.duration_s <= 0.1
    assert np.abs(first.samples).max() > AUDIBLE


def test_packets_stay_small_until_something_is_audible(engine: Engine) -> None:
    speech = engine.begin(Utterance(TEXT))
    first = engine.wanted_frames(speech)
    engine.step_together([speech], first)
    assert speech.sounds
    assert engine.wanted_frames(speech) > first
    speech.sounds = False  # as with a voice that begins with more silence
    assert engine.wanted_frames(speech) == engine.config.chunk_frames[0]


@pytest.mark.parametrize("text", [TEXT, "It costs $3.50, right?", "你好，世界。我有3个苹果！", "我用Python写API。"])
def test_words_have_times_in_order_that_cover_the_text(engine: Engine, text: str) -> None:
    chunks = chunks_of(engine, Utterance(text, break_before_ms=200, break_after_ms=100))
    words = [word for chunk in chunks for word in chunk.words]
    total = sum(len(chunk.samples) for chunk in chunks)
    covered = set()
    before = 0
    for word in words:
        assert before <= word.start_sample < word.end_sample
        assert word.start_sample < total
        before = word.start_sample
        covered |= set(range(word.start, word.end))
    assert words[0].start_sample >= 4800  # behind the break
    missing = [c for i, c in enumerate(text) if i not in covered and c.isalnum()]
    assert not missing


def test_words_come_with_the_packet_that_they_begin_in(engine: Engine) -> None:
    for chunk in chunks_of(engine, Utterance(TEXT)):
        for word in chunk.words:
            assert chunk.start_sample <= word.start_sample < chunk.start_sample + len(chunk.samples)


def test_breaks_before_and_after_are_exact_silence(engine: Engine) -> None:
    plain = spoken(engine, TEXT)
    out = spoken(engine, Utterance(TEXT, break_before_ms=250, break_after_ms=500))
    assert len(out) == len(plain) + 6000 + 12000
    assert not out[:6000].any()
    assert not out[-12000:].any()


@pytest.mark.parametrize(("ms", "text", "at"), [(900, "停一下再说。", 3), (900, "Wait here now.", 5), (900, "One, two.", 5)])
def test_a_break_inside_is_a_silence_of_about_its_length(engine: Engine, ms: int, text: str, at: int) -> None:
    out = spoken(engine, Utterance(text, marks=(Mark(at, Tag("break", ms)),)))
    quiet = np.abs(out) < 10 ** (-40 / 20)
    longest = run = 0
    for still in quiet[::24]:  # by milliseconds
        run = run + 1 if still else 0
        longest = max(longest, run)
    assert 0.7 * ms <= longest <= 1.25 * ms
    assert len(out) > len(spoken(engine, text)) + 24 * ms * 0.4


def test_a_short_break_shortens_a_comma(engine: Engine) -> None:
    text = "您的包裹昨天晚上已经离开仓库，星期五之前就能送到。"
    shorter = spoken(engine, Utterance(text, marks=(Mark(15, Tag("break", 25)),)))
    assert len(shorter) < len(spoken(engine, text))


def test_breaks_at_the_edges_of_the_text(engine: Engine) -> None:
    marks = (Mark(0, Tag("break", 300)), Mark(len(TEXT), Tag("break", 400)))
    assert len(spoken(engine, Utterance(TEXT, marks=marks))) == len(spoken(engine, TEXT)) + 7200 + 9600


@pytest.mark.parametrize(("text", "at"), [("Yes.", 3), ("It is so?!", 8), ("好。", 1)])
def test_a_break_before_the_last_mark_is_one_behind_the_last_word(engine: Engine, text: str, at: int) -> None:
    """It may neither be lost with the silence at the end that is cut, nor depend on where packets end."""
    utterance = Utterance(text, marks=(Mark(at, Tag("break", 500)),))
    whole = spoken(with_chunks(engine, 64), utterance)
    assert not whole[-12000:].any()
    assert whole[:-12000].any()
    np.testing.assert_allclose(spoken(with_chunks(engine, 1), utterance), whole, atol=1e-4)


@pytest.mark.parametrize("speed", [0.5, 0.8, 1.25, 2.0])
def test_speed_changes_the_length(engine: Engine, speed: float) -> None:
    ratio = len(spoken(engine, TEXT)) / len(spoken(engine, Utterance(TEXT, speed=speed)))
    assert ratio == pytest.approx(speed, rel=0.08)


def test_a_speed_tag_holds_from_its_place_on(engine: Engine) -> None:
    plain = [word for chunk in engine.speak(Utterance(TEXT)) for word in chunk.words]
    marked = Utterance(TEXT, marks=(Mark(24, Tag("speed", 2.0)),))
    fast = [word for chunk in engine.speak(marked) for word in chunk.words]
    for a, b in zip(plain, fast, strict=True):
        if a.end <= 22:
            assert (a.start_sample, a.end_sample) == (b.start_sample, b.end_sample)
    assert fast[-1].end_sample < 0.8 * plain[-1].end_sample


def test_pitch_moves_the_fundamental(engine: Engine) -> None:
    def fundamental(samples: np.ndarray) -> float:
        """The strongest period between 80 and 500 Hz, over voiced frames, by autocorrelation."""
        found = []
        for at in range(0, len(samples) - 2048, 1024):
            frame = samples[at : at + 2048] * np.hanning(2048)
            if np.abs(frame).max() < 0.05:
                continue
            power = np.fft.irfft(np.abs(np.fft.rfft(frame, 4096)) ** 2)
            lag = 48 + int(np.argmax(power[48:300]))
            if power[lag] > 0.5 * power[0]:
                found.append(24_000 / lag)
        return float(np.median(found))

    plain, high = (fundamental(spoken(engine, Utterance(TEXT, pitch=shift))) for shift in (0.0, 4.0))
    assert high / plain == pytest.approx(2 ** (4 / 12), rel=0.08)


def test_volume_is_a_factor(engine: Engine) -> None:
    plain, soft = spoken(engine, TEXT), spoken(engine, Utterance(TEXT, volume=0.25))
    np.testing.assert_allclose(soft, plain * 0.25, atol=1e-5)


@pytest.mark.parametrize("text", [TEXT, "您的包裹昨天晚上已经离开仓库。"])
def test_a_change_in_volume_meets_its_word(engine: Engine, text: str) -> None:
    """It goes up between the words: the one before keeps its volume to its end, and the next has the new one from its begin."""
    before, word = [word for chunk in engine.speak(Utterance(text)) for word in chunk.words][3:5]
    plain = spoken(engine, text)
    louder = spoken(engine, Utterance(text, marks=(Mark(word.start, Tag("volume", 1.5)),)))
    assert before.end_sample < word.start_sample
    np.testing.assert_allclose(louder[: before.end_sample], plain[: before.end_sample], atol=1e-6)
    np.testing.assert_allclose(louder[word.start_sample :], 1.5 * plain[word.start_sample :], atol=1e-6)


@pytest.mark.parametrize(("text", "at"), [("Please sit down.", 7), ("She sells seven, six.", 16), ("停一下再说。", 3)])
def test_a_break_lies_between_the_words(engine: Engine, text: str, at: int) -> None:
    chunks = chunks_of(engine, Utterance(text, marks=(Mark(at, Tag("break", 900)),)))
    out, words = np.concatenate([chunk.samples for chunk in chunks]), [word for chunk in chunks for word in chunk.words]
    sounding = np.flatnonzero(out)
    gap = int(np.argmax(np.diff(sounding)))
    first, stop = int(sounding[gap]) + 1, int(sounding[gap + 1])
    assert stop - first > 9600
    before = [word for word in words if word.end <= at]
    after = [word for word in words if word.start >= at]
    assert before
    assert after
    assert all(word.end_sample <= first + 1 for word in before)
    assert all(word.start_sample >= stop - 1 for word in after)


def test_voices_go_by_language(engine: Engine) -> None:
    english, forced = spoken(engine, "Hello."), spoken(engine, Utterance("Hello.", voice="xiaobei"))
    assert english.shape != forced.shape or not np.allclose(english, forced)
    np.testing.assert_array_equal(spoken(engine, "你好。"), spoken(engine, Utterance("你好。", voice="xiaobei")))
    with pytest.raises(VoiceError, match="xiaobei"):
        spoken(engine, Utterance("你好。", voice="heart"))
    with pytest.raises(VoiceError, match="auto, heart, xiaobei"):
        spoken(engine, Utterance("Hello.", voice="nobody"))


@pytest.mark.parametrize("text", ["", "   ", "...", "😊", "，。！？", "\x00\x01", "\ud800", "สวัสดี", "مرحبا"])
def test_text_without_anything_to_say_is_silent(engine: Engine, text: str) -> None:
    chunks = chunks_of(engine, Utterance(text, break_after_ms=100))
    assert [chunk.last for chunk in chunks] == [True]
    assert len(chunks[0].samples) == 2400
    assert not chunks[0].samples.any()


@pytest.mark.parametrize(
    "text",
    ["Hello \ud800 there", "Tea\x00 for\x07 two", "שלום hello", "Hello สวัสดี world", "a" * 3000, "9" * 500, "我" * 300],
)
def test_odd_text_is_spoken_as_far_as_it_can_be(engine: Engine, text: str) -> None:
    out = spoken(engine, text)
    assert np.abs(out).max() > 0.01
    assert np.isfinite(out).all()


@pytest.mark.parametrize(
    "wrong",
    [
        {"speed": 0.0},
        {"speed": float("nan")},
        {"speed": float("inf")},
        {"speed": "fast"},
        {"volume": -1.0},
        {"pitch": 99.0},
        {"break_before_ms": -5},
        {"break_after_ms": 10**9},
        {"marks": (Mark(2, Tag("speed", 0.0)),)},
        {"marks": (Mark(2, Tag("break", float("nan"))),)},
        {"marks": (Mark(2, Tag("pitch", 1000.0)),)},
    ],
    ids=str,
)
def test_values_out_of_range_are_refused(engine: Engine, wrong: dict[str, object]) -> None:
    with pytest.raises(InputError, match="must lie between"):
        engine.begin(Utterance("Hello.", **wrong))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [({"text": None}, "NoneType"), ({"language": "fr"}, "en, zh or None"), ({"marks": (Mark(0, Tag("echo", 1.0)),)}, "'echo'")],
)
def test_what_is_no_utterance_is_refused(engine: Engine, wrong: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        engine.begin(Utterance(**({"text": "Hello."} | wrong)))


class Altered:
    """The model, but one of its answers is another."""

    def __init__(self, engine: Engine, name: str, change: Callable[..., object]) -> None:
        self._model = engine.model
        setattr(self, name, lambda *given: change(getattr(engine.model, name)(*given)))

    def __getattr__(self, name: str) -> object:
        return getattr(self._model, name)


@pytest.mark.parametrize("log_duration", [-1000.0, 9.0, 80.0, float("inf")])
def test_no_phoneme_is_longer_than_speech_can_be(engine: Engine, log_duration: float) -> None:
    """A voice that was trained badly may not take the memory of everyone."""

    def encode_more(encoding: Encoding) -> None:
        engine.model.encode_more(encoding)
        encoding.log_durations = np.full_like(encoding.log_durations, log_duration)

    model = Altered(engine, "encode", lambda made: made)
    model.encode_more = encode_more
    altered = Engine(engine.voice, model, engine.front_end)
    if np.isinf(log_duration):
        with pytest.raises(EngineError, match="durations that are no numbers"):
            altered.begin(Utterance(TEXT))
        return
    speech = altered.begin(Utterance(TEXT, speed=0.5))
    assert len(speech.encoding.encoded) <= speech.frames + 64 <= 64 + 2 * LONGEST_FRAMES * len(speech.encoding.encoded)
    assert np.isfinite(altered.step(speech).samples).all()


@pytest.mark.parametrize("log_f0", [-1000.0, 4.0, 80.0])
def test_no_pitch_makes_samples_that_are_no_numbers(engine: Engine, log_f0: float) -> None:
    def change(raw: np.ndarray) -> np.ndarray:
        raw = raw.copy()
        raw[:, 0:2], raw[:, 2:4] = log_f0, 1.0
        return raw

    altered = Engine(engine.voice, Altered(engine, "prosody", change), engine.front_end)
    assert np.isfinite(spoken(altered, TEXT)).all()


def test_a_voice_that_gives_no_numbers_is_an_error_and_no_noise(engine: Engine) -> None:
    altered = Engine(engine.voice, Altered(engine, "prosody", lambda raw: raw * np.float32(np.nan)), engine.front_end)
    with pytest.raises(EngineError, match="samples that are no numbers"):
        spoken(altered, TEXT)


def test_a_failing_model_becomes_an_engine_error(engine: Engine) -> None:
    class Broken:
        def __getattr__(self, name: str):
            raise RuntimeError("out of memory")

    broken = Engine(engine.voice, Broken(), engine.front_end)
    with pytest.raises(EngineError, match=r"'Hello\.': out of memory"):
        broken.begin(Utterance("Hello."))


@pytest.mark.parametrize("sizes", [(), (0,), (65,), (6, 1000), (6.5,), ("6",), 7, None])
def test_packet_sizes_are_checked(sizes: object) -> None:
    with pytest.raises(InputError, match="chunk_frames"):
        EngineConfig(chunk_frames=sizes)


@pytest.mark.parametrize(
    "wrong", [{"prosody_ahead_frames": 0}, {"open_frames": -1}, {"threads": 0}, {"threads": 1.5}, {"seed": -1}, {"seed": "a"}]
)
def test_numbers_of_the_engine_are_checked(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(wrong))} needs a whole number"):
        EngineConfig(**wrong)


def test_several_utterances_in_one_batch_equal_each_alone(engine: Engine) -> None:
    utterances = [Utterance(TEXT), Utterance("好的，请稍等。", speed=0.9), Utterance("No.")]
    alone = [spoken(engine, utterance) for utterance in utterances]
    speeches = [engine.begin(utterance) for utterance in utterances]
    parts: list[list[np.ndarray]] = [[] for _ in speeches]
    turn = 0
    while any(not speech.done for speech in speeches):
        going = [i for i, speech in enumerate(speeches) if not speech.done and (i != 1 or turn >= 2)]
        count = min(7, *(engine.wanted_frames(speeches[i]) for i in going)) if going else 1
        for i, chunk in zip(going, engine.step_together([speeches[i] for i in going], count), strict=True):
            parts[i].append(chunk.samples)
        turn += 1
    for expected, got in zip(alone, parts, strict=True):
        np.testing.assert_allclose(np.concatenate(got), expected, atol=1e-4)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_length_of_the_speech(engine: Engine) -> None:
    """Ten minutes in one utterance: what is carried does not grow, and memory is back after it."""
    speech = engine.begin(Utterance(" ".join([TEXT.replace(".", ",")] * 240)))
    engine.complete(speech)
    assert speech.frames * FRAME_SAMPLES / 24_000 > 600
    at_start = peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    made_s = 0.0
    while not speech.done:
        made_s += engine.step(speech).duration_s
        if made_s < 30:
            at_start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert made_s > 600
    assert peak - at_start < 20_000  # kB


def pauses_and_packets(engine: Engine, utterance: Utterance, sizes: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """The samples at which long pauses end, and those at which packets do."""
    engine = with_chunks(engine, *sizes)
    speech = engine.begin(utterance)
    ends = [speech.plan.shaper.placed((close - speech.plan.unheard) * FRAME_SAMPLES) for close in speech.plan.closes]
    packets = []
    while not speech.done:
        chunk = engine.step(speech)
        packets.append(chunk.start_sample + len(chunk.samples))
    return ends, packets


@pytest.mark.parametrize("sizes", [(64,), (6, 8, 12, 20, 32, 48, 64), (3,)], ids=str)
@pytest.mark.parametrize("ms", [150, 900])
def test_a_long_pause_closes_a_packet(engine: Engine, ms: int, sizes: tuple[int, ...]) -> None:
    marks = (Mark(4, Tag("break", ms)), Mark(22, Tag("break", ms)))
    pauses, packets = pauses_and_packets(engine, Utterance(TEXT, marks=marks), sizes)
    assert len(pauses) >= 2
    assert set(pauses) <= set(packets)


def test_pauses_that_the_voice_makes_close_packets_too(engine: Engine) -> None:
    slow = Utterance("您的包裹，昨天；晚上。已经离开仓库", speed=0.3)
    pauses, packets = pauses_and_packets(engine, slow, (64,))
    assert pauses
    assert set(pauses) <= set(packets)


def test_no_packet_is_a_crumb(engine: Engine) -> None:
    """A short rest is taken along by the packet before it."""
    speech = engine.begin(Utterance(TEXT))
    wanted = []
    while not speech.done:
        wanted.append(engine.wanted_frames(speech))
        engine.step(speech)
    assert all(after >= before / 2 for before, after in pairwise(wanted[1:]))


def test_a_batch_that_fails_leaves_every_utterance_where_it_was(engine: Engine) -> None:
    class Failing:
        def __init__(self) -> None:
            self.fail = False

        def __getattr__(self, name: str) -> object:
            return getattr(engine.model, name)

        def packet(self, *arguments: object) -> object:
            if self.fail:
                raise MemoryError("too many rows")
            return engine.model.packet(*arguments)

    model = Failing()
    failing = Engine(engine.voice, model, engine.front_end)
    speeches = [failing.begin(Utterance(text)) for text in (TEXT, "好的，请稍等。")]
    parts = [[chunk.samples] for chunk in failing.step_together(speeches, 8)]
    model.fail = True
    with pytest.raises(EngineError, match="too many rows"):
        failing.step_together(speeches, 8)
    model.fail = False
    for speech, part in zip(speeches, parts, strict=True):
        while not speech.done:
            part.append(failing.step(speech).samples)
        np.testing.assert_allclose(np.concatenate(part), spoken(engine, speech.utterance), atol=1e-4)

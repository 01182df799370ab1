"""Turns of a live session in virtual time: order, words, what was heard, what is dropped, and the bounds."""

from __future__ import annotations

import asyncio
import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.voice_agent.server.live_rig import Client, session_with
from voice_agent.errors import BusyError, InputError
from voice_agent.server.config import Limits, ServerConfig
from voice_agent.server.live_events import Audio, Cancelled, Configured, Done, Failed, Flushed, Heard, Started, Words
from voice_agent.server.live_session import Session
from voice_agent.server.raw_audio import TurnEncoder
from voice_agent.server.refusals import RefusedError
from voice_agent.server.service import Service
from voice_agent.server.speaking import Speaking
from voice_agent.start_buffer import MARGIN
from voice_agent.testing.clock import run_virtual
from voice_agent.testing.fake_engine import FakeSynthesizer

CONFIG = ServerConfig()
TEXT = "The parcel left on Monday. It costs seven dollars! "


def tokens(session: Session, text: str, size: int = 3) -> None:
    for start in range(0, len(text), size):
        session.append(text[start : start + size])


def check_line(client: Client) -> None:
    """Audio belongs to the turn that began last, without a hole; nothing of a turn comes when it is over or cut."""
    epoch, sent, over = 0, 0, 0
    for event in client.events:
        if isinstance(event, Started):
            assert event.epoch > max(epoch, over)
            epoch, sent = event.epoch, 0
        elif isinstance(event, Audio):
            assert (event.epoch, event.start) == (epoch, sent)
            assert event.samples
            sent += event.samples
        elif isinstance(event, Words):
            assert event.epoch == epoch
            assert all(word.end_ms > word.start_ms for word in event.words)
        elif isinstance(event, Done | Flushed):
            assert (event.epoch, event.samples) == (epoch, sent)
        if isinstance(event, Done | Cancelled):
            over = event.epoch
        elif isinstance(event, Heard):
            over = epoch
        elif isinstance(event, Audio | Words | Flushed):
            assert event.epoch > over


def test_a_turn_from_its_first_token_to_its_end():
    async def main():
        async with session_with(CONFIG) as (session, client):
            tokens(session, TEXT)
            session.end()
            done = await client.until(Done)
            assert done.report.text == TEXT
            assert len(client.audio(1)) == 2 * done.samples > 48_000
            words = client.words(1)
            assert [text for text, _, _ in words] == [
                "The",
                "parcel",
                "left",
                "on",
                "Monday.",
                "It",
                "costs",
                "seven",
                "dollars!",
            ]
            pcm = np.frombuffer(client.audio(1), "<i2")
            for _, start_ms, end_ms in words:  # where words sound there is sound
                middle = round((start_ms + end_ms) * 12)
                assert pcm[middle] or pcm[middle - 600]
            assert client.events[0] == Started(1, "pcm_s16le", 24_000)
            check_line(client)

    run_virtual(main())


def test_the_first_sound_does_not_wait_for_the_end():
    async def main():
        async with session_with(CONFIG) as (session, client):
            tokens(session, "Good morning to you. And how are")
            await client.until(Audio)
            assert not client.of(Done)
            tokens(session, " you today?")
            session.end()
            await client.until(Done)

    run_virtual(main())


def test_a_flush_speaks_what_is_there_and_the_turn_goes_on():
    async def main():
        async with session_with(CONFIG) as (session, client):
            session.append("no full stop here")
            await asyncio.sleep(5)
            session.flush()
            flushed = await client.until(Flushed)
            assert flushed.samples == len(client.audio(1)) // 2 > 24_000
            assert [text for text, _, _ in client.words(1)] == ["no", "full", "stop", "here"]
            assert not client.of(Done)
            session.append("and more")
            session.flush()
            session.flush()
            assert (await client.until(Flushed, 3)).samples > flushed.samples
            session.end()
            done = await client.until(Done)
            assert done.report.text == "no full stop hereand more"
            check_line(client)

    run_virtual(main())


def test_turns_wait_for_one_another():
    async def main():
        async with session_with(CONFIG) as (session, client):
            for text in ("One.", "Two two.", ""):
                session.append(text)
                session.end()
            await client.until(Done, 3)
            assert [event.report.text for event in client.of(Done)] == ["One.", "Two two.", ""]
            assert client.of(Done)[2].samples == 0
            check_line(client)

    run_virtual(main())


def test_after_a_cancel_nothing_old_comes_and_a_new_turn_begins_at_once():
    async def main():
        async with session_with(CONFIG) as (session, client):
            tokens(session, TEXT * 4)
            session.end()
            session.append("A turn that waits.")
            await client.until(Audio, 3)
            await asyncio.sleep(1.0)
            session.cancel()
            began_s = asyncio.get_running_loop().time()
            session.append("Now this.")
            session.end()
            cancelled = await client.until(Cancelled)
            assert cancelled.epoch == 2
            assert cancelled.heard is not None
            assert cancelled.heard.epoch == 1
            assert (TEXT * 4).startswith(cancelled.heard.text)
            assert cancelled.heard.text.startswith("The parcel left")
            done = await client.until(Done)
            assert (done.epoch, done.report.text) == (3, "Now this.")
            first = next(i for i, event in enumerate(client.events) if isinstance(event, Audio) and event.epoch == 3)
            assert client.times[first] - began_s < 0.2
            check_line(client)

    run_virtual(main())


@pytest.mark.parametrize(("encoding", "rate"), [("pcm_s16le", 24_000), ("mulaw", 8_000), ("pcm_f32le", 44_100)])
def test_a_truncate_is_answered_with_exactly_what_was_heard(encoding, rate):
    async def main():
        for per_mille in range(0, 1001, 50):
            async with session_with(CONFIG, encoding=encoding, sample_rate=rate) as (session, client):
                session.append(TEXT)
                session.end()
                done = await client.until(Done)
                played = done.samples * per_mille // 1000
                words = client.words(1)
                session.truncate(1, played)
                heard = await client.until(Heard)
                at_ms = 1000 * played / rate
                count = sum((start_ms + end_ms) / 2 <= at_ms for _, start_ms, end_ms in words[:7])
                spoken = [text for text, _, _ in words[:count]]
                if count == 7:
                    assert heard.text.startswith("The parcel left on Monday. It costs")
                else:
                    assert heard.text == TEXT[: len(heard.text)]
                    assert heard.text.split() == spoken
                assert heard.samples == played
                assert heard.complete == (per_mille == 1000)
                assert not heard.complete or heard.text == TEXT

    run_virtual(main())


def test_a_truncate_stops_what_is_still_to_come():
    async def main():
        async with session_with(CONFIG) as (session, client):
            session.append(TEXT * 5)
            session.end()
            session.append("The next turn.")
            session.end()
            await client.until(Audio, 4)
            session.truncate(1, 9_000)
            heard = await client.until(Heard)
            assert heard.text == "The"
            session.append("What now?")
            session.end()
            assert (await client.until(Done)).epoch == 3
            session.truncate(1, 0)  # a late second word on an old turn
            assert (await client.until(Heard, 2)).text == ""
            check_line(client)

    run_virtual(main())


def test_unknown_turns_are_refused():
    async def main():
        async with session_with(CONFIG) as (session, client):
            for epoch in (0, 1, 99):
                with pytest.raises(RefusedError, match="is none of the last"):
                    session.truncate(epoch, 0)
                with pytest.raises(RefusedError, match="is none of the last"):
                    session.played(epoch, 0)
            for _ in range(20):
                session.append("Hi.")
                session.end()
            await client.until(Done, 20)
            with pytest.raises(RefusedError, match="is none of the last"):
                session.truncate(3, 100)
            session.truncate(20, 100)

    run_virtual(main())


def test_no_more_is_sent_ahead_than_agreed():
    async def main():
        async with session_with(CONFIG, ahead_s=2.0) as (session, client):
            tokens(session, TEXT * 6)
            session.end()
            began_s = None
            for _ in range(300):
                await asyncio.sleep(0.05)
                if client.of(Audio):
                    now_s = asyncio.get_running_loop().time()
                    began_s = client.times[client.events.index(client.of(Audio)[0])] if began_s is None else began_s
                    ahead_s = len(client.audio(1)) / 48_000 - (now_s - began_s)
                    assert ahead_s < 2.3
            await client.until(Done)
            assert client.of(Done)[0].samples > 15 * 24_000

    run_virtual(main())


def test_with_reports_only_what_was_played_makes_room():
    async def main():
        async with session_with(CONFIG, ahead_s=1.0) as (session, client):
            tokens(session, TEXT * 2)
            session.end()
            await client.until(Audio)
            session.played(1, 0)
            await asyncio.sleep(60)
            stopped = len(client.audio(1)) // 2
            assert 24_000 <= stopped <= 24_000 + 9_600
            session.played(1, 12_000)
            await asyncio.sleep(60)
            assert 12_000 - 4_800 <= len(client.audio(1)) // 2 - stopped <= 12_000 + 4_800
            session.played(1, 10**9)  # never more than was sent
            while not client.of(Done):
                await asyncio.sleep(0.1)
                session.played(1, len(client.audio(1)) // 2)
            session.append("Next.")
            await client.until(Audio, len(client.of(Audio)) + 1)
            session.cancel()
            cancelled = await client.until(Cancelled)
            assert cancelled.heard is not None
            assert cancelled.heard.epoch == 1  # nothing of the second was played
            assert cancelled.heard.text.strip() == (TEXT * 2).strip()

    run_virtual(main())


def test_too_much_text_is_refused_and_what_was_taken_is_spoken():
    async def main():
        limits = Limits(text_chars=6_000)
        async with session_with(CONFIG, limits=limits, ahead_s=3600.0) as (session, client):
            session.append("word " * 1000)
            with pytest.raises(RefusedError, match="nothing of this message was taken") as refused:
                session.append("more " * 300)
            assert refused.value.status == 429
            assert refused.value.retryable
            session.append("Last. ")
            session.end()
            done = await client.until(Done, limit_s=5000)
            assert done.report.text == "word " * 1000 + "Last. "
            session.append("And on.")

    run_virtual(main())


def test_too_many_turns_are_refused():
    async def main():
        async with session_with(CONFIG) as (session, client):
            for _ in range(64):
                session.append("x")
                session.end()
            with pytest.raises(RefusedError, match="64 turns wait"):
                session.append("x")
            session.cancel()
            session.append("Again.")
            session.end()
            await client.until(Done)

    run_virtual(main())


def test_a_sentence_that_fails_is_told_at_once_and_the_rest_is_spoken():
    async def main():
        engine = FakeSynthesizer(fails=lambda utterance: "bad" in utterance.text)
        async with session_with(CONFIG, engine) as (session, client):
            session.append("The first sentence is good. This one is bad. ")
            session.flush()
            await client.until(Flushed)
            failed = client.of(Failed)
            assert [(each.epoch, each.text, each.error.status) for each in failed] == [(1, "This one is bad.", 500)]
            session.append("The last is good again.")
            session.end()
            done = await client.until(Done)
            assert done.report.unspoken == ("This one is bad.",)
            assert len(client.of(Failed)) == 1
            check_line(client)

    run_virtual(main())


class Full(FakeSynthesizer):
    """Has no place for the first who asks."""

    asked = 0

    def open(self, priority="interactive"):
        self.asked += 1
        if self.asked == 1:
            raise BusyError("all places are taken; try again in 2 s", 2.0)
        return super().open(priority)


def test_a_full_engine_is_told_and_the_session_goes_on():
    async def main():
        async with session_with(CONFIG, Full()) as (session, client):
            session.append("Lost. ")
            failed = await client.until(Failed)
            assert (failed.error.status, failed.error.retry_after_s, failed.epoch) == (503, 2.0, 1)
            session.append("Of the same turn.")
            session.end()
            session.append("A new turn.")
            session.end()
            await client.until(Done, 2)
            assert [event.report.text for event in client.of(Done)] == ["", "A new turn."]

    run_virtual(main())


def test_settings_hold_from_the_next_turn_on():
    async def main():
        async with session_with(CONFIG) as (session, client):
            session.append("One two three.")
            session.configure(Speaking(speed=2.0, sample_rate=8_000, encoding="alaw"))
            session.end()
            session.append("One two three.")
            session.end()
            await client.until(Done, 2)
            assert client.of(Configured)
            assert client.of(Started) == [Started(1, "pcm_s16le", 24_000), Started(2, "alaw", 8_000)]
            slow, quick = client.of(Done)
            assert quick.samples / 8_000 == pytest.approx(slow.samples / 24_000 / 2, rel=0.15)
            with pytest.raises(InputError, match="speed"):
                session.configure(Speaking(speed=9.0))

    run_virtual(main())


def test_a_client_that_takes_nothing_costs_nothing_more():
    async def main():
        async with session_with(CONFIG) as (session, client):
            client.read(False)
            tokens(session, TEXT * 20)
            session.end()
            await asyncio.sleep(60)
            assert len(client.of(Audio)) <= 1
            for _ in range(50):
                session.fail(RefusedError(400, "no"))
            async with asyncio.timeout(1):
                await session.settled()
            for _ in range(14):
                session.fail(RefusedError(400, "no"))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(10):
                    await session.settled()
            client.read(True)
            await session.settled()
            await client.until(Done)

    run_virtual(main())


PIECES = ["Hello. ", "word ", "3.", "14 ", "你好。", "[speed_1.2]", "", "**b", "x" * 50]
ORDERS = st.lists(
    st.one_of(
        st.tuples(
            st.just("append"), st.sampled_from(["Hello. ", "word ", "3.", "14 ", "你好。", "[speed_1.2]", "", "**b", "x" * 50])
        ),
        st.tuples(st.sampled_from(["flush", "end", "cancel"])),
        st.tuples(st.sampled_from(["truncate", "played"]), st.integers(0, 4), st.integers(0, 100_000)),
        st.tuples(st.just("wait"), st.floats(0, 2)),
        st.tuples(st.just("read"), st.booleans()),
    ),
    max_size=30,
)


@settings(max_examples=examples(120))
@given(ORDERS)
def test_any_orders_in_any_order(orders):
    async def main():
        engine = FakeSynthesizer(fails=lambda utterance: utterance.text.startswith("x"))
        async with session_with(CONFIG, engine) as (session, client):
            cuts = 0
            for name, *values in orders:
                if name == "wait":
                    await asyncio.sleep(*values)
                elif name == "read":
                    client.read(*values)
                elif name in ("truncate", "played") and values[0] not in {event.epoch for event in client.of(Started)}:
                    with contextlib.suppress(RefusedError):  # it may have begun without the client having seen it
                        getattr(session, name)(*values)
                        cuts += name == "truncate"
                else:
                    getattr(session, name)(*values)
                    cuts += name in ("cancel", "truncate")
            client.read(True)
            session.configure(Speaking(ahead_s=3600.0))
            session.finish()
        assert len(client.of(Cancelled)) + len(client.of(Heard)) == cuts
        check_line(client)

    run_virtual(main())


def test_many_empty_turns_while_audio_waits():
    """The turn whose audio waits is still known when it is taken."""

    async def main():
        async with session_with(CONFIG, FakeSynthesizer(packet_s=5.0)) as (session, client):
            client.read(False)
            session.append("It left on Monday.")  # one packet: all of the turn waits to be sent
            session.end()
            await asyncio.sleep(1)
            for _ in range(20):
                session.append("")
                session.end()
            await asyncio.sleep(1)
            assert not client.of(Audio)
            client.read(True)
            await client.until(Done, 21)
            check_line(client)
            assert len(client.audio(1)) == 2 * client.of(Done, 1)[0].samples > 24_000

    run_virtual(main())


def test_long_packets_are_encoded_without_keeping_others_waiting():
    lengths: list[int] = []
    others: list[int] = []
    feed = TurnEncoder.feed

    def noted(encoder: TurnEncoder, samples: np.ndarray) -> bytes:
        assert len(others) == len(lengths)  # they ran since the last time
        lengths.append(len(samples))
        asyncio.get_running_loop().call_soon(others.append, len(samples))
        return feed(encoder, samples)

    async def main():
        async with session_with(CONFIG, FakeSynthesizer(packet_s=5.0), speed=2.0) as (session, client):
            tokens(session, TEXT)
            session.end()
            await client.until(Done)
            assert len(client.of(Audio)) < len(lengths)
            assert max(lengths) <= 0.3 * 24_000

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TurnEncoder, "feed", noted)
        run_virtual(main())


def test_half_a_character_is_a_question_mark():
    async def main():
        async with session_with(CONFIG) as (session, client):
            session.append("\ud800 All is well, 你好. \udfff")
            session.end()
            assert (await client.until(Done)).report.text == "? All is well, 你好. ?"

    run_virtual(main())


# ---- the start of a turn ---------------------------------------------------------------------------------------------


def gaps_s(client: Client, epoch: int) -> list[float]:
    """How long a client that plays what it gets hears nothing inside a turn."""
    until_s, gaps = None, []
    for event, at_s in zip(client.events, client.times, strict=True):
        if isinstance(event, Audio) and event.epoch == epoch:
            if until_s is not None and at_s > until_s + 1e-6:
                gaps.append(at_s - until_s)
            until_s = max(at_s, until_s or at_s) + event.samples / 24_000
    return gaps


async def first_s(session: Session, client: Client, text: str) -> float:
    """Speaks a turn; how long it takes to its first audio."""
    begun_s, turns = asyncio.get_running_loop().time(), len(client.of(Done))
    session.append(text)
    session.end()
    await client.until(Done, turns + 1)
    await asyncio.sleep(10)
    return next(
        at_s - begun_s
        for event, at_s in zip(client.events, client.times, strict=True)
        if isinstance(event, Audio) and event.epoch == session.epoch
    )


def test_the_start_is_not_held_back_while_the_engine_keeps_up():
    async def main():
        engine = FakeSynthesizer(cost=0.1)
        async with session_with(CONFIG, engine) as (session, client):
            packet_s = engine.cost * engine.packet_samples / 24_000
            for epoch in range(1, 6):
                assert await first_s(session, client, "One sentence of eight words is spoken here.") == pytest.approx(packet_s)
                assert gaps_s(client, epoch) == []

    run_virtual(main())


def test_after_a_gap_the_next_turns_begin_as_much_later_as_they_must_and_have_none():
    async def main():
        text = "One sentence of eight words is spoken here."
        async with session_with(CONFIG, FakeSynthesizer(cost=1.3)) as (session, client):
            first = await first_s(session, client, text)
            missing_s = sum(gaps_s(client, 1))
            assert missing_s > 0.3
            assert await first_s(session, client, text) == pytest.approx(first + MARGIN * missing_s, abs=0.01)
            assert gaps_s(client, 2) == []

    run_virtual(main())


def test_a_newcomer_to_a_slow_engine_is_held_back_at_once_and_a_whole_answer_never():
    async def main():
        text, engine = "One sentence of eight words is spoken here.", FakeSynthesizer(cost=1.3)
        with Service(CONFIG, engine).streams.open("live", "test", "auto") as stream:
            stream.needs_s.extend([1.0] * 8)
            for whole, held in ((False, True), (True, False)):
                session = Session(engine, CONFIG.limits, stream, Speaking(whole=whole))
                client = Client(session)
                session.append(text)
                session.end()
                session.finish()
                await asyncio.gather(session.run(), client.take())
                assert (gaps_s(client, 1) == []) is held

    run_virtual(main())

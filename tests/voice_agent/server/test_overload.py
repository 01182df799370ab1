"""The engine under more listeners than it can serve: who waits is noticed, and new ones are turned away."""

from __future__ import annotations

import asyncio
import random
from contextlib import ExitStack

import numpy as np
import pytest

from tts_engine.admission import Priority
from tts_engine.types import AudioChunk, AudioFormat, Utterance
from voice_agent.errors import BusyError, EngineError
from voice_agent.protocols import SpeechSession
from voice_agent.server.overload import WatchedEngine
from voice_agent.testing.clock import run_virtual
from voice_agent.testing.fake_engine import FakeSession, FakeSynthesizer, fake_words

TEXT = Utterance("one two three four five six seven eight nine ten")


def watched(most_wait_s: float = 0.5, **options) -> WatchedEngine:
    return WatchedEngine(FakeSynthesizer(**options), most_wait_s, asyncio.get_running_loop().time)


async def play(session: SpeechSession) -> float:
    """Takes all packets as they sound; the seconds of them."""
    clock = asyncio.get_running_loop().time
    until_s, audio_s = clock(), 0.0
    async for chunk in session:
        audio_s += chunk.duration_s
        until_s = max(until_s, clock()) + chunk.duration_s
        await asyncio.sleep(max(0.0, until_s - clock() - 0.3))
    return audio_s


def test_an_engine_that_keeps_up_lets_everyone_in():
    async def main():
        engine = watched(cost=0.1)
        await engine.ready()
        sessions = [engine.open() for _ in range(5)]
        for session in sessions:
            await session.put(TEXT)
            session.end()
        playing = [asyncio.create_task(play(session)) for session in sessions]
        for _ in range(20):
            await asyncio.sleep(0.1)
            assert engine.wait_s < 0.1
            engine.check()
        assert [audio_s > 2 for audio_s in await asyncio.gather(*playing)] == [True] * 5
        assert engine.sessions == 0
        assert engine.wait_s == 0.0

    run_virtual(main())


def test_one_that_does_not_turns_new_ones_away_until_it_does_again():
    async def main():
        engine = watched(cost=3.0)  # a packet of 0.2 s takes 0.6 s
        await engine.ready()
        others = [engine.open() for _ in range(7)]  # who say nothing
        session = engine.open()
        assert engine.wait_s == 0.0  # it has asked for nothing yet
        await session.put(TEXT)
        session.end()
        playing = asyncio.create_task(play(session))
        await asyncio.sleep(0.4)
        assert engine.wait_s == pytest.approx(0.4)
        engine.check()
        await asyncio.sleep(0.15)
        with pytest.raises(BusyError, match="cannot serve more") as refused:
            engine.open()
        assert refused.value.retry_after_s > 0
        assert engine.sessions == 8
        others.pop().cancel()
        engine.check()  # where so few are here, it is the machine that was busy for a moment
        await asyncio.sleep(0.1)  # the first packet is there, and sounds
        assert engine.wait_s == 0.0
        engine.open().cancel()
        await playing
        engine.check()

    run_virtual(main())


def test_who_is_cancelled_or_does_not_take_what_is_made_does_not_count():
    async def main():
        engine = watched(cost=1.0, packet_s=1.0)
        await engine.ready()
        slow, gone = engine.open(), engine.open()
        await slow.put(TEXT)
        await gone.put(TEXT)
        await asyncio.sleep(0.9)
        gone.cancel()
        await asyncio.sleep(10)
        assert slow.buffered_s > 0
        assert engine.wait_s == 0.0
        slow.cancel()
        assert engine.sessions == 0

    run_virtual(main())


def test_an_utterance_that_fails_is_not_waited_for():
    async def main():
        engine = watched(fails=lambda utterance: True)
        await engine.ready()
        session = engine.open()
        await session.put(TEXT)
        packets = aiter(session)
        await anext(packets)
        with pytest.raises(EngineError):
            await anext(packets)
        await asyncio.sleep(100)
        assert engine.wait_s == 0.0
        session.cancel()

    run_virtual(main())


class SharedSession(FakeSession):
    """A session of an engine that makes one packet at a time, whoever asks."""

    async def _speak(self, utterance: Utterance) -> None:
        engine = self._engine
        _, total = fake_words(utterance)
        for start in range(0, total, engine.packet_samples):
            stop = min(start + engine.packet_samples, total)
            async with engine.worker:
                await asyncio.sleep(engine.cost * (stop - start) / 24_000)
            self._give(AudioChunk(np.zeros(stop - start, np.float32), AudioFormat(), utterance, start, (), stop == total))


class SharedEngine(FakeSynthesizer):
    """Makes ``1 / cost`` seconds of audio a second, for all together."""

    def __init__(self, cost: float) -> None:
        super().__init__(cost=cost)
        self.worker = asyncio.Lock()

    def open(self, priority: Priority = "interactive") -> SharedSession:
        return SharedSession(self)


def test_under_four_times_the_load_those_who_are_let_in_are_served():
    async def main():
        clock = asyncio.get_running_loop().time
        engine = WatchedEngine(SharedEngine(cost=1 / 20), 0.5, clock)  # 20 listeners at a time
        await engine.ready()
        waits: list[tuple[float, float]] = []
        counts = {"served": 0, "refused": 0}

        async def client(dice: random.Random) -> None:
            while clock() < 120:
                await asyncio.sleep(dice.uniform(0.1, 2.0))
                try:
                    session = engine.open()
                except BusyError:
                    counts["refused"] += 1
                    await asyncio.sleep(1.0)
                    continue
                asked_s = clock()
                await session.put(TEXT)
                session.end()
                first = await anext(aiter(session))
                waits.append((asked_s, clock() - asked_s))
                await asyncio.sleep(first.duration_s)
                await play(session)
                counts["served"] += 1

        async with asyncio.TaskGroup() as clients:
            for i in range(80):
                clients.create_task(client(random.Random(i)))
        _, samples = fake_words(TEXT)
        assert counts["refused"] > 100
        assert counts["served"] * samples / 24_000 / 120 > 14  # of 20 seconds a second
        settled = sorted(wait_s for asked_s, wait_s in waits if asked_s > 20)
        assert settled[int(0.95 * len(settled))] < 1.0

    run_virtual(main())


def test_one_who_takes_everything_does_not_keep_the_others_out():
    async def main():
        engine = watched(cost=0.0)
        await engine.ready()
        engine.limit = 12.0
        greedy, modest = engine.of("key greedy"), engine.of("key modest")
        held = [greedy.open() for _ in range(12)]  # alone it may have all
        with pytest.raises(BusyError):
            greedy.open()
        mine = [modest.open() for _ in range(6)]  # half of them, though none is free
        with pytest.raises(BusyError):
            modest.open()
        for session in held[:7]:
            session.cancel()
        with pytest.raises(BusyError):  # 11 are open: one place is free, and taken
            [greedy.open() for _ in range(2)]
        for session in mine[3:]:
            session.cancel()
        assert engine.sessions == 9
        [greedy.open() for _ in range(3)]  # nobody else wants them
        assert engine.sessions == 12

    run_virtual(main())


def test_many_with_little_are_turned_away_as_one_would_be():
    async def main():
        engine = watched(cost=0.0)
        await engine.ready()
        engine.limit = 8.0
        for number in range(8):
            engine.of(f"address {number}").open()
        with pytest.raises(BusyError):
            engine.of("address 9").open()

    run_virtual(main())


def test_one_who_waits_for_others_that_have_too_much_is_let_in():
    async def main():
        engine = watched(cost=15.0)
        await engine.ready()
        engine.limit = 8.0
        sessions = [engine.of("key greedy").open() for _ in range(8)]
        for session in sessions[:4]:
            await session.put(TEXT)
        await asyncio.sleep(0.55)
        assert engine.wait_s > 0.5
        with pytest.raises(BusyError):
            engine.check("key greedy")
        engine.check("key modest")
        await asyncio.sleep(1.5)
        assert engine.wait_s > 2.0
        with pytest.raises(BusyError):  # it would only wait like the others
            engine.check("key modest")

    run_virtual(main())


def test_while_a_few_turns_of_one_account_are_short_its_next_ones_wait_and_nobody_elses():
    async def main():
        engine = watched(cost=100.0)
        await engine.ready()
        greedy, modest = engine.of("key greedy"), engine.of("key modest")
        begun: list[int] = []
        sessions = [greedy.open() for _ in range(10)]

        async def begin(number: int) -> None:
            await sessions[number].put(TEXT)
            begun.append(number)
            sessions[number].end()

        beginning = [asyncio.create_task(begin(number)) for number in range(10)]
        await asyncio.sleep(0.01)
        assert begun == [0, 1, 2, 3]
        first = modest.open()
        await asyncio.wait_for(first.put(TEXT), 0.01)  # is not behind them
        sessions[0].cancel()
        await asyncio.sleep(0.01)
        assert begun == [0, 1, 2, 3, 4]
        beginning[5].cancel()  # gives up while it waits
        sessions[6].cancel()  # ends while it waits
        sessions[1].cancel()
        sessions[2].cancel()
        await asyncio.sleep(0.01)
        assert begun == [0, 1, 2, 3, 4, 6, 7, 8]
        await asyncio.sleep(5.0)  # the last has waited for long enough
        told = await asyncio.gather(*beginning, return_exceptions=True)
        assert isinstance(told[9], BusyError)
        assert len(begun) == 8
        for session in (*sessions, first):
            session.cancel()
        assert engine.sessions == 0

    run_virtual(main())


def test_the_next_begin_when_those_before_them_have_some_audio_in_hand():
    async def main():
        clock = asyncio.get_running_loop().time
        engine = watched(cost=0.5)  # after t seconds 2 t are made, and t have been heard
        await engine.ready()
        begun_s: list[float] = []

        async def listen() -> None:
            session = engine.of("key greedy").open()
            await session.put(TEXT)
            begun_s.append(clock())
            session.end()
            async for _ in session:
                pass

        began_s = clock()
        await asyncio.gather(*(listen() for _ in range(8)))
        after_s = [at_s - began_s for at_s in begun_s]
        assert after_s[3] < 0.01
        assert all(0.4 <= at_s < 0.7 for at_s in after_s[4:])

    run_virtual(main())


def test_a_flood_of_one_account_slows_only_itself():
    async def main():
        clock = asyncio.get_running_loop().time
        engine = WatchedEngine(SharedEngine(cost=1 / 10), 0.5, clock)  # 10 listeners at a time
        await engine.ready()
        flood = {"served": 0, "refused": 0}

        async def ask(account: str) -> float:
            session = engine.of(account).open()
            asked_s = clock()
            try:
                await session.put(TEXT)
                session.end()
                packets = aiter(session)
                await anext(packets)
                first_s = clock() - asked_s
                async for _ in packets:  # as it comes, like a download
                    pass
            finally:
                session.cancel()
            return first_s

        async def pester() -> None:
            try:
                await ask("key greedy")
                flood["served"] += 1
            except BusyError:
                flood["refused"] += 1

        async with asyncio.TaskGroup() as tasks:
            for _ in range(60):
                tasks.create_task(pester())
            await asyncio.sleep(0.2)
            waits_s = []
            while engine.sessions:  # as long as the flood lasts
                waits_s.append(await ask("key modest"))
        assert len(waits_s) > 1
        assert max(waits_s) < 0.5
        assert flood["served"] > 10
        assert flood["refused"] > 10
        assert engine.sessions == 0

    run_virtual(main())


def test_while_the_engine_keeps_up_one_account_begins_as_many_as_there_are():
    async def main():
        engine = watched(cost=0.0)
        await engine.ready()
        sessions = [engine.of("address 127.0.0.1").open() for _ in range(30)]
        for session in sessions:
            await asyncio.wait_for(session.put(TEXT), 0.01)

    run_virtual(main())


class Measured(FakeSynthesizer):
    """An engine that says how many listeners it can serve."""

    capacity = 20.0


def test_most_of_what_an_engine_can_serve_is_promised_and_a_bad_moment_changes_nothing():
    async def main():
        engine = WatchedEngine(Measured(cost=0.0), 0.5, asyncio.get_running_loop().time)
        await engine.ready()
        engine.waited(3.0, first=False)
        sessions = [engine.open() for _ in range(18)]
        assert engine.full
        with pytest.raises(BusyError) as refused:
            engine.open()
        assert refused.value.retry_after_s > 0
        sessions[0].cancel()
        assert not engine.full
        engine.open()

    run_virtual(main())


def test_as_many_are_served_at_most_as_the_engine_has_places():
    async def main():
        engine = WatchedEngine(Measured(), 0.5, asyncio.get_running_loop().time, most=3)
        await engine.ready()
        for _ in range(3):
            engine.open()
        with pytest.raises(BusyError):
            engine.open()

    run_virtual(main())


def test_who_has_a_seat_is_turned_away_when_it_comes_or_not_at_all():
    async def main():
        engine = WatchedEngine(Measured(cost=0.0), 0.5, asyncio.get_running_loop().time)
        await engine.ready()
        with ExitStack() as room:
            seats = [room.enter_context(engine.seat("here")) for _ in range(18)]  # nobody speaks, and all may
            with pytest.raises(BusyError), engine.seat("here"):
                pass
            speaking = [seat.open() for seat in seats]
            await asyncio.sleep(60.0)
            with pytest.raises(BusyError):  # those who speak do not fade
                engine.check("here")
            for session in speaking:
                session.cancel()
            await asyncio.sleep(60.0)  # and those who are silent do
            more = [room.enter_context(engine.seat("here")) for _ in range(16)]
            with pytest.raises(BusyError):
                engine.check("here")
            for seat in (*seats, *more):  # nobody of them is turned away
                seat.open()
            assert engine.sessions == 34

    run_virtual(main())


def test_where_more_seats_speak_than_can_be_served_turns_wait_for_those_that_sound():
    async def main():
        clock = asyncio.get_running_loop().time
        engine = WatchedEngine(Measured(cost=0.0), 0.5, clock)  # 18 places, 27 at the very most
        await engine.ready()
        with ExitStack() as room:
            seats = []
            for _ in range(40):
                seats.append(room.enter_context(engine.seat("here")))
                await asyncio.sleep(60.0)
            sessions = [seat.open() for seat in seats]
            begun: list[int] = []

            async def begin(number: int) -> None:
                await sessions[number].put(TEXT)
                begun.append(number)
                sessions[number].end()

            turns = [asyncio.create_task(begin(number)) for number in range(40)]
            await asyncio.sleep(1.0)
            assert begun == list(range(27))
            with pytest.raises(BusyError):
                engine.check("here")
            turns[27].cancel()  # gives up while it waits
            sessions[0].cancel()
            sessions[1].cancel()
            turns[28].cancel()  # just when it is called
            await asyncio.sleep(1.0)
            assert begun == [*range(27), 29, 30]
            await asyncio.sleep(3.5)  # the others have waited for long enough
            told = await asyncio.gather(*turns, return_exceptions=True)
            assert [type(what) for what in told[31:]] == [BusyError] * 9
            for session in sessions:
                session.cancel()
            assert engine.sessions == 0
            await seats[0].open().put(TEXT)  # the line is empty again

    run_virtual(main())


def test_a_burst_that_is_more_than_can_be_served_does_not_keep_the_others_out():
    """One account has begun many turns before it showed how few can be served; they go on, and so do the others'."""

    async def main():
        engine = watched(cost=0.0)
        await engine.ready()
        for _ in range(40):
            await engine.of("key greedy").open().put(TEXT)
        engine.limit = 8.0
        with pytest.raises(BusyError):
            engine.of("key greedy").open()
        with engine.seat("key modest") as seat:
            await asyncio.wait_for(seat.open().put(TEXT), 0.01)  # is in no line behind them
            for _ in range(3):
                await asyncio.wait_for(engine.of("key modest").open().put(TEXT), 0.01)
            with pytest.raises(BusyError):  # that was its half
                engine.check("key modest")

    run_virtual(main())

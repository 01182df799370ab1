"""Files: valid at any moment, whole at the end, and clear words when the disk, the pipe or the path fails."""

from __future__ import annotations

import asyncio
import gzip
import io
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import wave
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tts_engine.errors import InputError
from tts_engine.types import AudioFormat
from voice_agent.audio import pcm_to_samples, samples_to_pcm
from voice_agent.errors import SinkError
from voice_agent.sinks import FileSink
from voice_agent.testing.clicks import find_clicks
from voice_agent.testing.sink_conformance import chunk_of, chunks_of, tone

# What the scripts below write, without end: sample number i has the value i modulo 65536, so a reader sees any loss.
COUNTING = """
import asyncio, sys
import numpy as np
from tts_engine.types import AudioFormat
from voice_agent.audio import pcm_to_samples
from voice_agent.errors import SinkError
from voice_agent.sinks import FileSink
from voice_agent.testing.sink_conformance import chunk_of

async def count(sink, size=480, pause_s=0.0):
    print("started", file=sys.stderr, flush=True)
    async with sink:
        for first in range(0, 10**9, size):
            values = np.arange(first, first + size, dtype=np.int64).astype(np.int16)
            await sink.write(chunk_of(pcm_to_samples(values.astype("<i2").tobytes())))
            await asyncio.sleep(pause_s)
"""


def counted(data: bytes) -> int:
    """How many samples the counting file holds, all of them in order."""
    values = np.frombuffer(data, "<i2")
    assert np.array_equal(values, np.arange(len(values), dtype=np.int64).astype(np.int16))
    return len(values)


def script(body: str, *arguments: str, **options) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", COUNTING + body, *arguments], stderr=subprocess.PIPE, **options)


def await_samples(path: Path) -> None:
    deadline_s = time.monotonic() + 60
    while not (path.exists() and path.stat().st_size > 10_000):
        assert time.monotonic() < deadline_s
        time.sleep(0.005)


async def write(target, samples=None, **options) -> FileSink:
    sink = FileSink(target, **options)
    async with sink:
        for chunk in chunks_of(tone(0.5) if samples is None else samples, 480):
            await sink.write(chunk)
    return sink


class TestFormats:
    @pytest.mark.parametrize("width", [2, 3, 4])
    @pytest.mark.parametrize("channels", [1, 2])
    @pytest.mark.parametrize("rate", [24_000, 44_100])
    async def test_wav_is_read_back(self, tmp_path, width, channels, rate):
        await write(tmp_path / "a.wav", format=AudioFormat(rate, channels, width))
        samples, got_rate = soundfile.read(tmp_path / "a.wav", dtype="float32", always_2d=True)
        assert (got_rate, samples.shape) == (rate, (rate // 2, channels))
        assert find_clicks(samples[:, 0], rate) == []
        expected = tone(0.5, rate=rate)
        assert np.abs(samples[240:-240, -1] - expected[240:-240]).max() < 1e-3
        assert (tmp_path / "a.wav").stat().st_size % 2 == 0

    async def test_raw_pcm_is_the_samples_alone(self, tmp_path):
        for name in ("a.pcm", "a.raw", "A.RAW"):
            await write(tmp_path / name)
            assert (tmp_path / name).read_bytes() == samples_to_pcm(tone(0.5))

    async def test_the_extension_may_be_overruled(self, tmp_path):
        await write(tmp_path / "a.mp3", encoding="pcm")
        assert (tmp_path / "a.mp3").stat().st_size == 24_000

    @pytest.mark.parametrize("name", ["a.flac", "a.ogg", "a.mp3", "noextension", "a.", ".wav", "dir.wav/b"])
    def test_other_extensions_name_what_can_be_written(self, name):
        with pytest.raises(InputError, match=r"\.wav .*\.pcm"):
            FileSink(name)

    @pytest.mark.parametrize("name", ["", "a\0b.wav", "\ud800.wav"])
    def test_impossible_names(self, name):
        with pytest.raises(InputError, match="no file name"):
            FileSink(name)

    async def test_odd_widths_make_no_file(self, tmp_path):
        with pytest.raises(InputError, match="2, 3 or 4"):
            await FileSink(tmp_path / "a.wav", format=AudioFormat(width=8)).start()
        assert not (tmp_path / "a.wav").exists()

    async def test_an_unused_sink_leaves_an_empty_wav(self, tmp_path):
        async with FileSink(tmp_path / "a.wav"):
            pass
        assert len(soundfile.read(tmp_path / "a.wav")[0]) == 0


class TestValidAtAnyMoment:
    async def test_after_every_chunk(self, tmp_path):
        path, samples = tmp_path / "a.wav", tone(0.2)
        async with FileSink(path) as sink:
            for index, chunk in enumerate(chunks_of(samples, 480), 1):
                await sink.write(chunk)
                with wave.open(str(path)) as reader:
                    assert reader.getnframes() == index * 480
                    assert len(reader.readframes(10**6)) == index * 960
                assert len(soundfile.read(path)[0]) == index * 480

    @pytest.mark.parametrize("attempt", range(5))
    def test_killed_in_the_middle(self, tmp_path, attempt):
        path = tmp_path / "a.wav"
        with script("asyncio.run(count(FileSink(sys.argv[1])))", str(path)) as process:
            await_samples(path)
            time.sleep(random.Random(attempt).uniform(0.0, 0.2))
            process.send_signal(signal.SIGKILL)
        with wave.open(str(path)) as reader:
            frames = reader.getnframes()
            assert frames > 0
            assert counted(reader.readframes(frames)) == frames
        assert len(soundfile.read(path)[0]) >= frames
        # No more than the chunk that was under way is missing from the header.
        assert (path.stat().st_size - 44) // 2 - frames <= 480

    def test_interrupted_by_control_c(self, tmp_path):
        path = tmp_path / "a.wav"
        with script("asyncio.run(count(FileSink(sys.argv[1]), pause_s=0.001))", str(path)) as process:
            await_samples(path)
            process.send_signal(signal.SIGINT)
            process.stderr.read()
            process.wait(60)
        with wave.open(str(path)) as reader:
            assert counted(reader.readframes(10**9)) == reader.getnframes() > 0


class TestFailures:
    async def test_missing_folder(self, tmp_path):
        with pytest.raises(SinkError, match=r"nowhere does not exist; create it"):
            await FileSink(tmp_path / "nowhere" / "a.wav").start()

    async def test_a_folder_and_a_forbidden_file(self, tmp_path, monkeypatch):
        (tmp_path / "a.wav").mkdir()
        with pytest.raises(SinkError, match=r"cannot write .*a\.wav: Is a directory"):
            await FileSink(tmp_path / "a.wav").start()

        def refuse(*_):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("voice_agent.sinks.byte_writer.io.FileIO", type("FileIO", (), {"__new__": refuse}))
        with pytest.raises(SinkError, match=r"cannot write .*b\.wav: Permission denied"):
            await FileSink(tmp_path / "b.wav").start()

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
    async def test_a_disk_that_is_full_from_the_start(self):
        with pytest.raises(SinkError, match=r"the disk is full: /dev/full holds 0\.00 s"):
            await FileSink("/dev/full", encoding="wav").start()

    def test_a_disk_that_fills_up(self, tmp_path):
        path = tmp_path / "a.wav"
        body = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_001, 100_001))
try:
    asyncio.run(count(FileSink(sys.argv[1])))
except SinkError as error:
    print(error)
"""
        out, _ = script(body, str(path), stdout=subprocess.PIPE).communicate(timeout=60)
        # 44 bytes of header, 49,978 whole samples, and one byte that is no sample.
        assert f"the disk is full: {path} holds 2.08 s of speech and is a valid file; free" in out.decode()
        with wave.open(str(path)) as reader:
            assert counted(reader.readframes(10**6)) == reader.getnframes() == 49_978
        assert path.stat().st_size == 100_000
        assert len(soundfile.read(path)[0]) == 49_978

    @pytest.mark.peer
    def test_a_real_full_disk(self, tmp_path):
        disk = tmp_path / "disk"
        disk.mkdir()
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True, check=False)
        if mount.returncode:
            pytest.skip("no file system can be mounted here")
        try:
            samples = np.tile(tone(1.0), 3)
            with pytest.raises(SinkError, match=r"the disk is full: .* holds 1\.3\d s of speech and is a valid file"):
                asyncio.run(write(disk / "a.wav", samples))
            got, _ = soundfile.read(disk / "a.wav", dtype="float32")
            assert len(got) > 31_000
            assert np.abs(got - samples[: len(got)]).max() < 2**-15
        finally:
            subprocess.run(["umount", str(disk)], check=True)

    async def test_a_failed_sink_stays_failed_and_closes_quietly(self):
        buffer = io.BytesIO()
        sink = FileSink(buffer)
        await sink.start()
        buffer.close()
        for _ in range(2):
            with pytest.raises(SinkError, match=r"cannot write the file object: .*closed file"):
                await sink.write(chunk_of(tone(0.1)))
        await sink.clear()
        await sink.close()


class TestStandardOutput:
    def test_wav_streams_into_a_pipe(self):
        body = """
async def main():
    async with FileSink("-") as sink:
        await sink.write(chunk_of(np.full(24_000, 0.25, dtype=np.float32)))
asyncio.run(main())
"""
        out, err = script(body, stdout=subprocess.PIPE).communicate(timeout=60)
        assert err == b""
        samples, rate = soundfile.read(io.BytesIO(out), dtype="float32")
        assert (len(samples), rate) == (24_000, 24_000)
        assert np.all(samples == 0.25)

    def test_a_file_behind_it_gets_its_sizes(self, tmp_path):
        body = """
print("text before", flush=True)
async def main():
    async with FileSink("-") as sink:
        await sink.write(chunk_of(np.full(2400, 0.25, dtype=np.float32)))
asyncio.run(main())
"""
        with open(tmp_path / "out", "wb") as file:
            script(body, stdout=file).communicate(timeout=60)
        data = (tmp_path / "out").read_bytes()
        assert data.startswith(b"text before\nRIFF")
        with wave.open(io.BytesIO(data[12:])) as reader:
            assert reader.getnframes() == 2400

    def test_appending_leaves_what_is_there(self, tmp_path):
        (tmp_path / "out").write_bytes(b"before")
        body = """
async def main():
    async with FileSink("-") as sink:
        await sink.write(chunk_of(np.full(2400, 0.25, dtype=np.float32)))
asyncio.run(main())
"""
        with open(tmp_path / "out", "ab") as file:
            script(body, stdout=file).communicate(timeout=60)
        data = (tmp_path / "out").read_bytes()
        assert data.startswith(b"beforeRIFF")
        assert len(data) == 6 + 44 + 4800
        assert len(soundfile.read(io.BytesIO(data[6:]))[0]) == 2400

    def test_a_reader_that_leaves(self):
        body = """
try:
    asyncio.run(count(FileSink("-", encoding="pcm")))
except SinkError as error:
    print("failed:", error, file=sys.stderr)
    sys.exit(3)
"""
        with script(body, stdout=subprocess.PIPE) as process:
            assert counted(process.stdout.read(48_000)) == 24_000
            process.stdout.close()
            lines = process.stderr.read().decode().splitlines()
            assert process.wait(60) == 3
        assert lines[0] == "started"
        assert len(lines) == 2
        assert "failed: the reader of the standard output went away after" in lines[1]

    def test_a_reader_that_stops_reading_does_not_stop_the_loop(self):
        body = """
async def main():
    ticks = 0
    async def tick():
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1
    ticking = asyncio.ensure_future(tick())
    try:
        await asyncio.wait_for(count(FileSink("-")), 1.0)
    except TimeoutError:
        print("ticks", ticks, file=sys.stderr)
asyncio.run(main())
"""
        with script(body, stdout=subprocess.PIPE) as process:
            lines = process.stderr.read().decode().split()
            assert process.wait(60) == 0
            data = process.stdout.read()
        assert lines[:2] == ["started", "ticks"]
        assert int(lines[2]) > 5  # 100 on a machine that has time; stopped, the loop would not even come to its end
        counted(data[44:])

    def test_none_at_all(self):
        body = """
import os
os.close(1); sys.stdout = None
try:
    asyncio.run(FileSink("-").start())
except SinkError as error:
    print(error, file=sys.stderr)
"""
        _, err = script(body).communicate(timeout=60)
        assert err == b"there is no standard output to write to; name a file, such as out.wav\n"

    def test_a_terminal_is_spared(self):
        leader, follower = os.openpty()
        body = """
from tts_engine.errors import InputError
try:
    asyncio.run(FileSink("-").start())
except InputError as error:
    print(error, file=sys.stderr)
"""
        _, err = script(body, stdout=follower).communicate(timeout=60)
        os.close(leader)
        os.close(follower)
        assert b"audio is not written to a terminal" in err


class TestFileObjects:
    async def test_from_where_they_stand_and_left_open(self):
        buffer = io.BytesIO(b"12345")
        buffer.seek(5)
        await write(buffer)
        assert buffer.getvalue()[:5] == b"12345"
        assert len(soundfile.read(io.BytesIO(buffer.getvalue()[5:]))[0]) == 12_000

    async def test_a_buffered_file_is_whole_after_every_chunk(self, tmp_path):
        with open(tmp_path / "a.bin", "wb") as file:  # noqa: ASYNC230
            file.write(b"head")
            sink = FileSink(file)
            await sink.write(chunk_of(tone(0.1)))
            assert len(soundfile.read(io.BytesIO((tmp_path / "a.bin").read_bytes()[4:]))[0]) == 2400
            await sink.close()
            file.write(b"tail")
        assert (tmp_path / "a.bin").read_bytes()[4 + 44 + 4800 :] == b"tail"

    async def test_temporary_files(self):
        with tempfile.NamedTemporaryFile(suffix=".wav") as file:
            await write(file)
            assert len(soundfile.read(file.name)[0]) == 12_000

    async def test_one_that_cannot_go_back(self, tmp_path):
        with gzip.open(tmp_path / "a.wav.gz", "wb") as file:
            await write(file)
        data = gzip.decompress((tmp_path / "a.wav.gz").read_bytes())
        assert len(data) == 44 + 24_000
        assert len(soundfile.read(io.BytesIO(data))[0]) == 12_000

    async def test_text_is_refused(self):
        with pytest.raises(InputError, match="binary"):
            await FileSink(io.StringIO()).start()

    async def test_a_fifo_waits_for_its_reader_and_can_be_cancelled(self, tmp_path):
        os.mkfifo(tmp_path / "a.pcm")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(FileSink(tmp_path / "a.pcm").start(), 0.1)
        reader = asyncio.ensure_future(asyncio.to_thread((tmp_path / "a.pcm").read_bytes))
        await write(tmp_path / "a.pcm", np.tile(tone(1.0), 4))
        assert np.abs(pcm_to_samples(await reader) - np.tile(tone(1.0), 4)).max() < 2**-15

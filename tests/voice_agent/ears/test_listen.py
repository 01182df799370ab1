"""``sayline listen``: recordings of any format, replayed through the ears."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soxr

from tests.voice_agent.ears.test_ears import OVERLAP, WHOLE, turn
from tts_engine.types import AudioFormat
from voice_agent.audio import samples_to_pcm, wav_header

SAYLINE = [sys.executable, "-W", "error", "-m", "voice_agent.cli"]


def listen(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [*SAYLINE, "listen", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def write(path: Path, samples: np.ndarray, rate: int = 16_000, width: int = 2) -> Path:
    channels = 1 if samples.ndim == 1 else samples.shape[1]
    path.write_bytes(wav_header(AudioFormat(rate, channels, width), len(samples)) + samples_to_pcm(samples, width))
    return path


def facts(done: subprocess.CompletedProcess[str]) -> list[dict[str, object]]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_stereo_file_is_microphone_and_playout(tmp_path: Path) -> None:
    file = write(tmp_path / "both.wav", np.stack(OVERLAP, axis=1))
    decided = facts(listen(file, "--json"))
    assert [fact["decision"] for fact in decided] == [type(decision).__name__ for decision in WHOLE]
    assert [fact["at_s"] for fact in decided] == pytest.approx([decision.at_s for decision in WHOLE], abs=0.05)
    turn_fact = decided[-1]
    assert 1.0 < float(str(turn_fact["samples_s"])) < 4.0

    shown = listen(file, "--plot", tmp_path / "picture.png")
    assert "interrupt" in shown.stdout
    assert "1 turn" in shown.stdout.splitlines()[-1]
    assert (tmp_path / "picture.png").read_bytes()[:4] == b"\x89PNG"


def test_two_files_of_different_rates(tmp_path: Path) -> None:
    microphone, played = OVERLAP
    one = write(tmp_path / "mic.wav", soxr.resample(microphone, 16_000, 44_100), 44_100, 3)
    two = write(tmp_path / "played.wav", soxr.resample(played, 16_000, 24_000)[: 7 * 24_000], 24_000)
    decided = facts(listen(one, "--played", two, "--json"))
    assert "Interrupt" in [fact["decision"] for fact in decided]


def test_a_header_of_the_extensible_kind_needs_nothing_else(tmp_path: Path) -> None:
    plain = write(tmp_path / "plain.wav", turn())
    data = plain.read_bytes()
    kind = bytes.fromhex("0100000000001000800000aa00389b71")
    header = b"fmt " + struct.pack("<IHHIIHHHHI", 40, 0xFFFE, 1, 16_000, 32_000, 2, 16, 22, 16, 4) + kind
    file = tmp_path / "extensible.wav"
    file.write_bytes(data[:12] + header + data[data.index(b"data") :])
    without = "import sys; sys.modules.update(soundfile=None, av=None); from voice_agent.cli import main; main()"
    command = [sys.executable, "-c", without, "listen", str(file), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert facts(done) == facts(listen(plain, "--json"))


def test_other_formats(tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    for name in ("turn.flac", "turn.ogg"):
        soundfile.write(tmp_path / name, soxr.resample(turn(), 16_000, 48_000), 48_000)
        assert [fact["decision"] for fact in facts(listen(tmp_path / name, "--json"))] == ["SpeechBegan", "TurnEnded"]
    soundfile.write(tmp_path / "float.wav", turn(), 16_000, subtype="FLOAT")
    assert [fact["decision"] for fact in facts(listen(tmp_path / "float.wav", "--json"))] == ["SpeechBegan", "TurnEnded"]


def test_pyav_reads_where_soundfile_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("av")
    soundfile = pytest.importorskip("soundfile")
    from voice_agent.cli.listen import _blocks

    soundfile.write(tmp_path / "turn.flac", np.stack([turn(), turn()], axis=1), 16_000)
    monkeypatch.setitem(sys.modules, "soundfile", None)
    read = np.concatenate(list(_blocks(tmp_path / "turn.flac")))
    assert read.shape == (len(turn()), 2)
    assert np.abs(read[:, 0] - turn()).max() < 1e-3


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (None, [], "is not a file"),
        (b"no audio at all, but some text", [], "cannot be read as audio"),
        (wav_header(AudioFormat(16_000), 0), [], "holds no audio"),
        (wav_header(AudioFormat(16_000), 0), ["--echo", "loud"], "use one of guard, aec, half_duplex, headphones"),
        (wav_header(AudioFormat(16_000), 0), ["--vad-mode", "7"], "equal to 3"),
    ],
)
def test_what_cannot_be_used(tmp_path: Path, make: bytes | None, options: list[str], message: str) -> None:
    file = tmp_path / "recording.wav"
    if make is not None:
        file.write_bytes(make)
    done = listen(file, *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr

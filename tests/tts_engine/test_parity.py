"""The models give the numbers of the voice's test vectors, whole and streaming."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.conftest import DATA
from tts_engine.expansion import PROSODY_REACH_FRAMES, Alignment, condition_prosody, frame_durations
from tts_engine.models.eager import EagerModel
from tts_engine.models.signal import DELAY_MELS, MEL_HOP, signal_step
from tts_engine.nn.attention import Sight

VECTORS = sorted((DATA / "vectors").glob("*.npz"))
SENTENCES = [path for path in VECTORS if path.stem != "vocoder_cut"]
Vector = Mapping[str, np.ndarray]


def load(path: Path) -> Vector:
    with np.load(path) as file:
        return dict(file)


def distance(got: torch.Tensor | np.ndarray, expected: np.ndarray | torch.Tensor) -> float:
    return float((torch.as_tensor(got) - torch.as_tensor(expected)).abs().max())


@pytest.fixture(autouse=True)
def _inference():
    with torch.inference_mode():
        yield


def encode(models: EagerModel, vector: Vector) -> tuple[np.ndarray, np.ndarray]:
    return models.encode(vector["ids"].tolist(), int(vector["speaker"]))


def align(vector: Vector) -> Alignment:
    return Alignment.of(vector["durations"].astype(np.int64))


def decoder_input(models: EagerModel, vector: Vector) -> torch.Tensor:
    encoded, _ = encode(models, vector)
    alignment = align(vector)
    expanded = alignment.expand(encoded, 0, len(alignment))
    told, _ = condition_prosody(models.prosody(expanded))
    return torch.from_numpy(np.concatenate((expanded, told), axis=1))[None]


@pytest.mark.parametrize("path", SENTENCES, ids=lambda path: path.stem)
def test_acoustic_model_equals_the_vectors(models: EagerModel, path: Path) -> None:
    vector = load(path)
    encoded, log_durations = encode(models, vector)
    assert distance(log_durations, vector["log_dur"]) <= 1e-4
    durations = frame_durations(log_durations, float(vector["speed"]))
    assert durations.tolist() == vector["durations"].tolist()
    alignment = Alignment.of(durations)
    raw = models.prosody(alignment.expand(encoded, 0, len(alignment)))
    assert distance(raw, vector["prosody"]) <= 1e-4
    _, f0 = condition_prosody(raw)
    mels = models.acoustic.decode(decoder_input(models, vector))
    assert distance(mels[0], vector["log_mel"]) <= 1e-3
    noise = torch.tensor(vector["noise"])[None]
    if len(f0) * MEL_HOP <= 240_000:
        assert distance(models.vocoder(mels, torch.from_numpy(f0)[None], noise)[0], vector["samples"]) <= 1e-2


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_vocoder_equals_the_vectors(models: EagerModel, path: Path) -> None:
    vector = load(path)
    mels, f0, noise = (torch.tensor(vector[name])[None] for name in ("log_mel", "f0", "noise"))
    assert distance(models.vocoder.excitation(f0, noise)[0, 0], vector["pulses"]) <= 1e-4
    assert distance(models.vocoder(mels, f0, noise)[0], vector["samples"]) <= 1e-5
    if "filters_first_20" in vector:
        filters = models.vocoder.filters(mels, f0)
        got = torch.stack((filters.gain, filters.phase, filters.steady, filters.synchronous))[:, 0, :20]
        assert distance(got.transpose(1, 2), vector["filters_first_20"]) <= 1e-4


@pytest.mark.parametrize("block", [1, 7, 24, 100])
def test_prosody_in_blocks_equals_the_whole(models: EagerModel, block: int) -> None:
    vector = load(DATA / "vectors" / "zh.npz")
    encoded, _ = encode(models, vector)
    alignment = align(vector)
    for at in range(0, len(alignment), block):
        stop = min(at + block, len(alignment))
        low, high = max(0, at - PROSODY_REACH_FRAMES), min(len(alignment), stop + PROSODY_REACH_FRAMES)
        raw = models.prosody(alignment.expand(encoded, low, high))[at - low : stop - low]
        assert distance(raw, vector["prosody"][at:stop]) <= 1e-4


def feed_decoder(models: EagerModel, x: np.ndarray, sizes: list[int]) -> np.ndarray:
    """Log-mels of ``x`` [frames, channels] through the streaming decoder, in steps of ``sizes`` (cycled)."""
    row = models.start()
    out, at, turn = [], 0, 0
    while at < len(x):
        part = x[None, at : at + sizes[turn % len(sizes)]]
        f0 = np.zeros((1, 2 * part.shape[1]), np.float32)
        inputs = models._inputs([row], part, f0, [2 * len(x)])
        sight = {k: torch.from_numpy(inputs[k]) for k in ("cos", "sin", "mask", "closing")}
        memory = [torch.from_numpy(inputs[k]) for k in ("ring", "anchors", "decoder_history")]
        mels, fresh, made, history = models.acoustic.decode_step(torch.from_numpy(part), *memory, Sight(**sight))
        models._remember(row, part.shape[1], {"fresh": fresh.numpy(), "made": made.numpy()}, 0)
        row.decoder_history = history[:, 0].numpy()
        row.frame += part.shape[1]
        out.append(mels[0].numpy())
        at, turn = at + part.shape[1], turn + 1
    return np.concatenate(out)


@pytest.mark.parametrize("sizes", [[1], [3], [7], [64], [6, 8, 12, 20, 32, 48, 64], [64, 1, 63, 2]], ids=str)
def test_decoder_in_steps_equals_the_whole(models: EagerModel, sizes: list[int]) -> None:
    x = decoder_input(models, load(DATA / "vectors" / "en_long.npz"))
    assert distance(feed_decoder(models, x[0].numpy(), sizes), models.acoustic.decode(x)[0]) <= 1e-4


def test_anchors_beyond_the_kept_blocks_are_forgotten_alike(models: EagerModel) -> None:
    """More than 32 blocks: the whole form drops old anchors as the ring does."""
    generator = torch.Generator().manual_seed(0)
    shape = models.acoustic.shape
    x = torch.randn(1, 64 * 35 + 10, shape.channels + 10, generator=generator) * 0.3
    assert distance(feed_decoder(models, x[0].numpy(), [50]), models.acoustic.decode(x)[0]) <= 1e-3


def cut(whole: np.ndarray, low: int, high: int, value: float) -> np.ndarray:
    """``whole[low:high]`` with ``value`` where there is nothing: what stands outside must not matter."""
    index = np.arange(low, high)
    out = np.full((high - low, *whole.shape[1:]), value, np.float32)
    inside = (index >= 0) & (index < len(whole))
    out[inside] = whole[index[inside]]
    return out


def signal_of(models: EagerModel, vectors: list[Vector], size: int, late: list[int]) -> list[np.ndarray]:
    """Samples of several vectors in one batch of the streaming vocoder, ``size`` mel frames a step; row i sets in
    ``late[i]`` steps after the first, in a slot that has been used before."""
    rows = [models.start() for _ in vectors]
    lengths = [len(vector["f0"]) for vector in vectors]
    steps = max(wait + -(-(length + DELAY_MELS) // size) for wait, length in zip(late, lengths, strict=True))
    out: list[list[np.ndarray]] = [[] for _ in vectors]
    body = [(row.input_history[None], row.body_history[:, None]) for row in rows]
    for step in range(steps):
        given = []
        for i, wait in enumerate(late):
            if step == wait:
                rows[i] = models.start()
                body[i] = (rows[i].input_history[None], rows[i].body_history[:, None])
            given.append((step - wait if step >= wait else step) * size)
        mels, f0, noise = (
            np.stack(
                [
                    cut(v[name], scale * (g - back), scale * (g - back + size), value)
                    for v, g in zip(vectors, given, strict=True)
                ]
            )
            for name, scale, back, value in (("log_mel", 1, 0, -3.0), ("f0", 1, 0, 120.0), ("noise", MEL_HOP, 2, 0.3))
        )
        places = np.array(given)[:, None] + np.arange(-3, size)
        keep = ((places >= 0) & (places < np.array(lengths)[:, None])).astype(np.float32)
        first = torch.from_numpy(np.concatenate([pair[0] for pair in body]))
        others = torch.from_numpy(np.concatenate([pair[1] for pair in body], axis=1))
        tensors = [torch.from_numpy(array) for array in (mels, f0, keep)]
        filters, first, others = models.vocoder.body_step(*tensors, first, others)
        body = [(first[i : i + 1].numpy(), others[:, i : i + 1].numpy()) for i in range(len(rows))]
        samples = signal_step([row.signal for row in rows], given, lengths, filters.numpy(), f0, noise, models.noise_shape)
        for i, wait in enumerate(late):
            if step >= wait:
                out[i].append(samples[i])
    begin = DELAY_MELS * MEL_HOP
    return [np.concatenate(parts)[begin : begin + MEL_HOP * n] for parts, n in zip(out, lengths, strict=True)]


@pytest.mark.parametrize("size", [1, 2, 5, 12, 64])
@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_vocoder_in_steps_equals_the_whole(models: EagerModel, path: Path, size: int) -> None:
    vector = load(path)
    assert distance(signal_of(models, [vector], size, [0])[0], vector["samples"]) <= 1e-5


def test_vocoder_rows_that_start_at_different_times_equal_the_same_alone(models: EagerModel) -> None:
    vectors = [load(DATA / "vectors" / name) for name in ("en_short.npz", "vocoder_cut.npz", "en_xiaobei_fast.npz")]
    for vector, samples in zip(vectors, signal_of(models, vectors, 6, [0, 4, 2]), strict=True):
        assert distance(samples, vector["samples"]) <= 1e-5


def chain(models: EagerModel, vectors: list[Vector], size: int, late: list[int]) -> list[np.ndarray]:
    """Samples of several sentences through ``packet``, ids to samples; row i joins the batch ``late[i]`` steps late."""
    scripts = []
    for vector in vectors:
        alignment = align(vector)
        expanded = alignment.expand(encode(models, vector)[0], 0, len(alignment))
        told, f0 = condition_prosody(models.prosody(expanded))
        scripts.append((np.concatenate((expanded, told), axis=1), f0, vector["noise"]))
    rows = [models.start() for _ in vectors]
    lengths = [len(x) for x, _, _ in scripts]
    out: list[list[np.ndarray]] = [[] for _ in vectors]
    step = 0
    while True:
        going = [i for i in range(len(rows)) if step >= late[i] and rows[i].frame < lengths[i] + 2]
        if not going and step > max(late):
            break
        step += 1
        if not going:
            continue
        at = [rows[i].frame for i in going]
        x, f0, noise = (
            np.stack(
                [
                    cut(scripts[i][kind], scale * (a - back), scale * (a - back + size), 0.5)
                    for i, a in zip(going, at, strict=True)
                ]
            )
            for kind, scale, back in ((0, 1, 0), (1, 2, 0), (2, 2 * MEL_HOP, 1))
        )
        samples = models.packet([rows[i] for i in going], x, f0, noise, [lengths[i] for i in going])
        for i, row in zip(going, samples, strict=True):
            out[i].append(row)
    return [np.concatenate(parts)[1200 : 1200 + 600 * n] for parts, n in zip(out, lengths, strict=True)]


@pytest.mark.parametrize("size", [1, 6, 23, 64])
def test_two_rows_that_start_at_different_times_equal_the_same_two_alone(models: EagerModel, size: int) -> None:
    vectors = [load(DATA / "vectors" / name) for name in ("zh.npz", "en_short.npz")]
    alone = [chain(models, [vector], 64, [0])[0] for vector in vectors]
    for got, expected, vector in zip(chain(models, vectors, size, [0, 2]), alone, vectors, strict=True):
        assert distance(got, expected) <= 1e-4
        assert distance(got, vector["samples"]) <= 1e-2


def test_a_padded_batch_encodes_as_its_rows_alone(models: EagerModel) -> None:
    vectors = [load(path) for path in SENTENCES]
    longest = -(-max(len(vector["ids"]) for vector in vectors) // 32) * 32 + 32
    ids = torch.stack([F.pad(torch.tensor(v["ids"], dtype=torch.int64), (0, longest - len(v["ids"]))) for v in vectors])
    keep = torch.stack([(torch.arange(longest) < len(v["ids"])).to(torch.float32) for v in vectors])
    speakers = torch.tensor([int(vector["speaker"]) for vector in vectors])
    _, log_durations = models.acoustic.encode(ids, speakers, keep)
    for row, vector in zip(log_durations, vectors, strict=True):
        assert distance(row[: len(vector["ids"])], vector["log_dur"]) <= 1e-4

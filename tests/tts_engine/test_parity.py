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
from tts_engine.models.vocoder import DELAY_MELS, MEL_HOP, UNKNOWN_LENGTH

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


@pytest.mark.parametrize("sizes", [[1], [3], [7], [64], [6, 8, 12, 20, 32, 48, 64], [64, 1, 63, 2]], ids=str)
def test_decoder_in_steps_equals_the_whole(models: EagerModel, sizes: list[int]) -> None:
    x = decoder_input(models, load(DATA / "vectors" / "en_long.npz"))
    state = models.acoustic.init_state(1)
    parts, at, turn = [], 0, 0
    while at < x.shape[1]:
        size = sizes[turn % len(sizes)]
        parts.append(models.acoustic.decode_step(x[:, at : at + size], state))
        at, turn = at + size, turn + 1
    assert distance(torch.cat(parts, dim=1), models.acoustic.decode(x)) <= 1e-4


def stream_vocoder(models: EagerModel, vector: Vector, size: int, end_known: bool = True) -> torch.Tensor:
    """The samples of a vector through the streaming form, ``size`` mel frames a step."""
    mels, f0, noise = (torch.tensor(vector[name])[None] for name in ("log_mel", "f0", "noise"))
    count = f0.shape[1]
    spare = DELAY_MELS + (-(count + DELAY_MELS)) % size
    mels = F.pad(mels, (0, 0, 0, spare), value=-3.0)  # what stands beyond the end must not matter
    f0 = F.pad(f0, (0, spare), value=120.0)
    noise = F.pad(noise, (2 * MEL_HOP, spare * MEL_HOP))
    state = models.vocoder.init_state(1)
    out = []
    for at in range(0, count + spare, size):
        # the end is known at the latest when a step reaches it
        length = count if end_known or at + size > count - 1 else UNKNOWN_LENGTH
        part = slice(at, at + size)
        samples = slice(MEL_HOP * at, MEL_HOP * (at + size))
        out.append(models.vocoder.step(mels[:, part], f0[:, part], noise[:, samples], state, [length]))
    return torch.cat(out, dim=1)[0, DELAY_MELS * MEL_HOP : (DELAY_MELS + count) * MEL_HOP]


@pytest.mark.parametrize("end_known", [True, False])
@pytest.mark.parametrize("size", [1, 2, 5, 12, 64])
@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_vocoder_in_steps_equals_the_whole(models: EagerModel, path: Path, size: int, end_known: bool) -> None:
    if size < 5 and path.stem == "en_long":
        pytest.skip("the short ones cover tiny steps")
    vector = load(path)
    assert distance(stream_vocoder(models, vector, size, end_known), vector["samples"]) <= 1e-5


def test_two_rows_that_start_at_different_times_equal_the_same_two_alone(models: EagerModel) -> None:
    """Row 1 sets in three steps later, in a slot that another sentence has used before."""
    first, second = (decoder_input(models, load(DATA / "vectors" / name)) for name in ("en_long.npz", "zh.npz"))
    size, late = 9, 3
    state = models.acoustic.init_state(2)
    got: tuple[list[torch.Tensor], list[torch.Tensor]] = ([], [])
    steps = max(-(-first.shape[1] // size), late + -(-second.shape[1] // size))
    for step in range(steps):
        if step == late:
            state.reset(1)
        rows = []
        for x, at in ((first, step * size), (second, (step - late) * size)):
            part = x[0, max(at, 0) : max(at, 0) + size] if at >= 0 else x[0, :size]
            rows.append(F.pad(part, (0, 0, 0, size - len(part)), value=0.7))
        mels = models.acoustic.decode_step(torch.stack(rows), state)
        got[0].append(mels[0])
        if step >= late:
            got[1].append(mels[1])
    for x, parts in ((first, got[0]), (second, got[1])):
        whole = models.acoustic.decode(x)[0]
        assert distance(torch.cat(parts)[: len(whole)], whole) <= 1e-4


def test_vocoder_rows_that_start_at_different_times_equal_the_same_alone(models: EagerModel) -> None:
    first, second = load(DATA / "vectors" / "en_short.npz"), load(DATA / "vectors" / "vocoder_cut.npz")
    size, late = 6, 4
    state = models.vocoder.init_state(2)
    lengths = [len(first["f0"]), len(second["f0"])]
    steps = max((lengths[0] + DELAY_MELS) // size, late + (lengths[1] + DELAY_MELS) // size) + 1
    out: tuple[list[torch.Tensor], list[torch.Tensor]] = ([], [])

    def cut(vector: Vector, name: str, low: int, high: int, value: float) -> torch.Tensor:
        whole = torch.tensor(vector[name])
        index = torch.arange(low, high)
        inside = (index >= 0) & (index < len(whole))
        taken = whole[index.clamp(0, len(whole) - 1)]
        return torch.where(inside.view(-1, *[1] * (taken.ndim - 1)), taken, torch.tensor(value))

    for step in range(steps):
        if step == late:
            state.reset(1)
        at = [step * size, (step - late) * size if step >= late else step * size]
        mels = torch.stack([cut(v, "log_mel", a, a + size, -2.0) for v, a in zip((first, second), at, strict=True)])
        f0 = torch.stack([cut(v, "f0", a, a + size, 150.0) for v, a in zip((first, second), at, strict=True)])
        noise = torch.stack(
            [
                cut(v, "noise", MEL_HOP * (a - 2), MEL_HOP * (a - 2 + size), 0.3)
                for v, a in zip((first, second), at, strict=True)
            ]
        )
        samples = models.vocoder.step(mels, f0, noise, state, lengths)
        out[0].append(samples[0])
        if step >= late:
            out[1].append(samples[1])
    for vector, parts in ((first, out[0]), (second, out[1])):
        begin = DELAY_MELS * MEL_HOP
        got = torch.cat(parts)[begin : begin + len(vector["samples"])]
        assert distance(got, vector["samples"]) <= 1e-5


def test_anchors_beyond_the_kept_blocks_are_forgotten_alike(models: EagerModel) -> None:
    """More than 32 blocks: the whole form drops old anchors as the ring does."""
    generator = torch.Generator().manual_seed(0)
    shape = models.acoustic.shape
    x = torch.randn(1, 64 * 35 + 10, shape.channels + 10, generator=generator) * 0.3
    state = models.acoustic.init_state(1)
    parts = [models.acoustic.decode_step(x[:, at : at + 50], state) for at in range(0, x.shape[1], 50)]
    assert distance(torch.cat(parts, dim=1), models.acoustic.decode(x)) <= 1e-3


def test_a_padded_batch_encodes_as_its_rows_alone(models: EagerModel) -> None:
    vectors = [load(path) for path in SENTENCES]
    longest = max(len(vector["ids"]) for vector in vectors)
    ids = torch.stack([F.pad(torch.tensor(v["ids"], dtype=torch.int64), (0, longest - len(v["ids"]))) for v in vectors])
    lengths = torch.tensor([len(vector["ids"]) for vector in vectors])
    speakers = torch.tensor([int(vector["speaker"]) for vector in vectors])
    _, log_durations = models.acoustic.encode(ids, speakers, lengths)
    for row, vector in zip(log_durations, vectors, strict=True):
        assert distance(row[: len(vector["ids"])], vector["log_dur"]) <= 1e-4

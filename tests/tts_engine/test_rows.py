"""What a packet leaves behind: everything when it succeeds, nothing when it fails, and no batch's memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tts_engine.engine import Engine
from tts_engine.errors import EngineError
from tts_engine.models import rows
from tts_engine.planning import FRAME_SAMPLES
from tts_engine.types import Utterance

TEXTS = ["The engineer will arrive between two and five.", "Good morning to all of you.", "您的包裹昨天晚上已经离开仓库。"]


def fail(*_: Any) -> Any:
    raise MemoryError("no room")


@pytest.mark.parametrize("where", ["network", "signal"])
def test_rows_of_a_failed_packet_go_on_as_if_nothing_had_been(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    owner, name = (type(engine.model), "_network") if where == "network" else (rows, "signal_step")
    speeches = [engine.begin(Utterance(text)) for text in TEXTS]
    expected = [np.concatenate([chunk.samples for chunk in engine.speak(Utterance(text))]) for text in TEXTS]
    parts: list[list[np.ndarray]] = [[] for _ in TEXTS]
    for step in range(3):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, fail)
            with pytest.raises(EngineError, match="no room"):
                engine.step_together(speeches, 20)
        for i, chunk in enumerate(engine.step_together(speeches, 20)):
            parts[i].append(chunk.samples)
        assert {speech.frame for speech in speeches} == {20 * (step + 1)}
    for samples, wanted in zip(map(np.concatenate, parts), expected, strict=True):
        np.testing.assert_allclose(samples, wanted[: len(samples)], atol=1e-4)


def test_neither_a_row_that_rests_nor_a_packet_keeps_the_memory_of_its_batch(engine: Engine) -> None:
    speeches = [engine.begin(Utterance(text)) for text in TEXTS]
    packet = engine.step_together(speeches, 20)[0]
    base = packet.samples.base
    assert base is None or base.size <= 20 * FRAME_SAMPLES
    row = speeches[0].row
    kept = [row.decoder_history, row.input_history, row.body_history, row.signal.excitation, row.signal.tail]
    assert all(array.base is None for array in kept)

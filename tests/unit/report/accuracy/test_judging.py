"""Levels held against torch."""

from __future__ import annotations

import numpy as np
import torch

from spyre_mlir.frontend import import_program
from spyre_mlir.pipeline import LEVELS
from spyre_mlir.report.accuracy.judging import judged
from tests.functions import FunctionModel

X = np.array([0.5, 1.5])


def outcome(floor: list[float], below: list[float], expected: list[float]) -> dict[str, bool]:
    """Which levels agree about the floor of X, where steps may explain a difference."""
    module = import_program(FunctionModel(lambda x: torch.floor(x)), (torch.tensor(X, dtype=torch.float32),)).module
    found = {LEVELS[0]: [np.array(floor)], LEVELS[1]: [np.array(below)]}
    judgement = judged(module, found, [np.array(expected)], [X], 1e-4)
    return {level.level: level.agrees(1e-4) for level in judgement.levels}


def test_levels_agree_with_torch_or_do_not() -> None:
    assert outcome([0, 1], [0, 1], [0, 1]) == {"aten": True, "spyre.loop": True}
    assert outcome([0, 1], [0, 2], [0, 1]) == {"aten": True, "spyre.loop": False}


def test_a_level_that_ended_otherwise_does_not_agree() -> None:
    module = import_program(FunctionModel(lambda x: x + 1), (torch.tensor(X, dtype=torch.float32),)).module
    judgement = judged(module, {LEVELS[0]: "fault"}, [X + 1], [X], 1e-4)
    assert not judgement.levels[0].agrees(1e-4)

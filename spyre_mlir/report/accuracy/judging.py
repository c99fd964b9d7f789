"""The results of all levels held against torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.debug.stored_runs import own_draws
from spyre_mlir.errors import InputError
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.pipeline import LEVELS
from spyre_mlir.report import Verification, VerifiedLevel

Array = NDArray[Any]


def judged(
    module: ModuleOp,
    found: Mapping[str, list[Array] | str],
    expected: list[Array],
    inputs: list[Array],
    tolerance: float,
) -> Verification:
    """Hold the results of all levels against torch, or, where steps explain a difference, against the aten level.

    Args:
        module: the program at the aten level without regions: every op runs once.
        found: per level its results, or how it ended.
        expected: the results of torch.
        inputs: arguments of the program.
        tolerance: largest error that counts as equal.

    Raises:
        InputError: the tolerance is no number from 0 on.
    """
    from spyre_mlir.frontend import RoundingSteps

    if not (isinstance(tolerance, int | float) and tolerance >= 0):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"tolerance must be a number from 0 on, got {tolerance!r}", hint="tolerance=1e-4")
    levels = [VerifiedLevel.of(level, results, expected) for level, results in found.items()]
    own = found[LEVELS[0]]
    steps = None if isinstance(own, str) else RoundingSteps.of(module, inputs)
    if steps is None or isinstance(own, str):
        return Verification(tuple(levels), tolerance)
    settled = run_function(module, inputs, host=own_draws(), settle=steps.settle)
    if steps.flips and VerifiedLevel.of(LEVELS[0], settled, expected).error <= tolerance:
        # The aten level is right but for the steps; the levels below it have to give what it gives.
        levels = [replace(x, explained=VerifiedLevel.of("", found[x.level], own).error <= tolerance) for x in levels]
    return Verification(tuple(levels), tolerance, flips=tuple(steps.flips))

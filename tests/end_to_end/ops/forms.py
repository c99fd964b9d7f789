"""A function in the form that some numbers of the compiler give it, its results held against torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import Tensor

import spyre_mlir
from spyre_mlir.debug.stored_runs import run_on_host
from spyre_mlir.frontend import Program
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.pipeline import Lowered, lower
from spyre_mlir.universe import make_context

PACKAGE = Path(spyre_mlir.__file__).parent
# The one number that is an option of a pass.
CAP = "transforms.decompose_aten.CAP"
# How near numbers without rounding have to come.
NEAR = 1e-6


def checked(
    program: Program,
    function: Callable[..., Any],
    inputs: Sequence[Tensor],
    patches: Mapping[str, float],
    monkeypatch: pytest.MonkeyPatch,
) -> Counter[str]:
    """The form under some numbers, once its results are those of torch."""
    made = lowered(program, patches, monkeypatch)
    queue = list(inputs)
    arguments = [queue.pop(0) if a.kind == "input" else program.values[a.name] for a in program.arguments]
    results = run_function(made.modules["spyre.loop"], [shown(x) for x in arguments], host=run_on_host)
    compare(results[: len(program.output_leaves)], function, inputs, NEAR)  # behind them, what an op writes in place
    return form(made)


def lowered(program: Program, patches: Mapping[str, float], monkeypatch: pytest.MonkeyPatch) -> Lowered:
    """A program at the level of loops, made with other numbers."""
    options = {"decompose-aten": {"cap": patches[CAP]}} if CAP in patches else {}
    with monkeypatch.context() as patch:
        for place, value in patches.items():
            module, _, name = place.rpartition(".")
            patch.setattr(f"{PACKAGE.name}.{module}.{name}", value)
        return lower(program.module, make_context(), until="spyre.loop", options=options)


def form(made: Lowered) -> Counter[str]:
    """How often each op stands in a program, with its types."""
    ops = (op for op in made.modules["spyre.loop"].walk())
    return Counter(f"{op.name} {[str(r.type) for r in op.results]}" for op in ops)


def shown(x: Tensor) -> Any:
    return (x.double() if x.is_floating_point() else x).numpy()


def leaves(results: Any) -> list[Any]:
    several = results if isinstance(results, tuple | list) else (results,)
    return [shown(r) for r in several]


def compare(got: Sequence[Any], function: Callable[..., Any], inputs: Sequence[Tensor], tolerance: float) -> None:
    """Holds results against torch in double precision, whose inputs are the same numbers."""
    wanted = leaves(function(*(x.double() if x.is_floating_point() else x for x in inputs)))
    assert len(got) == len(wanted)
    for mine, theirs in zip(got, wanted, strict=True):
        assert mine.shape == theirs.shape
        if theirs.dtype.kind in "ib":
            assert np.array_equal(mine, theirs)
            continue
        largest = np.abs(theirs[np.isfinite(theirs)]).max(initial=0.0)
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=NEAR * largest)

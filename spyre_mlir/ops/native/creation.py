"""Tensors made from numbers alone."""

from __future__ import annotations

from spyre_mlir.ops.annotations import Ints, Lanes, Number, np
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.ignored_arguments import DTYPE
from spyre_mlir.ops.table import Sample, require


def arange_shape(*, start: Number = 0, end: Number, step: Number = 1) -> tuple[int, ...]:
    """Shape of a range."""
    require("C1", step != 0, "step is 0")
    return (max(0, -int(-(end - start) // step)),)


@ATEN.creation(aten=["arange.start_step"], shape=arange_shape, ignores=[DTYPE])
def arange(*, start: Number = 0, end: Number, step: Number = 1) -> Lanes:
    """start, start + step, … below end.

    Constraints:
        C1: step is not 0.
    """
    return np.arange(start, end, step, dtype=np.float64)


def full_shape(*, size: Ints, **_: object) -> tuple[int, ...]:
    """The shape asked for."""
    return tuple(size)


@ATEN.creation(aten=["full"], shape=full_shape, ignores=[DTYPE])
def full(*, size: Ints, fill_value: Number) -> Lanes:
    """One number everywhere."""
    return np.full(size, float(fill_value))


ATEN.samples(full, Sample((), {"size": (3, 5), "fill_value": 0.5}))
ATEN.samples(
    arange,
    Sample((), {"start": 0, "end": 5, "step": 1}),
    Sample((), {"start": 2, "end": -9, "step": -3}),
    Sample((), {"end": 3, "step": 0}, breaks="C1"),
)

"""Truth at the place that a number names."""

from __future__ import annotations

from typing import Any

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.annotations import Lanes
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.table import Sample


@ATEN.composed(aten=["one_hot"], ulps=0)
def one_hot(b: Build, self: Lanes, *, num_classes: int = -1) -> Any:
    """1 at the place each number names, in a new last dimension of `num_classes`; else 0."""
    if num_classes < 0:
        raise UnsupportedError("one_hot without a number of classes", hint="pass num_classes")
    hit = b.call("eq.Tensor", b.call("unsqueeze", self, dim=-1), b.iota(num_classes, "i64"))
    return b.cast(hit, "i64")


ATEN.samples(one_hot, Sample(((3, 4),), {"num_classes": 6}))

"""Truth at the place that a number names."""

from __future__ import annotations

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value


@ATEN.composed(aten=["one_hot"], ulps=0)
def one_hot(b: Build, self: Value, *, num_classes: int = -1) -> Value:
    """1 at the place each number names, in a new last dimension of `num_classes`; else 0."""
    if num_classes < 0:
        raise UnsupportedError("one_hot without a number of classes", hint="pass num_classes")
    return b.cast(self.unsqueeze(-1).eq(b.iota(num_classes, "i64")), "i64")


ATEN.samples(one_hot, Sample(((3, 4),), {"num_classes": 6}))

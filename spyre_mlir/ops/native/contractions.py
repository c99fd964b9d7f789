"""Matrix products; all are `batchmatmul` on the PT array."""

from __future__ import annotations

from spyre_mlir.hw.formats import DL16
from spyre_mlir.ops.annotations import Lanes, np
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.table import Sample, Unit, require
from spyre_mlir.ops.value import Value

_LANES = DL16.elements_per_stick()
_TABLE = "three real SuperDSC files; certain"


def product_shape(self: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of numpy.matmul."""
    require("C1", min(len(self), len(other)) >= 1, f"operands of rank {len(self)} and {len(other)}, expected 1 or more")
    inner = other[-2:][0]
    require("C2", self[-1] == inner, f"inner extents {self[-1]} and {inner} differ")
    return (*np.broadcast_shapes(self[:-2], other[:-2]), *self[-2:-1], *(other[-1:] if len(other) > 1 else ()))


def linear_shape(input: tuple[int, ...], weight: tuple[int, ...], **_: object) -> tuple[int, ...]:
    """Shape of input @ weight transposed."""
    require("C1", len(weight) == 2, f"weight of rank {len(weight)}, expected 2")
    require("C2", input[-1] == weight[1], f"input has {input[-1]} features, weight takes {weight[1]}")
    return (*input[:-1], weight[0])


def _linear(b: Build, input: Value, weight: Value, bias: Value | None) -> Value | None:
    if input.rank == 1:
        return b.call("linear", input.unsqueeze(0), weight, bias).squeeze(0)
    return None if bias is None else b.call("linear", input, weight) + bias


def _matmul(b: Build, self: Value, other: Value) -> Value | None:
    left, right = self.rank == 1, other.rank == 1
    if not (left or right):
        if not self.shape[-1]:
            return _empty_sum(b, self, other)
        return (self * other.transpose(-1, -2)).sum(-1, keepdim=True) if _is_short_column(self, other) else None
    product = (self.unsqueeze(0) if left else self) @ (other.unsqueeze(-1) if right else other)
    dropped = (-2, -1) if left and right else (-2,) if left else (-1,)
    return b.call("squeeze.dims", product, dim=dropped)


def _is_short_column(self: Value, other: Value) -> bool:
    """Whether a product has one column, and sums over less than a stick: most lanes of either would be empty.

    Element by element the rows are in the lanes, as they are where the first operand is computed.
    """
    return self.is_float and other.shape[-1] == 1 and 1 < self.shape[-1] <= _LANES <= self.shape[-2]


def _empty_sum(b: Build, self: Value, other: Value) -> Value:
    """The product over a dimension without elements."""
    batch = np.broadcast_shapes(self.shape[:-2], other.shape[:-2])
    return b.full((*batch, self.shape[-2], other.shape[-1]), 0, self.element)


@ATEN.contraction(
    aten=["mm", "bmm", "matmul"],
    opfunc="batchmatmul",
    unit=Unit.PT,
    combine="arith.addf",
    shape=product_shape,
    ulps=16,
    source=_TABLE,
    decompose=_matmul,
)
def matmul(self: Lanes, other: Lanes) -> Lanes:
    """The matrix product; leading dimensions are batches and broadcast.

    Constraints:
        C1: both operands have rank 1 or more (decompose-aten rewrites vectors).
        C2: the last extent of the first operand is the second-last of the second.
    """
    return self @ other


@ATEN.contraction(
    aten=["linear"],
    opfunc="batchmatmul",
    unit=Unit.PT,
    combine="arith.addf",
    shape=linear_shape,
    ulps=16,
    source=_TABLE,
    decompose=_linear,
)
def linear(input: Lanes, weight: Lanes, bias: Lanes | None = None) -> Lanes:
    """input @ weight transposed, plus bias if there is one.

    Constraints:
        C1: weight has rank 2.
        C2: the last extent of input is the last extent of weight.
    """
    product = input @ weight.T
    return product if bias is None else product + bias


ATEN.samples(
    matmul,
    Sample(((3, 5), (5, 4))),
    Sample(((5,), (5, 4))),
    Sample(((3, 5), (5,))),
    Sample(((5,), (5,))),
    Sample(((2, 3, 65), (2, 65, 7))),
    Sample(((), (5,)), breaks="C1"),
    Sample(((3, 5), (4, 4)), breaks="C2"),
)
ATEN.samples(
    linear,
    Sample(((2, 3, 65), (33, 65))),
    Sample(((3, 5), (4, 5), (4,))),
    Sample(((3, 5), (5,)), breaks="C1"),
    Sample(((3, 5), (4, 6)), breaks="C2"),
)

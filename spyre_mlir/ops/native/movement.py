"""Operations that move elements without arithmetic."""

from __future__ import annotations

from spyre_mlir.ops.annotations import DType, Lanes, LanesList, np
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.ignored_arguments import MEMORY_FORMAT, NON_BLOCKING
from spyre_mlir.ops.table import Sample, require


@ATEN.movement(aten=["clone", "contiguous"], opfunc="identity", fp32=True, ignores=[MEMORY_FORMAT])
def clone(self: Lanes) -> Lanes:
    """A copy, dense in row-major order."""
    return self


@ATEN.movement(aten=["_to_copy"], ignores=[MEMORY_FORMAT, NON_BLOCKING])
def _to_copy(self: Lanes, *, dtype: DType | None = None) -> Lanes:
    """A conversion to another element type; exact meaning rounds only towards integers and booleans."""
    if dtype == "i1":
        return self != 0
    return np.trunc(self) if dtype is not None and dtype.startswith(("i", "u")) else self


def cat_shape(tensors: list[tuple[int, ...]], *, dim: int = 0) -> tuple[int, ...]:
    """Shape of the concatenation along `dim`; vectors without elements count as nothing, as in torch."""
    tensors = [t for t in tensors if t != (0,)] or tensors[:1]
    first, at = tensors[0], dim % len(tensors[0])
    for other in tensors:
        same = len(other) == len(first) and other[:at] + other[at + 1 :] == first[:at] + first[at + 1 :]
        require("C1", same, f"shapes {first} and {other} differ outside dimension {at}")
    return (*first[:at], sum(t[at] for t in tensors), *first[at + 1 :])


@ATEN.movement(aten=["cat"], opfunc="identity", fp32=True, shape=cat_shape)
def cat(tensors: LanesList, *, dim: int = 0) -> Lanes:
    """The tensors one after another along `dim`.

    Constraints:
        C1: shapes agree outside `dim`; a vector without elements goes with any.
    """
    return np.concatenate([t for t in tensors if t.shape != (0,)] or list(tensors[:1]), axis=dim)


ATEN.samples(clone, Sample(((3, 65),)))
ATEN.samples(_to_copy, Sample(((3, 65),), {"dtype": "f16"}))
ATEN.samples(cat, Sample((((3, 5), (3, 7)),), {"dim": 1}), Sample((((3, 5), (4, 7)),), {"dim": 1}, breaks="C1"))

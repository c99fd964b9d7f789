"""Operations that move or gather elements without arithmetic."""

from __future__ import annotations

from spyre_mlir.ops.annotations import DType, Lanes, LanesList, np
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.table import Sample, require


@ATEN.movement(aten=["clone", "contiguous"], opfunc="identity", fp32=True)
def clone(self: Lanes, *, memory_format: str | None = None) -> Lanes:
    """A copy, dense in row-major order."""
    return self


@ATEN.movement(aten=["_to_copy"])
def _to_copy(
    self: Lanes, *, dtype: DType | None = None, memory_format: str | None = None, non_blocking: bool = False
) -> Lanes:
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


def embedding_shape(weight: tuple[int, ...], indices: tuple[int, ...], **_: object) -> tuple[int, ...]:
    """Shape of the rows of weight chosen by indices."""
    require("C1", len(weight) == 2, f"weight of rank {len(weight)}, expected 2")
    return (*indices, weight[1])


@ATEN.movement(aten=["embedding"], opfunc="identity", fp32=True, shape=embedding_shape)
def embedding(
    weight: Lanes, indices: Lanes, *, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Lanes:
    """The rows of `weight` that `indices` name; the other arguments matter for training only.

    Constraints:
        C1: weight has rank 2.
        C2: 0 <= indices < rows of weight.
    """
    rows = indices.astype(np.int64)
    inside = bool(((rows >= 0) & (rows < weight.shape[0])).all())
    require("C2", inside, f"an index lies outside the {weight.shape[0]} rows of weight")
    return weight[rows]


ATEN.samples(clone, Sample(((3, 65),)))
ATEN.samples(_to_copy, Sample(((3, 65),), {"dtype": "f16"}))
ATEN.samples(cat, Sample((((3, 5), (3, 7)),), {"dim": 1}), Sample((((3, 5), (4, 7)),), {"dim": 1}, breaks="C1"))
ATEN.samples(
    embedding,
    Sample(((10, 65), (2, 3)), low=0, high=9),
    Sample(((10, 5), (4,)), {"padding_idx": 1}, low=0, high=9),
    Sample(((10,), (2,)), breaks="C1"),
)

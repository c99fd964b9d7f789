"""Rows picked by index tensors."""

from __future__ import annotations

from spyre_mlir.ops.annotations import Lanes, np
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.ignored_arguments import PADDING_IDX, SCALE_GRAD_BY_FREQ, SPARSE
from spyre_mlir.ops.table import Sample, require


def embedding_shape(weight: tuple[int, ...], indices: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of the rows of weight chosen by indices."""
    require("C1", len(weight) == 2, f"weight of rank {len(weight)}, expected 2")
    return (*indices, weight[1])


@ATEN.movement(
    aten=["embedding"],
    opfunc="identity",
    fp32=True,
    shape=embedding_shape,
    ignores=[PADDING_IDX, SCALE_GRAD_BY_FREQ, SPARSE],
)
def embedding(weight: Lanes, indices: Lanes) -> Lanes:
    """The rows of `weight` that `indices` name.

    Constraints:
        C1: weight has rank 2.
        C2: 0 <= indices < rows of weight.
    """
    rows = indices.astype(np.int64)
    inside = bool(((rows >= 0) & (rows < weight.shape[0])).all())
    require("C2", inside, f"an index lies outside the {weight.shape[0]} rows of weight")
    return weight[rows]


def index_select_shape(self: tuple[int, ...], index: tuple[int, ...], *, dim: int) -> tuple[int, ...]:
    """Shape of the entries of `dim` chosen by index."""
    require("C1", len(index) <= 1, f"index of rank {len(index)}, expected 0 or 1")
    at = dim % max(len(self), 1)
    return (*self[:at], *(index or (1,)), *self[at + 1 :]) if self else ()


@ATEN.movement(aten=["index_select"], shape=index_select_shape)
def index_select(self: Lanes, index: Lanes, *, dim: int) -> Lanes:
    """The entries of `dim` that `index` names; negative ones count from the end.

    Constraints:
        C1: index has rank 0 or 1.
    """
    entries = np.take(self.reshape(self.shape or (1,)), index.astype(np.int64).reshape(-1), axis=dim)
    return entries if self.ndim else entries.reshape(())


ATEN.samples(
    embedding,
    Sample(((10, 65), (2, 3)), low=0, high=9),
    Sample(((10, 5), (4,)), {"padding_idx": 1}, low=0, high=9),
    Sample(((10,), (2,)), breaks="C1"),
)
ATEN.samples(
    index_select,
    Sample(((5, 6), (3,)), {"dim": 0}),
    Sample(((5, 6, 4), (2,)), {"dim": 1}),
    Sample(((), (1,)), {"dim": 0}),
    Sample(((5, 6), (2, 2)), {"dim": 0}, breaks="C1"),
)

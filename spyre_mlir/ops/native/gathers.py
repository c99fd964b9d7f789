"""Rows picked by index tensors."""

from __future__ import annotations

from spyre_mlir.ops.annotations import Lanes, np
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.ignored_arguments import PADDING_IDX, SCALE_GRAD_BY_FREQ, SPARSE
from spyre_mlir.ops.table import Sample, require

TAKE_PAGES = "spyre::take_pages"


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


def take_pages_shape(self: tuple[int, ...], indices: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of the places of pages chosen by indices, by head; those of a row of indices are joined."""
    require("C1", len(self) == 4, f"pages of rank {len(self)}, expected 4")
    require("C2", len(indices) > 0, "indices of rank 0, expected a row of them")
    _, places, heads, features = self
    return (*indices[:-1], heads, indices[-1] * places, features)


@ATEN.movement(aten=[TAKE_PAGES], shape=take_pages_shape)
def take_pages(self: Lanes, indices: Lanes) -> Lanes:
    """For each head the places of all pages that a row of `indices` names, one page behind the other.

    Of pages [pages, places, heads, features] and indices [..., n] that is [..., heads, n * places, features]. Negative
    indices count from the end.

    Constraints:
        C1: self has rank 4.
        C2: indices have a dimension.
    """
    taken = np.moveaxis(np.take(self, indices.astype(np.int64), axis=0), -2, indices.ndim - 1)
    return taken.reshape(take_pages_shape(self.shape, indices.shape))


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
ATEN.samples(
    take_pages,
    Sample(((5, 6, 4, 8), (2, 3))),
    Sample(((5, 6, 2, 8), (2,))),
    Sample(((5, 6, 4), (2, 3)), breaks="C1"),
    Sample(((5, 6, 4, 8), ()), breaks="C2"),
)

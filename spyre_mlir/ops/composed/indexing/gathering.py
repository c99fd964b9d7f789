"""Elements picked by index tensors: gather, take, indexing with several tensors, bags of table rows."""

from __future__ import annotations

from math import prod
from typing import Any

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.annotations import Ints, Lanes, LanesList
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.index_matching import all_named, chosen, from_end, named
from spyre_mlir.ops.helpers.slicing import cut_to, moved, permuted, reshaped, widened
from spyre_mlir.ops.table import Sample


@ATEN.composed(aten=["gather"], ulps=1)
def gather(b: Build, self: Lanes, index: Lanes, *, dim: int, sparse_grad: bool = False) -> Any:
    """The elements of `self` whose place along `dim` `index` names, at the index's place along the others.

    An index outside `self` gives NaN, or 0 in integers: the device has no way to refuse it.
    """
    rank, shape = len(b.shape(self)), b.shape(index)
    if rank == 0 or not shape:
        return reshaped(b, b.call("gather", *(reshaped(b, v, (-1,)) for v in (self, index)), dim=0), shape)
    at = dim % rank
    table = moved(b, cut_to(b, self, shape, at), at, -1)
    hits = named(b, moved(b, index, at, -1), b.shape(self)[at])
    return moved(b, chosen(b, hits, table), -1, at)


@ATEN.composed(aten=["take_along_dim"], ulps=1)
def take_along_dim(b: Build, self: Lanes, indices: Lanes, *, dim: int | None = None) -> Any:
    """As `gather`, the shapes broadcast outside `dim`; without `dim`, of all elements in order."""
    if dim is None:
        return b.call("take", self, reshaped(b, indices, (-1,)))
    at = dim % len(b.shape(self))
    common = [max(s, i) if min(s, i) else 0 for s, i in zip(b.shape(self), b.shape(indices), strict=True)]
    of_self, of_index = (
        tuple(v[at] if d == at else e for d, e in enumerate(common)) for v in (b.shape(self), b.shape(indices))
    )
    index = from_end(b, widened(b, indices, of_index), of_self[at])
    return b.call("gather", widened(b, self, of_self), index, dim=at)


@ATEN.composed(aten=["take"], ulps=1)
def take(b: Build, self: Lanes, index: Lanes) -> Any:
    """The elements of `self`, in row-major order, that `index` names; negative ones count from the end."""
    flat = reshaped(b, self, (-1,))
    where = from_end(b, reshaped(b, index, (-1,)), b.shape(flat)[0])
    return reshaped(b, chosen(b, named(b, where, b.shape(flat)[0]), flat), b.shape(index))


@ATEN.composed(aten=["index.Tensor", "_unsafe_index.Tensor"], ulps=1)
def index(b: Build, self: Lanes, indices: LanesList) -> Any:
    """The elements that index tensors name together; a dimension without one is kept whole.

    The dimensions of the indices stand where the first indexed one was if those stand side by side, else in front.
    """
    taken = Indexed.of(b, self, indices)
    out = chosen(b, taken.hits, taken.flattened(b, self))
    return taken.restored(b, out, taken.common)


class Indexed:
    """Index tensors against the dimensions of a tensor: which places they name, and how to lay both out for that.

    Attributes:
        order: the dimensions that are kept, then the indexed ones.
        common: the shape of the indices together.
        at: the place of the indices' dimensions among the kept ones in a result of indexing.
        hits: [indices, places]: which index names which place.
    """

    def __init__(self, shape: Ints, dims: list[int], common: Ints, hits: Any) -> None:
        """Takes the shape of the tensor, the indexed dimensions, and what the indices name."""
        kept = [d for d in range(len(shape)) if d not in dims]
        side_by_side = dims == list(range(dims[0], dims[-1] + 1))
        self.shape, self.common, self.hits = shape, common, hits
        self.order = (*kept, *dims)
        self.kept = tuple(shape[d] for d in kept)
        self.at = dims[0] if side_by_side else 0
        self.places = prod(shape[d] for d in dims)

    @staticmethod
    def of(b: Build, value: Any, indices: Any) -> Indexed:
        """Broadcasts the indices and compares them.

        Raises:
            UnsupportedError: an index is a mask, which chooses as many elements as it has truths.
        """
        dims = [d for d, i in enumerate(indices) if i is not None]
        if any(b.element(indices[d]) in ("i1", "ui8") for d in dims):
            raise UnsupportedError("indexing with a mask", hint="use torch.where, which keeps the shape")
        rank = max(len(b.shape(indices[d])) for d in dims)
        shapes = [(1,) * (rank - len(b.shape(indices[d]))) + b.shape(indices[d]) for d in dims]
        common = tuple(0 if 0 in column else max(column) for column in zip(*shapes, strict=True))
        extents = [b.shape(value)[d] for d in dims]
        flat = [
            reshaped(b, widened(b, from_end(b, indices[d], e), common), (prod(common),))
            for d, e in zip(dims, extents, strict=True)
        ]
        return Indexed(b.shape(value), dims, common, all_named(b, flat, extents))

    def flattened(self, b: Build, value: Any) -> Any:
        """The indexed tensor as [kept elements, places]."""
        return reshaped(b, permuted(b, value, self.order), (prod(self.kept), self.places))

    def unflattened(self, b: Build, value: Any) -> Any:
        """[kept elements, places] in the shape of the indexed tensor."""
        value = reshaped(b, value, tuple(self.shape[d] for d in self.order))
        return permuted(b, value, [self.order.index(d) for d in range(len(self.order))])

    def restored(self, b: Build, value: Any, common: Ints) -> Any:
        """[kept elements, indices] in the shape of a result of indexing."""
        value = reshaped(b, value, (*self.kept, *common))
        count, inner = len(self.kept), len(common)
        return permuted(b, value, (*range(self.at), *range(count, count + inner), *range(self.at, count)))

    def arranged(self, b: Build, value: Any) -> Any:
        """What is written, of a result's shape or one that broadcasts to it, as [kept elements, indices]."""
        full = (*self.kept[: self.at], *self.common, *self.kept[self.at :])
        value = widened(b, value, full)
        count = len(self.common)
        order = (*range(self.at), *range(self.at + count, len(full)), *range(self.at, self.at + count))
        return reshaped(b, permuted(b, value, order), (prod(self.kept), prod(self.common)))


ATEN.samples(
    gather,
    Sample(((5, 7), (3, 7)), {"dim": 0}, low=0, high=5),
    Sample(((3, 4, 67), (2, 4, 5)), {"dim": -1}, low=0, high=4),
)
ATEN.samples(take_along_dim, Sample(((3, 5), (1, 2)), {"dim": 1}, low=0, high=4), Sample(((3, 5), (4,)), low=0, high=9))
ATEN.samples(take, Sample(((3, 5), (2, 3)), low=0, high=14))
ATEN.samples(index, Sample(((5, 6, 3), ((4,), (2, 1)))), Sample(((5, 67), ((3,),))))

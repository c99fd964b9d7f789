"""Elements picked by index tensors: gather, take, indexing with several tensors, bags of table rows."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.annotations import Ints
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.index_matching import all_named, chosen, from_end, is_inside, named
from spyre_mlir.ops.helpers.indexed_lines import IndexedLines
from spyre_mlir.ops.helpers.slicing import cut_to, permuted, reshaped, widened
from spyre_mlir.ops.ignored_arguments import SPARSE_GRAD
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value


@ATEN.composed(aten=["gather"], ulps=1, ignores=[SPARSE_GRAD])
def gather(b: Build, self: Value, index: Value, *, dim: int) -> Value:
    """The elements of `self` at places along `dim` that `index` names, and at the index's own place elsewhere.

    An index outside `self` gives NaN, or 0 in integers: the device has no way to refuse it.
    """
    rank, shape = self.rank, index.shape
    if rank == 0 or not shape:
        return reshaped(b.call("gather", reshaped(self, (-1,)), reshaped(index, (-1,)), dim=0), shape)
    at = dim % rank
    lines = IndexedLines.of(b, index, at)
    table = lines.laid(cut_to(b, self, shape, at))
    hits = named(b, lines.narrowed(b, index), self.shape[at])
    return lines.restored(chosen(b, hits, table, inside=is_inside(b, index, self.shape[at])))


@ATEN.composed(aten=["take_along_dim"], ulps=1)
def take_along_dim(b: Build, self: Value, indices: Value, *, dim: int | None = None) -> Value:
    """As `gather`, the shapes broadcast outside `dim`; without `dim`, of all elements in order."""
    if dim is None:
        return b.call("take", self, reshaped(indices, (-1,)))
    at = dim % self.rank
    common = [max(s, i) if min(s, i) else 0 for s, i in zip(self.shape, indices.shape, strict=True)]
    of_self, of_index = (
        tuple(v[at] if d == at else e for d, e in enumerate(common)) for v in (self.shape, indices.shape)
    )
    index = from_end(widened(indices, of_index), of_self[at])
    return b.call("gather", widened(self, of_self), index, dim=at)


@ATEN.composed(aten=["take"], ulps=1)
def take(b: Build, self: Value, index: Value) -> Value:
    """The elements of `self`, in row-major order, that `index` names; negative ones count from the end."""
    flat = reshaped(self, (-1,))
    where = from_end(reshaped(index, (-1,)), flat.shape[0])
    return reshaped(chosen(b, named(b, where, flat.shape[0]), flat), index.shape)


@ATEN.composed(aten=["index.Tensor", "_unsafe_index.Tensor"], ulps=1)
def index(b: Build, self: Value, indices: Sequence[Value | None]) -> Value:
    """The elements at the places that the index tensors name together; a dimension without an index tensor is copied.

    The dimensions of the indices stand where the first indexed one was if those stand side by side, else in front.
    """
    taken = Indexed.of(b, self, indices)
    return taken.restored(chosen(b, taken.hits, taken.flattened(self)), taken.common)


class Indexed:
    """Index tensors against the dimensions of a tensor: which places they name, and how to lay both out for that.

    Attributes:
        order: the dimensions that are kept, then the indexed ones.
        common: the shape of the indices together.
        at: the place of the indices' dimensions among the kept ones in a result of indexing.
        hits: [indices, places]: which index names which place.
    """

    def __init__(self, shape: Ints, dims: list[int], common: Ints, hits: Value) -> None:
        """Takes the shape of the tensor, the indexed dimensions, and what the indices name."""
        kept = [d for d in range(len(shape)) if d not in dims]
        side_by_side = dims == list(range(dims[0], dims[-1] + 1))
        self.shape, self.common, self.hits = shape, common, hits
        self.order = (*kept, *dims)
        self.kept = tuple(shape[d] for d in kept)
        self.at = dims[0] if side_by_side else 0
        self.places = prod(shape[d] for d in dims)

    @staticmethod
    def of(b: Build, value: Value, indices: Sequence[Value | None]) -> Indexed:
        """Broadcasts the indices and compares them.

        Raises:
            UnsupportedError: an index is a mask, which chooses as many elements as it has truths.
        """
        given = {d: i for d, i in enumerate(indices) if i is not None}
        if any(i.element in ("i1", "ui8") for i in given.values()):
            raise UnsupportedError("indexing with a mask", hint="use torch.where, which keeps the shape")
        rank = max(i.rank for i in given.values())
        shapes = [(1,) * (rank - i.rank) + i.shape for i in given.values()]
        common = tuple(0 if 0 in column else max(column) for column in zip(*shapes, strict=True))
        extents = [value.shape[d] for d in given]
        flat = [
            reshaped(widened(from_end(i, e), common), (prod(common),))
            for i, e in zip(given.values(), extents, strict=True)
        ]
        return Indexed(value.shape, list(given), common, all_named(b, flat, extents))

    def flattened(self, value: Value) -> Value:
        """The indexed tensor as [kept elements, places]."""
        return reshaped(permuted(value, self.order), (prod(self.kept), self.places))

    def unflattened(self, value: Value) -> Value:
        """[kept elements, places] in the shape of the indexed tensor."""
        value = reshaped(value, tuple(self.shape[d] for d in self.order))
        return permuted(value, [self.order.index(d) for d in range(len(self.order))])

    def restored(self, value: Value, common: Ints) -> Value:
        """[kept elements, indices] in the shape of a result of indexing."""
        value = reshaped(value, (*self.kept, *common))
        count, inner = len(self.kept), len(common)
        return permuted(value, (*range(self.at), *range(count, count + inner), *range(self.at, count)))

    def arranged(self, value: Value) -> Value:
        """The written values, broadcast to the result's shape, as [kept elements, indices]."""
        full = (*self.kept[: self.at], *self.common, *self.kept[self.at :])
        value = widened(value, full)
        count = len(self.common)
        order = (*range(self.at), *range(self.at + count, len(full)), *range(self.at, self.at + count))
        return reshaped(permuted(value, order), (prod(self.kept), prod(self.common)))


ATEN.samples(
    gather,
    Sample(((5, 7), (3, 7)), {"dim": 0}, low=0, high=5),
    Sample(((3, 4, 67), (2, 4, 5)), {"dim": -1}, low=0, high=4),
)
ATEN.samples(take_along_dim, Sample(((3, 5), (1, 2)), {"dim": 1}, low=0, high=4), Sample(((3, 5), (4,)), low=0, high=9))
ATEN.samples(take, Sample(((3, 5), (2, 3)), low=0, high=14))
ATEN.samples(index, Sample(((5, 6, 3), ((4,), (2, 1)))), Sample(((5, 67), ((3,),))))

"""Other readings of the same elements: they cost nothing until a layout cannot express them."""

from __future__ import annotations

from spyre_mlir.ops.annotations import Ints
from spyre_mlir.ops.array_views import View
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.ignored_arguments import IMPLICIT
from spyre_mlir.ops.table import Sample

TO_END = 2**63 - 1  # torch's spelling of "to the end"


@ATEN.view(aten=["view", "reshape", "_unsafe_view"])
def view(self: View, *, size: Ints) -> View:
    """The elements in row-major order under another shape; one extent may be -1."""
    return self.reshape(size)


@ATEN.view(aten=["permute"])
def permute(self: View, *, dims: Ints) -> View:
    """The dimensions in another order."""
    return self.permute(dims)


@ATEN.view(aten=["transpose.int"])
def transpose(self: View, *, dim0: int, dim1: int) -> View:
    """Two dimensions exchanged."""
    return self.transpose(dim0, dim1)


@ATEN.view(aten=["t"])
def t(self: View) -> View:
    """A matrix transposed; vectors stay."""
    return self if len(self.shape) < 2 else self.transpose(0, 1)


@ATEN.view(aten=["unsqueeze"])
def unsqueeze(self: View, *, dim: int) -> View:
    """A dimension of extent 1 inserted at `dim`."""
    return self.unsqueeze(dim)


@ATEN.view(aten=["squeeze.dim", "squeeze.dims", "squeeze"])
def squeeze(self: View, *, dim: Ints | None = None) -> View:
    """Dimensions of extent 1 dropped: those in `dim`, or all."""
    return self.squeeze(dim)


@ATEN.view(aten=["expand"], ignores=[IMPLICIT])
def expand(self: View, *, size: Ints) -> View:
    """Dimensions of extent 1 repeated up to `size`."""
    return self.expand(size)


@ATEN.view(aten=["select.int"])
def select(self: View, *, dim: int, index: int) -> View:
    """One index of one dimension."""
    return self.select(dim, index)


@ATEN.view(aten=["slice.Tensor"])
def slice(self: View, *, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> View:
    """A range of one dimension, clamped as in Python."""
    return self.slice(dim, 0 if start is None else start, TO_END if end is None else end, step)


@ATEN.view(aten=["alias", "detach", "lift_fresh_copy"])
def alias(self: View) -> View:
    """The same tensor."""
    return self


ATEN.samples(view, Sample(((4, 6),), {"size": (2, -1, 3)}))
ATEN.samples(permute, Sample(((2, 3, 4),), {"dims": (2, 0, 1)}))
ATEN.samples(transpose, Sample(((2, 3, 4),), {"dim0": 0, "dim1": -1}))
ATEN.samples(t, Sample(((3, 4),)))
ATEN.samples(unsqueeze, Sample(((3, 4),), {"dim": -1}))
ATEN.samples(squeeze, Sample(((3, 1, 4),), {"dim": (1,)}), Sample(((),), {"dim": (0,)}))
ATEN.samples(expand, Sample(((3, 1),), {"size": (2, 3, 5)}))
ATEN.samples(select, Sample(((3, 4),), {"dim": 1, "index": -1}))
ATEN.samples(slice, Sample(((3, 8),), {"dim": 1, "start": 2, "end": 7, "step": 2}))
ATEN.samples(alias, Sample(((3, 4),)))

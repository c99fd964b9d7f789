"""Patches that views, permutations, `unfold` and `im2col` take out of an image: which axes are places, which taps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

from xdsl.ir import SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.ops.helpers.sliding_windows import spread
from spyre_mlir.transforms.utils.aten_ops import arguments_of, is_open

_VIEW, _PERMUTE, _UNFOLD, _COLUMNS = "view", "permute", "unfold", "im2col"
_MOVES = (_VIEW, _PERMUTE, _UNFOLD, _COLUMNS, "clone")
_MOST_OPS = 8  # of a chain that is followed back


class Role(Enum):
    """Meaning of a factor of an extent: positions of an axis, places of a window, or taps under it."""

    WHOLE = 0
    PLACE = 1
    TAP = 2


@dataclass(frozen=True)
class PatchPart:
    """A factor of the extent of a dimension.

    Attributes:
        axis: of the image.
        role: what it counts.
        extent: how many.
    """

    axis: int
    role: Role
    extent: int


@dataclass(frozen=True)
class PatchWindow:
    """How a window slides along an axis.

    Attributes:
        size: its taps.
        stride: positions between two places.
        padding: zeros before and behind the axis.
        dilation: positions between two taps.
    """

    size: int
    stride: int
    padding: int = 0
    dilation: int = 1


@dataclass
class Patches:
    """A tensor of patches.

    Attributes:
        image: what they are taken out of.
        dims: by dimension of the tensor its parts, the outermost first; parts of one position are left out.
        windows: by axis.
    """

    image: SSAValue
    dims: list[list[PatchPart]]
    windows: dict[int, PatchWindow] = field(default_factory=dict[int, PatchWindow])

    @staticmethod
    def whole(image: SSAValue) -> Patches:
        """Return an image that nothing has been taken out of."""
        shape = shape_of(image)
        return Patches(image, [[PatchPart(n, Role.WHOLE, e)] if e != 1 else [] for n, e in enumerate(shape)])

    def after(self, op: AtenOp) -> bool:
        """Follow an op of one tensor; False if it does anything else to the parts."""
        args, shape = arguments_of(op), shape_of(op.results[0])
        match op.overload:
            case "clone":
                return True
            case name if name == _PERMUTE:
                self.dims = [self.dims[d % len(self.dims)] for d in args["dims"]]
                return True
            case name if name == _VIEW:
                return self._viewed(shape)
            case name if name == _UNFOLD:
                window = PatchWindow(args["size"], args["step"])
                dim: int = args["dimension"] % len(self.dims)
                if not self._slid(dim, window, shape[dim]):
                    return False
                self._append_taps(self.dims[dim][0].axis)
                return True
            case _:
                return self._columns(op, shape)

    def _slid(self, dim: int, window: PatchWindow, places: int) -> bool:
        """Let a window slide along a dimension that is an axis; it becomes that of the places."""
        if [p.role for p in self.dims[dim]] != [Role.WHOLE] or min(window.size, places) < 2:
            return False
        axis = self.dims[dim][0].axis
        self.windows[axis] = window
        self.dims[dim] = [PatchPart(axis, Role.PLACE, places)]
        return True

    def _append_taps(self, axis: int) -> None:
        """Put the taps of an axis in a dimension behind all others."""
        self.dims.append([PatchPart(axis, Role.TAP, self.windows[axis].size)])

    def _columns(self, op: AtenOp, shape: Sequence[int]) -> bool:
        """Follow `im2col`: channels and taps of both axes, then places of both."""
        args, image = arguments_of(op), shape_of(op.operands[0])
        size, stride, padding, dilation = (
            spread(args[name], 2) for name in ("kernel_size", "stride", "padding", "dilation")
        )
        at, made = len(self.dims) - 2, list[PatchPart]()
        channels = self.dims[at - 1]
        for d in range(2):
            window = PatchWindow(size[d], stride[d], padding[d], dilation[d])
            reach = window.dilation * (window.size - 1) + 1
            places = (image[at + d] + 2 * window.padding - reach) // window.stride + 1
            if not self._slid(at + d, window, places):
                return False
            made.append(PatchPart(self.dims[at + d][0].axis, Role.TAP, window.size))
        self.dims = [*self.dims[: at - 1], [*channels, *made], [*self.dims[at], *self.dims[at + 1]]]
        return len(self.dims) == len(shape)

    def _viewed(self, shape: Sequence[int]) -> bool:
        """Part dimensions at places and taps, and join neighbours."""
        waiting, made = [part for dim in self.dims for part in dim], list[list[PatchPart]]()
        for extent in shape:
            group, left = list[PatchPart](), extent
            while left > 1:
                if not waiting:
                    return False
                part = waiting.pop(0)
                if left % part.extent:
                    if (split := self._split(part, left)) is None:
                        return False
                    part, taps = split
                    waiting.insert(0, taps)
                group.append(part)
                left //= part.extent
            made.append(group)
        self.dims = made
        return not waiting

    def _split(self, part: PatchPart, places: int) -> tuple[PatchPart, PatchPart] | None:
        """Part the positions of an axis at so many places; None if they are no axis, or part otherwise."""
        if part.role is not Role.WHOLE or part.extent % places:
            return None
        taps = part.extent // places
        self.windows[part.axis] = PatchWindow(taps, taps)
        return PatchPart(part.axis, Role.PLACE, places), PatchPart(part.axis, Role.TAP, taps)


def patches_in(value: SSAValue) -> Iterator[Patches]:
    """Yield the patches that a tensor consists of, out of the nearest tensor first."""
    for start, chain in _chains(value):
        found = Patches.whole(start)
        if all(map(found.after, chain)) and found.windows:
            yield found


def _chains(value: SSAValue) -> Iterator[tuple[SSAValue, list[AtenOp]]]:
    """Yield the tensors that ops of one reader have moved to a tensor, the nearest first, and these ops."""
    chain = list[AtenOp]()
    while isinstance(op := value.owner, AtenOp) and len(chain) < _MOST_OPS:
        if op.overload not in _MOVES or not is_open(op) or not value.has_one_use():
            return
        chain.insert(0, op)
        value = op.operands[0]
        yield value, chain


__all__ = ["PatchPart", "PatchWindow", "Patches", "Role", "patches_in"]

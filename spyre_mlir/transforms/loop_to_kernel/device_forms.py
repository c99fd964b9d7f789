"""The device forms of a loop-level tensor: its buffers by layout, and where their contents come from.

Decision: docs/decisions/0138-weights-are-rearranged-at-load.md
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects.builtin import Float8E4M3FNType
from xdsl.ir import Attribute, SSAValue

from spyre_mlir.dialects.spyre.loop_blocks import THE_ENTRY, NamedEntry
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.formats import DL16, FP8
from spyre_mlir.hw.moves import HostStep, Move
from spyre_mlir.hw.sticks import round_up
from spyre_mlir.hw.weight_room import MORE_AT_LEAST, MORE_BYTES
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedBuffer

_LANES = DL16.elements_per_stick()


@dataclass(frozen=True)
class Block:
    """The block of a dimension that holds a position of the host.

    Attributes:
        source: the tensor.
        whole: its forms.
        dim: the dimension.
        position: of the host.
        named: the entry that it names.
    """

    source: SSAValue
    whole: DeviceForms
    dim: int
    position: SSAValue
    named: NamedEntry = THE_ENTRY


@dataclass
class DeviceForms:
    """The device forms of one loop-level tensor.

    Attributes:
        buffers: one per layout made so far.
        host: the host tensor it comes from, if it does.
        moves: what the host does to that before it lays it out.
        prepared: whether the host lays it out ahead of time (weights, constants), its padding 0.
        constant: the number or pattern it is, if it is one.
        origin: the same tensor in the format it was computed in, if this is a conversion.
        elements: the types that the model converts integers to on the way from `host` or `origin`; see `PlannedBuffer`.
        saturate: whether the host limits the numbers to what comparisons need; see `PlannedBuffer`.
        argument: the argument of a region's function that it is, if the caller has it on the device.
        block: the block of another tensor that it is, if it is one.
        maker: of a tensor that kernels can make in any layout: what plans them, by the dimension in the sticks.
        placed: whether it is an input that lies on the card already; its first buffer is this one.
    """

    shape: tuple[int, ...]
    format: str
    buffers: list[PlannedBuffer] = field(default_factory=list[PlannedBuffer])
    host: SSAValue | None = None
    moves: tuple[HostStep, ...] = ()
    prepared: bool = False
    constant: Attribute | None = None
    origin: DeviceForms | None = None
    elements: tuple[Attribute, ...] = ()
    saturate: bool = False
    argument: SSAValue | None = None
    block: Block | None = None
    maker: Callable[[int], PlannedBuffer] | None = None
    placed: bool = False

    def given(self, host: SSAValue, *, prepared: bool) -> DeviceForms:
        """Return these forms as those of a host tensor.

        A weight of eight-bit floats keeps its eight bits on the card: its readers make DL16 of it, in scratchpads.
        """
        if prepared and self.shape and isinstance(element_of(host), Float8E4M3FNType):
            self.origin = DeviceForms(self.shape, FP8.name, host=host, prepared=True)
        else:
            self.host, self.prepared = host, prepared
        return self

    @property
    def free_layout(self) -> bool:
        """Return whether the host, or the caller of a region, can provide any layout at no cost to this function."""
        if self.block is not None:
            return self.block.whole.free_layout
        comes = self.host or self.argument
        return (
            self.prepared
            or self.constant is not None
            or self.maker is not None
            or (comes is not None and not self.buffers)
        )

    @property
    def provided(self) -> bool:
        """Return whether the host can provide it in any format."""
        return self.constant is not None or self.host is not None

    def find(self, stick: int) -> PlannedBuffer | None:
        """Return the buffer whose stick dimension is `stick`, if there is one."""
        return next((b for b in self.buffers if b.layout.stick == stick), None)

    def sent_as(self, form: str, *elements: Attribute, saturate: bool = False) -> DeviceForms:
        """Return the same tensor as the host provides it in a format, after conversions of its integers."""
        return DeviceForms(
            self.shape,
            form,
            host=self.host,
            moves=self.moves,
            prepared=self.prepared,
            constant=self.constant,
            elements=(*self.elements, *elements),
            saturate=saturate,
        )

    def after(self, move: Move, room: WeightRoom) -> DeviceForms | None:
        """Return the forms of a weight after a move that the host makes; None if that is not the host's to do."""
        if self.host is None or not self.prepared or move.overwrites or not room.has(self.host, move.shape):
            return None
        moves = (*self.moves, move)
        return DeviceForms(move.shape, self.format, host=self.host, moves=moves, prepared=True, elements=self.elements)


@dataclass
class WeightRoom:
    """Room on the card for what rearranged weights take more than weights as the model has them.

    Attributes:
        elements: how many there are in all.
        taken: by weight, for its largest form.
        granted: weights that have room whatever is taken.
    """

    elements: float = 0
    taken: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    granted: set[SSAValue] = field(default_factory=set[SSAValue])

    @staticmethod
    def of(weights: Iterable[SSAValue], *, region: bool) -> WeightRoom:
        """Return the room of a program, or of the function of a region, whose calls take it again each."""
        least = 0 if region else MORE_AT_LEAST // (DL16.bits // 8)
        return WeightRoom(max(least, MORE_BYTES * sum(least_elements(shape_of(w)) for w in weights)))

    def has(self, weight: SSAValue, shape: tuple[int, ...]) -> bool:
        """Return whether a form of a weight still fits."""
        if weight in self.granted:
            return True
        others = sum(more for other, more in self.taken.items() if other is not weight)
        return others + self._more(weight, shape) <= self.elements

    def take(self, weight: SSAValue, shape: tuple[int, ...]) -> None:
        """Use the room for a form of a weight."""
        if weight not in self.granted:
            self.taken[weight] = self._more(weight, shape)

    def _more(self, weight: SSAValue, shape: tuple[int, ...]) -> int:
        return max(self.taken.get(weight, 0), least_elements(shape) - least_elements(shape_of(weight)))


def least_elements(shape: tuple[int, ...]) -> int:
    """Return the elements that the sticks of a tensor have, in the layout that has the fewest."""
    if not prod(shape):
        return 0
    return min((prod(shape) // extent * round_up(extent, _LANES) for extent in shape), default=_LANES)


__all__ = ["Block", "DeviceForms", "WeightRoom", "least_elements"]

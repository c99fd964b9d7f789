"""Tensors that stay on the card between runs: weights that programs share, and results that a later run reads.

Decision: docs/decisions/0123-tensors-stay-on-the-card.md
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from math import prod

import numpy as np
import numpy.typing as npt
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from spyre_mlir.dialects.argument_notes import ZERO, argument_name, note_of
from spyre_mlir.dialects.spyre.attributes import DeviceTensor
from spyre_mlir.dialects.spyre.kernel import ToDeviceOp
from spyre_mlir.errors import InputError
from spyre_mlir.hw.moves import HostStep
from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec
from spyre_mlir.machine.arrays import Array, HostArray, as_numbers
from spyre_mlir.machine.bundle.transfers import fetch
from spyre_mlir.machine.levels.run import bind_input
from spyre_mlir.machine.memory.choice import memory_for
from spyre_mlir.machine.memory.exact import MemoryRegion
from spyre_mlir.machine.memory.shadow import ShadowMemory
from spyre_mlir.machine.options import MachineOptions


@dataclass(frozen=True)
class Form:
    """How a program takes a tensor.

    Attributes:
        tensor: layout and format.
        zero_padding: whether padding is 0.
        options: numerics, which say what a slot of memory holds.
        moves: what the host does to it before it lays it out.
        elements: the types to which it converts the numbers first.
    """

    tensor: DeviceTensor
    zero_padding: bool
    options: MachineOptions
    moves: tuple[HostStep, ...] = ()
    elements: tuple[Attribute, ...] = ()

    @classmethod
    def of(
        cls,
        tensor: DeviceTensor,
        options: MachineOptions,
        *,
        zero_padding: bool = False,
        moves: tuple[HostStep, ...] = (),
        elements: tuple[Attribute, ...] = (),
    ) -> Form:
        """Return a form; where there is no padding, nothing is said about it."""
        padded = zero_padding and prod(tensor.shape) < tensor.sticks * tensor.lanes
        return cls(tensor, padded, options, moves, elements)


@dataclass(frozen=True)
class CardImage:
    """Contents of the region of a tensor.

    Attributes:
        cells: what the slots hold.
        states: what was written where.
        beyond: how many numbers DLFloat16 does not reach, and the largest.
    """

    cells: npt.NDArray[np.uint8]
    states: ShadowMemory
    beyond: tuple[int, float] | None = None

    @classmethod
    def of(cls, region: MemoryRegion, beyond: tuple[int, float] | None = None) -> CardImage:
        """Keep the contents of a region; whoever writes to it later gets a copy.

        Launches are counted anew in every run, so all of it counts as sent by the host.
        """
        region.states.writer[...] = 0
        region.shared = True
        return cls(region.cells, region.states, beyond)


@dataclass(frozen=True)
class CardResult:
    """A result that was not read back.

    Attributes:
        form: how it lies on the card.
        image: its contents.
        spec: the card.
        element: its element type in the program.
    """

    form: Form
    image: CardImage
    spec: SpyreSpec
    element: Attribute

    @classmethod
    def of(cls, form: Form, region: MemoryRegion, spec: SpyreSpec, element: Attribute) -> CardResult:
        """Keep a region that kernels of this run have written."""
        return cls(form, CardImage.of(region), spec, element)

    def read(self) -> Array:
        """Bring the numbers to the host, in the type that results of a run have."""
        memory = memory_for(self.form.options, self.spec)
        region = memory.allocate("result", self.form.tensor.sticks * STICK_BYTES, zeroed=False)
        region.share(self.image.cells, self.image.states)
        values = fetch(memory, self.form.tensor, region.base).values
        return as_numbers(values, self.element, narrow=self.form.options.numerics != "exact")


@dataclass(eq=False)
class KeptTensor:
    """A tensor of the host with its copies on the card, one per form that a program asked for.

    Attributes:
        host: gives the numbers, if no copy is of the right form; None for a weight of which only files know.
        transfers: how often it went from the host to the card.
    """

    host: Callable[[], Array] | None
    transfers: int = 0
    _images: dict[Form, CardImage] = field(default_factory=dict[Form, CardImage])

    @property
    def card_bytes(self) -> int:
        """Bytes of the card that the copies take, padding included."""
        return sum(form.tensor.sticks * STICK_BYTES for form in self._images)

    def image(self, form: Form) -> CardImage | None:
        """Return the copy of this form, None if there is none."""
        return self._images.get(form)

    def sent(self, form: Form, image: CardImage) -> None:
        """Keep the image that was sent."""
        self._images[form] = image
        self.transfers += 1

    def becomes(self, result: CardResult) -> None:
        """Take the result of a run for the tensor's new value."""
        self._images = {result.form: result.image}
        self.host = result.read


@dataclass(frozen=True)
class KeptInput:
    """An argument that stays on the card, and what makes an argument of its numbers."""

    kept: KeptTensor
    bound: Callable[[], HostArray]


def argument_of(main: FuncOp, number: int, value: Array | KeptTensor | None, *, narrow: bool) -> object:
    """Return an argument as the interpreter has it; one that a host step reads is a host array in any case.

    Raises:
        InputError: the call gives it no value.
    """
    if value is None or not isinstance(value, KeptTensor):
        return None if value is None else bind_input(main, number, value, narrow=narrow)
    read = value.host

    def bound() -> HostArray:
        if read is None:
            raise InputError(f"{argument_name(main, number)} has no value", hint="pass one")
        return bind_input(main, number, read(), narrow=narrow)

    if not all(isinstance(use.operation, ToDeviceOp) for use in main.args[number].uses):
        return bound()
    if read is not None and note_of(main, number, ZERO) is not None:
        bound()  # looks at the numbers in every run, also at those that are on the card already
    return KeptInput(value, bound)


def numbers_of(argument: object) -> Array | None:
    """Return the numbers of an argument of a run, also of one that is on the card; None if the host has none."""
    if isinstance(argument, KeptInput):
        return None if argument.kept.host is None else argument.bound().values
    return argument.values if isinstance(argument, HostArray) else None


def staying(main: FuncOp, keep: Collection[int]) -> dict[SSAValue, list[int]]:
    """Return the values that are wanted as nothing but results that stay on the card, with their numbers."""
    returned = main.get_return_op()
    values: dict[SSAValue, list[int]] = {}
    for number, value in enumerate(() if returned is None else returned.operands):
        if all(use.operation is returned for use in value.uses):
            values.setdefault(value, []).append(number)
    return {value: numbers for value, numbers in values.items() if all(n in keep for n in numbers)}


__all__ = ["CardImage", "CardResult", "Form", "KeptInput", "KeptTensor", "argument_of", "numbers_of", "staying"]

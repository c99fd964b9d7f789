"""Digits of words, taken out of them by kernels: weights of 8-bit and 4-bit integers become DL16 in the scratchpads.

A word `w` is `h * 2**16 + l`, of which float32 has 24 bits. So its upper half comes from `w` rounded to a float32, and
what is left is an exact sum of integers:

    g = floor(float(w) * -2**-16)        about -h - 1
    r = float(w + int(g * 2**16))        l, less a small multiple of 2**16
    k = floor(r * 2**-16)                that multiple
    h = k - g

Rounding may make `g` a neighbour, which `k` makes good again, so that how the conversion rounds does not matter. The
factor is less than 2**-16 by one place of float32, which keeps `g * 2**16` inside of 32 bits. Halves are two bytes and
bytes are two nibbles, by `floor` and a difference each. A digit is moved to both sides of 0 before `floor` where it is
the upper one, else behind the difference, in the step that scales it. No integer overflows on the way.

Decision: docs/decisions/0150-integers-of-few-bits-are-words.md
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from spyre_mlir.dialects.spyre import loop
from spyre_mlir.dialects.spyre.loop import DIGITS
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.hw.few_bits import NIBBLE, Words
from spyre_mlir.hw.formats import DL16, FP32, INT32
from spyre_mlir.hw.moves import Move
from spyre_mlir.hw.sticks import IndexMap, LinearExpr, StickLayout
from spyre_mlir.ops.hardware_functions import COPY
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedBuffer, Use
from spyre_mlir.transforms.loop_to_kernel.device_forms import DeviceForms
from spyre_mlir.transforms.loop_to_kernel.layout_planner import CONVERT_STEP, LayoutPlanner, block_of

_ADD = "addi32toi32"
_SCALE = "batchnormfwd"
_HALF_BITS = 16
# -2**-16, nearer to 0 by one place of float32.
_TO_UPPER = -(2.0**-16) * (1 - 2.0**-24)


# Plans the last steps to a digit, which follow when it is asked for.
_Digit = Callable[[], PlannedBuffer]


@dataclass(eq=False)
class PackedWeight:
    """A weight that the host sends as words, and its digits by the dimension in their sticks.

    Attributes:
        host: the weight.
        dim: its dimension whose parts are the digits.
        words: the size of a digit.
        part: extent of a digit along this dimension.
        first: where the first digit begins in the weight.
    """

    host: SSAValue
    dim: int
    words: Words
    part: int
    first: int
    digits: dict[int, list[_Digit]] = field(default_factory=dict[int, "list[_Digit]"])

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of a digit."""
        return tuple(self.part if d == self.dim else e for d, e in enumerate(shape_of(self.host)))

    def digit(self, p: LayoutPlanner, number: int, stick: int) -> PlannedBuffer:
        """Return a digit as DL16; the steps that all digits of words share are planned at the first one."""
        if stick not in self.digits:
            self.digits[stick] = _Unpacking(p, self, stick).run()
        return self.digits[stick][number]()

    def move(self) -> Move:
        """The parts of the weight, one after the other."""
        shape = self.shape
        loops = (("j", self.words.count), *((f"d{d}", e) for d, e in enumerate(shape)))
        own = tuple(LinearExpr.of(f"d{d}") for d in range(len(shape)))
        joined = LinearExpr(self.first, (("j", shape[self.dim]), (f"d{self.dim}", 1)))
        source = tuple(joined if d == self.dim else e for d, e in enumerate(own))
        return Move(loops, source, (LinearExpr.of("j"), *own), (self.words.count, *shape))


def packed_digit(p: LayoutPlanner, op: loop.NestOp) -> bool:
    """Let the result of a nest be a digit of words, if `pack-weights` made it one; say whether it is."""
    noted = op.attributes.get(DIGITS)
    if not isinstance(noted, IntegerAttr):
        return False
    (host,), (index,), words = op.inputs, op.input_maps, Words(noted.value.data)
    parts = zip(shape_of(host), shape_of(op.result), strict=True)
    dim = next(d for d, (whole, part) in enumerate(parts) if whole != part)
    part = shape_of(op.result)[dim]
    block, number = divmod(index.data[dim].const // part, words.count)
    weight = PackedWeight(host, dim, words, part, block * words.count * part)
    weight = p.packed.setdefault((host, dim, words, weight.first), weight)
    p.versions[op.result] = DeviceForms(shape_of(op.result), DL16.name, maker=partial(weight.digit, p, number))
    return True


class _Unpacking:
    """The steps from words to their digits, in buffers of one layout."""

    def __init__(self, p: LayoutPlanner, weight: PackedWeight, stick: int) -> None:
        self.planner, self.weight, self.stick = p, weight, stick
        self.shape = weight.shape
        self.space, self.index = p.whole(self.shape)

    def run(self) -> list[_Digit]:
        """Plan what all digits share: DL16 of each byte or nothing but a part of it; the highest digit comes first."""
        nibbles = self.weight.words.bits == NIBBLE
        lower, upper = self._halves()
        scaled = self._step("mul", lower, 256.0) if nibbles else self._scaled(lower, 256.0, -128.0)
        third = self._step("floor", scaled)
        made = [self._narrow(third), self._narrow(self._step("sub", scaled, third))]
        first = self._step("floor", scaled := self._step("mul", upper, 2.0**-8))
        top, rest = self._narrow(first), self._narrow(self._step("sub", scaled, first))
        if nibbles:
            return [
                *self._nibbles(top, 2.0**-4, 0.0),
                *self._nibbles(rest, 16.0, -8.0),
                *self._nibbles(made[0], 2.0**-4, -8.0),
                *self._nibbles(made[1], 16.0, -8.0),
            ]
        return [
            lambda: top,
            partial(self._scaled, rest, 256.0, -128.0),
            lambda: made[0],
            partial(self._scaled, made[1], 256.0, -128.0),
        ]

    def _halves(self) -> tuple[PlannedBuffer, PlannedBuffer]:
        """The lower half of words as a part of 1, and the upper one with its sign."""
        # Words are read twice, from device memory once.
        words = self._step(COPY, self._sent())
        about = self._step("floor", self._step("mul", self._converted(words, FP32.name), _TO_UPPER))
        less = self._converted(self._step("mul", about, 2.0**_HALF_BITS), INT32.name)
        rest = self._converted(self._step(_ADD, words, less), FP32.name)
        scaled = self._step("mul", rest, 2.0**-_HALF_BITS)
        multiple = self._step("floor", scaled)
        return self._step("sub", scaled, multiple), self._step("sub", multiple, about)

    def _nibbles(self, byte: PlannedBuffer, factor: float, shift: float) -> list[_Digit]:
        """The two digits of bytes, of which the upper one is whole after a factor, and has its sign after a shift."""

        @cache
        def scaled() -> PlannedBuffer:
            return self._scaled(byte, factor, shift)

        @cache
        def upper() -> PlannedBuffer:
            return self._step("floor", scaled())

        return [upper, lambda: self._scaled(self._step("sub", scaled(), upper()), 16.0, -8.0)]

    def _scaled(self, source: PlannedBuffer, factor: float, shift: float) -> PlannedBuffer:
        """A multiple with something added, in one step."""
        numbers = [self.planner.number(number, source.format) for number in (factor, shift)]
        return self._add(_SCALE, [source, *numbers], source.format)

    def _sent(self) -> PlannedBuffer:
        layout = StickLayout.published(self.shape, self.stick, block_of(INT32.name))
        moves = (self.weight.move(), self.weight.words)
        host = self.weight.host
        return self.planner.define(PlannedBuffer(self.shape, INT32.name, layout, host, zero_padding=True, moves=moves))

    def _narrow(self, source: PlannedBuffer) -> PlannedBuffer:
        return self._converted(source, DL16.name)

    def _converted(self, source: PlannedBuffer, form: str) -> PlannedBuffer:
        return self._add(CONVERT_STEP, [source], form)

    def _step(self, function: str, first: PlannedBuffer, second: PlannedBuffer | float | None = None) -> PlannedBuffer:
        operands = [first]
        if second is not None:
            operands.append(second if isinstance(second, PlannedBuffer) else self.planner.number(second, first.format))
        return self._add(function, operands, first.format)

    def _add(self, function: str, operands: list[PlannedBuffer], form: str) -> PlannedBuffer:
        made = self.planner.fresh(self.shape, form, self.stick)
        none: IndexMap = ()
        through: list[Use] = [(b, self.index if b.shape else none) for b in operands]
        self.planner.step(function, self.space, through, (made, self.index))
        return made


__all__ = ["PackedWeight", "packed_digit"]

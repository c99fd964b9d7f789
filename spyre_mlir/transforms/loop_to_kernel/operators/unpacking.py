"""Digits of words, taken out of them by kernels: weights of 8-bit and 4-bit integers become DL16 in the scratchpads.

A word `w` is `h * 2**16 + l`, of which float32 has 24 bits. So its upper half comes from `w` rounded to a float32, and
what is left is an exact sum of integers:

    g = floor(float(w) * -2**-16)        about -h - 1
    r = float(w + int(g * 2**16))        l, less a small multiple of 2**16
    k = floor(r * 2**-16)                that multiple
    h = k - g,  l = r - k * 2**16

Rounding may make `g` a neighbour, which `k` makes good again, so that how the conversion rounds does not matter. The
factor is less than 2**-16 by four places of float32, which keeps `g * 2**16` inside of 32 bits.

Halves are two bytes and bytes are two nibbles, in three steps each: `floor(x * 2**-8 + s)` is the upper one, and `x`
less 256 times that the lower one, where the shift `s` gives both their signs. A shift of `g` gives the upper half its
sign, and one of `g * 2**16` the lower half, if it is a multiple of 128: float32 does not have other sums. So the lower
half of words of nibbles stays 8 too large, and the last of its digits takes a step more. No integer overflows.

Decision: docs/decisions/0150-integers-of-few-bits-are-words.md
Decision: docs/decisions/0188-of-loops-that-gain-alike-few-launches.md
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
from spyre_mlir.hw.few_bits import BYTE, NIBBLE, Words
from spyre_mlir.hw.formats import DL16, FP32, INT32
from spyre_mlir.hw.moves import Move
from spyre_mlir.hw.sticks import IndexMap, LinearExpr, StickLayout
from spyre_mlir.ops.hardware_functions import COPY
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedBuffer, Use, elements_of
from spyre_mlir.transforms.loop_to_kernel.device_forms import DeviceForms
from spyre_mlir.transforms.loop_to_kernel.layout_planner import CONVERT_STEP, LayoutPlanner, block_of

_ADD = "addi32toi32"
_SCALE = "batchnormfwd"
_HALF = 2**16
# -2**-16, nearer to 0 by four places of float32: a shift added to the product does not round it up again.
_TO_UPPER = -(2.0**-16) * (1 - 2.0**-22)
_WHOLE = 128  # of as many float32 has any multiple up to 2**31


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


@dataclass(frozen=True)
class _Shifts:
    """What the host adds to digits, and what steps cannot take back.

    Attributes:
        lower: what it adds to the lower half of a word.
        upper: to the upper half, of which the first digit has its sign.
        byte: the least sum of a byte's digits, each times what it counts.
        excess: what the lower half keeps of the shift, which float32 takes in multiples of `_WHOLE` alone.
    """

    lower: int
    upper: int
    byte: int
    excess: int

    @classmethod
    def of(cls, words: Words) -> _Shifts:
        """The shifts of words."""
        byte = words.least * sum(1 << place for place in range(0, BYTE, words.bits))
        lower = -byte * ((1 << BYTE) + 1)
        return cls(lower, lower + words.least * (_HALF >> words.bits), byte, lower % _WHOLE)


class _Unpacking:
    """The steps from words to their digits, in buffers of one layout."""

    def __init__(self, p: LayoutPlanner, weight: PackedWeight, stick: int) -> None:
        self.planner, self.weight, self.stick = p, weight, stick
        self.shape = weight.shape
        self.space, self.index = elements_of(self.shape)

    def run(self) -> list[_Digit]:
        """Plan what all digits share: DL16 of each byte; the highest digit comes first."""
        bits, shift = self.weight.words.bits, _Shifts.of(self.weight.words)
        upper, lower = self._halves(shift)
        last = self._bytes(lower, shift.byte + shift.excess)
        made = [*self._bytes(upper, shift.byte), *last]
        if bits != NIBBLE:
            return [partial(_same, byte) for byte in made]
        return [digit for byte in made[:-1] for digit in self._nibbles(byte)] + self._last_nibbles(made[-1])

    def _bytes(self, half: PlannedBuffer, least: int) -> list[PlannedBuffer]:
        """The two bytes of a half; narrow before the other half is taken apart, so that few wide buffers are held."""
        return [self._converted(byte, DL16.name) for byte in self._parts(half, BYTE, least)]

    def _halves(self, shift: _Shifts) -> tuple[PlannedBuffer, PlannedBuffer]:
        """The halves of words as integers with their signs, the lower one with its excess."""
        # Words are read twice, from device memory once.
        words = self._step(COPY, self._sent())
        about = self._step("floor", self._scaled(self._converted(words, FP32.name), _TO_UPPER, 1 + shift.upper))
        added = _HALF * (1 - (1 + shift.upper)) - shift.lower + shift.excess
        less = self._converted(self._scaled(about, _HALF, added), INT32.name)
        rest = self._converted(self._step(_ADD, words, less), FP32.name)
        multiple = self._step("floor", self._scaled(rest, 1 / _HALF, (shift.lower - shift.excess) / _HALF))
        return self._step("sub", multiple, about), self._scaled(multiple, -_HALF, rest)

    def _parts(self, source: PlannedBuffer, bits: int, least: int) -> tuple[PlannedBuffer, PlannedBuffer]:
        """The upper and the lower part of integers, of which the lower one has so many bits from its least number."""
        upper = self._step("floor", self._scaled(source, 2.0**-bits, -least * 2.0**-bits))
        return upper, self._scaled(upper, -(2.0**bits), source)

    def _nibbles(self, byte: PlannedBuffer) -> list[_Digit]:
        """The two digits of bytes."""

        @cache
        def parts() -> tuple[PlannedBuffer, PlannedBuffer]:
            return self._parts(byte, NIBBLE, Words(NIBBLE).least)

        return [lambda: parts()[0], lambda: parts()[1]]

    def _last_nibbles(self, byte: PlannedBuffer) -> list[_Digit]:
        """The two digits of bytes that are too large by the least of a digit."""

        @cache
        def scaled() -> PlannedBuffer:
            return self._step("mul", byte, 2.0**-NIBBLE)

        @cache
        def upper() -> PlannedBuffer:
            return self._step("floor", scaled())

        least = Words(NIBBLE).least
        return [upper, lambda: self._scaled(self._step("sub", scaled(), upper()), 2.0**NIBBLE, least)]

    def _scaled(self, source: PlannedBuffer, factor: float, shift: PlannedBuffer | float) -> PlannedBuffer:
        """A multiple with something added, in one step."""
        added = shift if isinstance(shift, PlannedBuffer) else self.planner.number(float(shift), source.format)
        return self._add(_SCALE, [source, self.planner.number(float(factor), source.format), added], source.format)

    def _sent(self) -> PlannedBuffer:
        layout = StickLayout.published(self.shape, self.stick, block_of(INT32.name))
        moves = (self.weight.move(), self.weight.words)
        host = self.weight.host
        return self.planner.define(PlannedBuffer(self.shape, INT32.name, layout, host, zero_padding=True, moves=moves))

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


def _same(digit: PlannedBuffer) -> PlannedBuffer:
    return digit


__all__ = ["PackedWeight", "packed_digit"]

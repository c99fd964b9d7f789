"""Floor division of integers on the device: a rounded quotient, its floor, and the correction of its error.

All numbers are FP32, exact to 2^24. A quotient that is rounded to the next whole number is one too large, and how the
hardware rounds is not public, so the remainder decides. A product beyond 2^24 is rounded too, but never across a
number below 2^24: comparing it with the dividend stays right.
"""

from __future__ import annotations

from collections.abc import Sequence

from spyre_mlir.dialects.spyre import loop
from spyre_mlir.dialects.spyre.attributes import IterDim
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.hw.formats import EXACT_INTEGERS, FP32
from spyre_mlir.hw.legality import stick_for
from spyre_mlir.hw.sticks import UNIT
from spyre_mlir.transforms.loop_to_kernel.buffers import Use
from spyre_mlir.transforms.loop_to_kernel.layout_planner import LayoutPlanner, block_of
from spyre_mlir.transforms.utils.numerics.integer_ranges import IntegerBounds

_EXACT = EXACT_INTEGERS[FP32.name]


class FloorDivision:
    """Builder of kernel steps over the loops of one nest, each into a buffer of its own."""

    def __init__(self, p: LayoutPlanner, op: loop.NestOp, lane: str | None) -> None:
        """For a nest whose result has `lane` in its lanes."""
        self.planner, self.space = p, tuple[IterDim, ...](op.space.data)
        self.shape, self.index = shape_of(op.result), op.output_map.data
        stick = stick_for(self.index, lane, block_of(FP32.name))
        self.stick = UNIT if stick is None else stick

    def step(self, function: str, *operands: Use, integers: bool = False) -> Use:
        """Add one function of operands; the machine checks that the result holds integers if `integers`."""
        made = (self.planner.fresh(self.shape, FP32.name, self.stick), self.index)
        self.planner.step(function, self.space, list(operands), made, integers=integers)
        return made

    def number(self, value: float) -> Use:
        """Return a number as an operand."""
        return self.planner.number(value, FP32.name), tuple[()]()

    def of(self, a: Use, b: Use, bounds: Sequence[IntegerBounds]) -> Use:
        """Return the largest integer not above a / b."""
        (low, high), divisor = bounds
        by_zero = divisor[0] <= 0 <= divisor[1]  # torch raises then: no integer may come of it here
        whole = self.step("floor", self.step("realdiv", a, b), integers=by_zero)
        if divisor[0] == divisor[1] and (divisor[0] & -divisor[0]) == abs(divisor[0]):
            return whole  # a power of two only scales
        product = self.step("mul", whole, b)
        alike = (low >= 0 and divisor[0] >= 0) or (high <= 0 and divisor[1] <= 0)
        if alike or max(-low, high) + max(-divisor[0], divisor[1]) <= _EXACT:
            rest = self.step("realdiv", self.step("sub", a, product), b)
            return self.step("add", whole, self.step("floor", rest))
        beyond = self._over(self.step("sub", product, a), b, divisor)
        whole = self.step("sub", whole, self.step("greaterthan", beyond, self.number(0.0)))
        following = self.step("mul", self.step("add", whole, self.number(1.0)), b)
        left = self._over(self.step("sub", following, a), b, divisor)
        return self.step("add", whole, self.step("lesserequal", left, self.number(0.0)))

    def _over(self, x: Use, b: Use, divisor: IntegerBounds) -> Use:
        """A number with the sign of x / b."""
        return x if divisor[0] >= 0 else self.step("realdiv", x, b)

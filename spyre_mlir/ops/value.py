"""Typed value that the body of a composed operation computes on, with the operators of the op table.

`x * y + 1.0` adds a `mul.Tensor` and an `add.Tensor` to what the body builds, in the order in which Python evaluates
them. Everything that has no operator or method here is a call of the `Build`: `b.call("erf", x)`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol, TypeAlias

from spyre_mlir.ops.annotations import Ints, Number

FLOATS = ("f16", "bf16", "f32", "f64")
# What a call takes for a tensor; a number stands for a tensor without dimensions.
Operand: TypeAlias = "Value | Number | Sequence[Value | None] | None"
# What a call takes for any other argument.
Argument: TypeAlias = "Number | str | tuple[int, ...] | tuple[float, ...] | tuple[bool, ...] | Operand"
# What the rewrite of an operation gives: None leaves the operation as it is.
Made: TypeAlias = "Value | tuple[Value, ...] | None"


class Caller(Protocol):
    """Caller of operations of the table."""

    def call(self, overload: str, *tensors: Operand, **attributes: Argument) -> Value:
        """Adds one op and gives its result.

        Args:
            overload: ATen's name, ``.default`` dropped, e.g. ``add.Tensor``.
            tensors: the tensor arguments, in the order of the entry; a Python number may stand for a tensor.
            attributes: the other arguments, by name.

        Raises:
            TypeError: the operation has several results.
        """
        ...


class Value(ABC):
    """A tensor of a composition, or a number in a tensor's place.

    Two values are equal if they are one object; `eq` and `ne` compare elements.

    Attributes:
        build: what adds the ops that the operators and methods stand for.
    """

    __slots__ = ("build",)

    def __init__(self, build: Caller) -> None:
        """Takes what its operators call."""
        self.build = build

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The extents; a number has none."""

    @property
    @abstractmethod
    def element(self) -> str:
        """The element type by its MLIR name: ``f16``, ``i64``, ``i1``, …; "" for a number."""

    @property
    @abstractmethod
    def number(self) -> Number | None:
        """The number that stands in the tensor's place; None if it is a tensor."""

    @property
    def rank(self) -> int:
        """How many dimensions there are."""
        return len(self.shape)

    @property
    def is_bool(self) -> bool:
        """Return whether the value holds truth values."""
        return isinstance(self.number, bool) or self.element == "i1"

    @property
    def is_float(self) -> bool:
        """Return whether the value holds floating-point numbers."""
        return self.element in FLOATS

    @property
    def is_whole(self) -> bool:
        """Return whether the value holds integers."""
        return self.element.startswith(("i", "ui", "si")) and not self.is_bool

    def __add__(self, other: Value | Number) -> Value:
        """self + other."""
        return self.build.call("add.Tensor", self, other)

    def __radd__(self, other: Number) -> Value:
        """other + self."""
        return self.build.call("add.Tensor", other, self)

    def __sub__(self, other: Value | Number) -> Value:
        """self - other."""
        return self.build.call("sub.Tensor", self, other)

    def __rsub__(self, other: Number) -> Value:
        """other - self."""
        return self.build.call("sub.Tensor", other, self)

    def __mul__(self, other: Value | Number) -> Value:
        """self * other."""
        return self.build.call("mul.Tensor", self, other)

    def __rmul__(self, other: Number) -> Value:
        """other * self."""
        return self.build.call("mul.Tensor", other, self)

    def __truediv__(self, other: Value | Number) -> Value:
        """self / other."""
        return self.build.call("div.Tensor", self, other)

    def __rtruediv__(self, other: Number) -> Value:
        """other / self."""
        return self.build.call("div.Tensor", other, self)

    def __matmul__(self, other: Value) -> Value:
        """The matrix product."""
        return self.build.call("matmul", self, other)

    def __neg__(self) -> Value:
        """-self."""
        return self.build.call("neg", self)

    def __abs__(self) -> Value:
        """The magnitudes."""
        return self.build.call("abs", self)

    def _compared(self, comparison: str, other: Value | Number) -> Value:
        kind = "Tensor" if isinstance(other, Value) else "Scalar"
        return self.build.call(f"{comparison}.{kind}", self, other)

    def eq(self, other: Value | Number) -> Value:
        """1 where the elements are equal."""
        return self._compared("eq", other)

    def ne(self, other: Value | Number) -> Value:
        """1 where the elements differ."""
        return self._compared("ne", other)

    def lt(self, other: Value | Number) -> Value:
        """1 where the element is less than the other."""
        return self._compared("lt", other)

    def le(self, other: Value | Number) -> Value:
        """1 where the element is at most the other."""
        return self._compared("le", other)

    def gt(self, other: Value | Number) -> Value:
        """1 where the element is more than the other."""
        return self._compared("gt", other)

    def ge(self, other: Value | Number) -> Value:
        """1 where the element is at least the other."""
        return self._compared("ge", other)

    def where(self, chosen: Value | Number, other: Value | Number) -> Value:
        """`chosen` where this truth value holds, else `other`."""
        return self.build.call("where.self", self, chosen, other)

    def maximum(self, other: Value | Number) -> Value:
        """The larger of two elements."""
        return self.build.call("maximum", self, other)

    def minimum(self, other: Value | Number) -> Value:
        """The smaller of two elements."""
        return self.build.call("minimum", self, other)

    def clamp(self, *, min: Number | None = None, max: Number | None = None) -> Value:
        """The elements limited to [min, max]."""
        return self.build.call("clamp", self, min=min, max=max)

    def exp(self) -> Value:
        """The exponential function."""
        return self.build.call("exp", self)

    def log(self) -> Value:
        """The natural logarithm."""
        return self.build.call("log", self)

    def sqrt(self) -> Value:
        """The square root."""
        return self.build.call("sqrt", self)

    def reciprocal(self) -> Value:
        """One over the element."""
        return self.build.call("reciprocal", self)

    def floor(self) -> Value:
        """The largest integer not above the element."""
        return self.build.call("floor", self)

    def sum(self, dim: int | Ints | None = None, *, keepdim: bool = False) -> Value:
        """The sum over some dimensions, or over all."""
        dims = (dim,) if isinstance(dim, int) else dim
        return self.build.call("sum.dim_IntList", self, dim=dims, keepdim=keepdim)

    def amax(self, dim: int | Ints = (), *, keepdim: bool = False) -> Value:
        """The largest element over some dimensions, or over all."""
        return self.build.call("amax", self, dim=(dim,) if isinstance(dim, int) else dim, keepdim=keepdim)

    def amin(self, dim: int | Ints = (), *, keepdim: bool = False) -> Value:
        """The smallest element over some dimensions, or over all."""
        return self.build.call("amin", self, dim=(dim,) if isinstance(dim, int) else dim, keepdim=keepdim)

    def clone(self) -> Value:
        """A copy."""
        return self.build.call("clone", self)

    def view(self, *size: int) -> Value:
        """The elements in order under another shape; one extent may be -1."""
        return self.build.call("view", self, size=size)

    def reshape(self, *size: int) -> Value:
        """The elements in order under another shape; one extent may be -1."""
        return self.build.call("reshape", self, size=size)

    def expand(self, *size: int) -> Value:
        """Dimensions of extent 1 repeated."""
        return self.build.call("expand", self, size=size)

    def permute(self, *dims: int) -> Value:
        """The dimensions in another order."""
        return self.build.call("permute", self, dims=dims)

    def transpose(self, dim0: int, dim1: int) -> Value:
        """Two dimensions exchanged."""
        return self.build.call("transpose.int", self, dim0=dim0, dim1=dim1)

    def unsqueeze(self, dim: int) -> Value:
        """A dimension of extent 1 inserted."""
        return self.build.call("unsqueeze", self, dim=dim)

    def squeeze(self, dim: int) -> Value:
        """A dimension of extent 1 dropped."""
        return self.build.call("squeeze.dim", self, dim=(dim,))

"""Values of composed operations at any level: SSA values, types, numbers in a tensor's place."""

from __future__ import annotations

from typing import TypeAlias, cast

from xdsl.ir import Attribute, SSAValue

from spyre_mlir.dialects.tensors import TypedValue, element_of, shape_of
from spyre_mlir.ops.value import Caller, Value

Raw: TypeAlias = "SSAValue[Attribute] | TypedValue | int | float"


class AtenValue(Value):
    """A value with its representation in the program, or outside one.

    Attributes:
        raw: an SSA value, a type, or a number.
    """

    __slots__ = ("raw",)

    def __init__(self, build: Caller, raw: Raw) -> None:
        """Takes what its operators call, and what it stands for."""
        super().__init__(build)
        self.raw = raw

    def __repr__(self) -> str:
        """Return the representation."""
        return repr(self.raw)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents; a number has none."""
        raw = self.raw
        return () if isinstance(raw, int | float) else shape_of(raw)

    @property
    def element(self) -> str:
        """The element type by its MLIR name; "" for a number."""
        raw = self.raw
        return "" if isinstance(raw, int | float) else str(element_of(raw))

    @property
    def number(self) -> int | float | None:
        """The number in the tensor's place; None if it is a tensor."""
        raw = self.raw
        return raw if isinstance(raw, int | float) else None


def raw_of(argument: object) -> object:
    """Return an argument of an op with the values of a build unwrapped."""
    if isinstance(argument, AtenValue):
        return argument.raw
    if isinstance(argument, list):
        return [raw_of(a) for a in cast("list[object]", argument)]
    return argument


def value_of(build: Caller, argument: object, *, is_tensor: bool) -> object:
    """Return an argument of an op for a composition: tensors as values, and numbers where a tensor is wanted."""
    if isinstance(argument, SSAValue | TypedValue):
        return AtenValue(build, cast("SSAValue[Attribute] | TypedValue", argument))
    if isinstance(argument, int | float) and is_tensor:
        return AtenValue(build, argument)
    if isinstance(argument, list):
        return [value_of(build, a, is_tensor=is_tensor) for a in cast("list[object]", argument)]
    return argument


def typed(value: Value) -> Raw:
    """Return the representation of a value.

    Raises:
        TypeError: it is of another kind of build.
    """
    if not isinstance(value, AtenValue):
        raise TypeError(f"{value!r} is no value of this build")
    return value.raw

"""Arrays of the upper levels: host arrays with undefined elements, and strided views of them.

Numbers are float64, integers int64, truth values bool. Inside one operator nothing is rounded; a float32 result is, as
eager rounds it, unless its op is marked `wide`. So a difference between two levels is an error of the compiler.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeVar, cast

import ml_dtypes
import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray
from xdsl.dialects.builtin import (
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    IndexType,
    IntegerType,
    TensorType,
)
from xdsl.interpreter import InterpreterFunctions
from xdsl.ir import Attribute, Operation

from spyre_mlir.dialects.tensors import integer_bits, is_unsigned
from spyre_mlir.hw.number_formats import fp8
from spyre_mlir.hw.sticks import LinearExpr
from spyre_mlir.machine.eager_rounding import as_integers
from spyre_mlir.machine.faults import FaultKind, fault

Array = NDArray[Any]
Mask = NDArray[np.bool_]
AxisKey = TypeVar("AxisKey", bound=Hashable)
_Functions = TypeVar("_Functions", bound=InterpreterFunctions)
# 8-bit floats that the card lacks. Torch makes infinity, or NaN, of what is beyond their largest number, as these do.
_HOST_FLOAT8: dict[type[Attribute], type[Any]] = {
    Float8E5M2Type: ml_dtypes.float8_e5m2,
    Float8E4M3FNUZType: ml_dtypes.float8_e4m3fnuz,
    Float8E5M2FNUZType: ml_dtypes.float8_e5m2fnuz,
}


@dataclass(frozen=True)
class HostArray:
    """A tensor in host memory.

    Attributes:
        values: the elements, dense in row-major order; NaN or 0 where undefined.
        defined: which elements have a value; None when all have.
    """

    values: Array
    defined: Mask | None = None

    @staticmethod
    def of(values: Array, element: Attribute) -> HostArray:
        """Return a fully defined tensor that holds `values` as numbers of an element type."""
        return HostArray(as_numbers(values, element))

    @staticmethod
    def undefined(shape: Sequence[int], element: Attribute) -> HostArray:
        """Return a tensor without any defined element."""
        dtype = numpy_type(element)
        values = np.full(shape, np.nan) if dtype == np.float64 else np.zeros(shape, dtype)
        return HostArray(values, np.zeros(shape, np.bool_))

    def part(self, number: int) -> HostArray:
        """Return one entry of dimension 0, as a tensor of one entry."""
        entry = slice(number, number + 1)
        return HostArray(self.values[entry], None if self.defined is None else self.defined[entry])

    @staticmethod
    def joined(parts: Sequence[HostArray]) -> HostArray:
        """Return tensors one behind the other along dimension 0."""
        values = np.concatenate([p.values for p in parts])
        if all(p.defined is None for p in parts):
            return HostArray(values)
        masks = [np.ones(p.values.shape, np.bool_) if p.defined is None else p.defined for p in parts]
        return HostArray(values, np.concatenate(masks))

    def known(self, op: Operation, name: str, kind: FaultKind = FaultKind.UNINITIALISED_READ) -> Array:
        """Return all elements.

        Raises:
            MachineFault: one of them has no value.
        """
        if self.defined is not None:
            check_known(self.defined, op, name, kind)
        return self.values


def check_known(defined: Mask, op: Operation, name: str, kind: FaultKind = FaultKind.UNINITIALISED_READ) -> None:
    """Raise MachineFault of this kind if an element that is read is undefined."""
    if not defined.all():
        at = first_index(~defined)
        raise fault(
            kind,
            f"{name}: element {at} has no value ({int((~defined).sum())} such elements)",
            op,
            tensor=name,
        )


def first_index(mask: Mask) -> list[int]:
    """Return the index of the first true element."""
    return [int(i) for i in np.unravel_index(int(mask.argmax()), mask.shape)]


def numpy_type(element: Attribute) -> type[np.float64] | type[np.int64] | type[np.bool_]:
    """Return the numpy type that holds an MLIR element type without rounding."""
    match element:
        case IntegerType():
            return np.bool_ if element.width.data == 1 else np.int64
        case IndexType():
            return np.int64
        case _:
            return np.float64


def as_numbers(values: Array, element: Attribute, *, narrow: bool = False) -> Array:
    """Return the same numbers in the numpy type of `element`; row-major, never a strided view of a caller's array.

    Args:
        values: the numbers.
        element: the MLIR type.
        narrow: leave float32 as it is.
    """
    if narrow and values.dtype == np.float32 and numpy_type(element) is np.float64:
        return np.asarray(values, order="C")
    if values.dtype.kind == "f" and numpy_type(element) is np.int64:
        return np.asarray(as_integers(values, str(element)), order="C")
    return in_width(np.asarray(values).astype(numpy_type(element), order="C", copy=False), element)


def in_width(values: Array, element: Attribute) -> Array:
    """Return numbers wrapped to their integer type, as in torch, or rounded to 8-bit floats."""
    if isinstance(element, Float8E4M3FNType):
        return fp8.round_trip(values)
    if (narrow := _HOST_FLOAT8.get(type(element))) is not None:
        with np.errstate(all="ignore"):
            return values.astype(np.float32).astype(narrow).astype(values.dtype)
    bits = integer_bits(element)
    if bits in (0, 1, 64) or values.size == 0:
        return values
    low = 0 if is_unsigned(element) else -(2 ** (bits - 1))
    if values.min() >= low and values.max() < low + 2**bits:
        return values
    return (values - low) % 2**bits + low


def tensor_type(type_: Attribute) -> TensorType[Attribute]:
    """Narrow a type known to be a tensor type."""
    return cast(TensorType[Attribute], type_)


def with_rules(base: type[_Functions], rule_by_name: Mapping[str, object]) -> type[_Functions]:
    """Make a class of interpreter functions whose methods, marked with `@impl`, are generated.

    Args:
        base: what it is a class of.
        rule_by_name: methods by name.
    """
    from xdsl.interpreter import register_impls

    made = type(base.__name__, (base,), {"__module__": base.__module__, **rule_by_name})
    return register_impls(cast("type[_Functions]", made))


def strided(flat: Array, offset: int, shape: Sequence[int], strides: Sequence[int]) -> Array:
    """Return a view of a flat array: its start and its steps in elements.

    Raises:
        IndexError: the view leaves the array.
    """
    reach = [s * (n - 1) for s, n in zip(strides, shape, strict=True)]
    low, high = offset + sum(min(r, 0) for r in reach), offset + sum(max(r, 0) for r in reach)
    if low < 0 or high >= flat.size:
        raise IndexError(f"elements {low} to {high} of an array of {flat.size}")
    item = flat.itemsize
    return as_strided(flat[offset:], shape=tuple(shape), strides=[s * item for s in strides])


def expression_grid(expr: LinearExpr, extents: Mapping[str, int], names: Sequence[str]) -> Array:
    """Return the values of an expression over the space, of extent 1 in dimensions it does not mention."""
    grid = np.full((1,) * len(names), expr.const, np.int64)
    for name, coefficient in expr.terms:
        grid = grid + coefficient * axis_range(names.index(name), extents[name], len(names))
    return grid


def axis_range(at: int, extent: int, rank: int) -> Array:
    """Return 0, 1, … along axis `at` of an array of rank `rank`."""
    return np.arange(extent).reshape((1,) * at + (extent,) + (1,) * (rank - at - 1))


def contract(
    a: Array, b: Array, a_axes: Sequence[AxisKey], b_axes: Sequence[AxisKey], out_axes: Sequence[AxisKey]
) -> Array:
    """Contract two arrays over the axes that the result lacks, by one matmul.

    Raises:
        ValueError: an axis of the result is in neither operand, or a summed one not in both.
    """
    batch = [x for x in out_axes if x in a_axes and x in b_axes]
    rows = [x for x in out_axes if x in a_axes and x not in b_axes]
    columns = [x for x in out_axes if x in b_axes and x not in a_axes]
    summed = [x for x in a_axes if x in b_axes and x not in out_axes]
    if set(a_axes) | set(b_axes) != {*out_axes, *summed} or len(batch) + len(rows) + len(columns) != len(out_axes):
        raise ValueError(f"no matrix product: {list(a_axes)}, {list(b_axes)} to {list(out_axes)}")
    extent = {**dict(zip(a_axes, a.shape, strict=True)), **dict(zip(b_axes, b.shape, strict=True))}

    def matrix(x: Array, axes: Sequence[AxisKey], left: list[AxisKey], right: list[AxisKey]) -> Array:
        shape = [extent[n] for n in batch] + [prod(extent[n] for n in left), prod(extent[n] for n in right)]
        return x.transpose([list(axes).index(n) for n in (*batch, *left, *right)]).reshape(shape)

    product = matrix(a, a_axes, rows, summed) @ matrix(b, b_axes, summed, columns)
    made = [*batch, *rows, *columns]
    return product.reshape([extent[n] for n in made]).transpose([made.index(n) for n in out_axes])

"""Type promotion made explicit: every table op sees one element type.

torch promotes silently (`mul(f32, i64)`); here the operands are cast to what torch computes in, which
is read from the traced values and from `torch.result_type`, never derived again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import reduce
from typing import Any, TypeVar, cast

import torch
from torch.fx import Node

from spyre_mlir.dialects.aten_sizes import SizeAttr
from spyre_mlir.frontend.arguments import BoundArgument, NotInTableError, bind, named_as_in
from spyre_mlir.ops.parameters import ArgKind
from spyre_mlir.ops.table import Family, OpEntry

T = TypeVar("T")

# Arguments that are numbers of the arithmetic; others, as sizes and scales of windows, only steer it.
NUMBERS = frozenset({ArgKind.TENSOR, ArgKind.TENSORS, ArgKind.NUMBER})

# Operands that have a type of their own: truth values that choose, and positions.
AS_THEY_ARE = frozenset({"condition", "mask", "indices", "index", "attn_mask"})
# Limits of `clamp` and its like.
LIMITS = frozenset({"min", "max"})
_NUMBERS_ALIKE: dict[type, int | float | bool] = {torch.SymInt: 0, torch.SymFloat: 0.0, torch.SymBool: False}
_UNTOUCHED = (Family.VIEW, Family.CREATION)


def operand_dtype(entry: OpEntry, node: Node, bound: Mapping[str, BoundArgument]) -> torch.dtype | None:
    """Return the common element type of a table op's operands; None if they stay unchanged.

    Raises:
        NotInTableError: an operation on truth values is used on integers.
    """
    if not entry.promote:
        return None
    value = node.meta["val"]
    result = cast(torch.Tensor, value if isinstance(value, torch.Tensor) else value[0]).dtype
    if entry.family in _UNTOUCHED or (entry.family is Family.MOVEMENT and entry.param("dtype") is not None):
        return None
    if not entry.boolean:
        return result
    if result is not torch.bool:
        raise NotInTableError("integers")
    names = [p.name for p in entry.params if p.is_tensor and p.name in bound and p.name not in AS_THEY_ARE]
    if any(isinstance(bound[name].value, SizeAttr) for name in names):
        bound = named_as_in(entry, bind(node))
    values = [_alike(bound[name].value) for name in names]
    if len(values) == 1:
        return cast(torch.Tensor, values[0]).dtype
    first = torch.result_type(values[0], values[1])
    return reduce(torch.promote_types, [cast(torch.Tensor, v).dtype for v in values[2:]], first)


def _alike(operand: object) -> Any:
    """The tensor that torch has noted of an operand, or a number of its type, which is all that promotion looks at."""
    value: object = operand.meta["val"] if isinstance(operand, Node) else operand
    return _NUMBERS_ALIKE.get(type(value), value)


def held(value: T, dtype: torch.dtype | None) -> T | int:
    """Return a number wrapped to an integer element type, as torch wraps numbers combined with a tensor.

    Among truth values a float is one of them.
    """
    if dtype is torch.bool and type(value) is float:
        return value != 0
    if type(value) is not int or dtype is None or dtype.is_floating_point or dtype is torch.bool:
        return value
    limits = torch.iinfo(dtype)
    return (value - limits.min) % 2**limits.bits + limits.min


def as_limit(value: T, dtype: torch.dtype | None) -> T | int:
    """Return a limit as torch converts it: an integer below 0 wraps in a type without signs."""
    return held(value, dtype) if dtype is torch.uint8 and type(value) is int and value < 0 else value


def in_float32(value: T, dtype: torch.dtype | None) -> T:
    """Return a number as in eager float32 arithmetic: rounded once, before it is combined with a tensor."""
    if dtype is not torch.float32 or type(value) not in (int, float):
        return value
    rounded = torch.tensor(value, dtype=torch.float32).item()
    if not math.isfinite(rounded):
        return value
    return cast("T", int(rounded) if isinstance(value, int) else rounded)


def computes_in(entry: OpEntry, node: Node, wanted: torch.dtype | None) -> torch.dtype | None:
    """Return the element type for an op's numbers: that of its operands, or else of its one result."""
    value = node.meta["val"]
    if wanted is not None or entry.family is Family.CREATION or not isinstance(value, torch.Tensor):
        return wanted
    return value.dtype


def without_result_dtype(bound: Mapping[str, BoundArgument]) -> dict[str, BoundArgument]:
    """Drop arguments that request another element type: casts of the operands express it."""
    said = {"dtype": None, "half_to_float": False}
    return {name: BoundArgument(said[name], True) if name in said else b for name, b in bound.items()}

"""Schemas of torch's operators, for calls that decompositions and conversions of plugins make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import cast

import torch
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from spyre_mlir.dialects.operator_calls import OperatorCall
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.capture.tracing.torch_errors import REFUSED, first_line
from spyre_mlir.frontend.element_types import DTYPES, tensor_type
from spyre_mlir.frontend.reference.op_runner import in_torch, operator_of
from spyre_mlir.frontend.torch_private import schema_of
from spyre_mlir.ops import ATEN

_LIKE = 0.8  # a name that is closer was probably meant


def call_by_schema(overload: str, positional: Sequence[object], named: Mapping[str, object]) -> OperatorCall:
    """Return a call by the schema of its operator; results have the types that its fake implementation gives.

    Raises:
        LookupError: torch has no such operator.
        TypeError: it has no such arguments.
        UnsupportedError: it refuses the values of its arguments.
    """
    try:
        operator = operator_of(overload)
    except UnsupportedError as error:
        near = get_close_matches(overload, [name for entry in ATEN for name in entry.overloads], 1, _LIKE)
        remedy = f"did you mean {near[0]}?" if near else error.hint
        raise LookupError(f"neither the op table nor torch has an operator {overload}; {remedy}") from error
    schema = schema_of(operator)
    names = [a.name for a in schema.arguments if not a.kwarg_only]
    if len(positional) > len(names):
        given, taken = len(positional), ", ".join(names)
        raise TypeError(f"{overload} got {given} arguments without a name, and takes {len(names)} ({taken})")
    arguments = dict(zip(names, positional, strict=False))
    if twice := [name for name in arguments if name in named]:
        raise TypeError(f"{overload} got {', '.join(twice)} by place and by name")
    arguments |= named
    parameters = {a.name: a for a in schema.arguments}
    if not arguments.keys() <= parameters.keys():
        raise TypeError(f"{overload} takes {', '.join(parameters)}, and got {', '.join(arguments)}")
    try:
        with torch.no_grad():
            given = {name: in_torch(parameters[name], _on_meta(value)) for name, value in arguments.items()}
            results = operator(**given)
    except REFUSED as error:
        raise UnsupportedError(
            f"{overload} refuses these arguments: {first_line(error)}",
            hint="register a fake implementation of the operator, if it has none",
        ) from error
    several = cast("Sequence[object]", (results,) if isinstance(results, torch.Tensor) else results)
    return OperatorCall(arguments, [tensor_type(r) for r in several if isinstance(r, torch.Tensor)])


def _on_meta(value: object) -> object:
    """An argument with tensors without values in the place of SSA values."""
    if isinstance(value, (list, tuple)):
        return [_on_meta(v) for v in cast("Sequence[object]", value)]
    if not isinstance(value, SSAValue):
        return value
    type_ = cast("TensorType[Attribute]", cast("SSAValue[Attribute]", value).type)
    return torch.empty(type_.get_shape(), dtype=DTYPES[type_.get_element_type()], device="meta")

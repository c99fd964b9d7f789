"""Runs an aten module by calling, op by op, the torch operator each op names: calls included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from xdsl.dialects import func
from xdsl.ir import SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.frontend import Program
from spyre_mlir.frontend.element_types import ELEMENT_TYPES, tensor_type

DTYPES = {str(element): dtype for dtype, element in ELEMENT_TYPES.items()}


def replay(program: Program, args: Sequence[Any]) -> list[torch.Tensor]:
    """The results of the program's function; checks every declared result type on the way."""
    tensors = [*program.flatten(args), *(program.values[a.name] for a in program.arguments if a.kind != "input")]
    main = next(op for op in program.module.ops if isinstance(op, func.FuncOp))
    known: dict[SSAValue, torch.Tensor] = dict(zip(main.body.block.args, tensors, strict=True))
    for op in main.body.block.ops:
        if isinstance(op, func.ReturnOp):
            return [known[v] for v in op.arguments]
        assert isinstance(op, AtenOp)
        out = _call(op, known)
        results = [out] if isinstance(out, torch.Tensor) else [o for o in out if isinstance(o, torch.Tensor)]
        for result, value in zip(op.results, results, strict=True):
            assert result.type == tensor_type(value), f"{op}"
            known[result] = value
    raise AssertionError("the function does not return")


def _operator(overload: str) -> Any:
    namespace, _, name = overload.rpartition("::")
    packet, _, rest = name.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace or "aten"), packet), rest or "default")


def _call(op: AtenOp, known: dict[SSAValue, torch.Tensor]) -> Any:
    def value(argument: Any) -> Any:
        if isinstance(argument, (list, tuple)):
            return [value(a) for a in argument]
        return known[argument] if isinstance(argument, SSAValue) else argument

    operator = _operator("reshape" if op.overload == "view" else op.overload)  # strides are not part of a program
    arguments = {name: value(argument) for name, argument in op.arguments().items()}
    by_schema: dict[str, Any] = {}
    for parameter in operator._schema.arguments:
        names = (parameter.name, {"mat2": "other", "shape": "size"}.get(parameter.name, ""))
        given = next((arguments[n] for n in names if n in arguments), None)
        if given is None:
            continue
        if parameter.name == "dtype":
            given = DTYPES.get(given, given)
        by_schema[parameter.name] = getattr(torch, given) if parameter.name == "memory_format" else given
    return operator(**by_schema)

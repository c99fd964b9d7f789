"""What torch computes op by op: the reference that names the first op of the aten level that means something else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.frontend.element_types import ELEMENT_TYPES
from spyre_mlir.frontend.reference import to_numpy

_DTYPES = {str(element): dtype for dtype, element in ELEMENT_TYPES.items()}
# Where an entry of the op table calls a parameter otherwise than the operator it stands for.
_OTHER_NAMES = {"mat2": "other", "shape": "size"}


def torch_values(module: ModuleOp, inputs: Sequence[NDArray[Any]]) -> dict[Operation, NDArray[Any]]:
    """The value of every op of an aten function, by calling the torch operator it names, in double precision.

    Args:
        module: at the aten level.
        inputs: one array per argument of `main`.
    """
    main = next(op for op in module.ops if isinstance(op, func.FuncOp))
    known: dict[SSAValue, torch.Tensor] = {
        argument: _wide(torch.tensor(np.ascontiguousarray(value)))
        for argument, value in zip(main.body.block.args, inputs, strict=True)
    }
    found: dict[Operation, NDArray[Any]] = {}
    with torch.no_grad():
        for op in main.body.block.ops:
            if not isinstance(op, AtenOp):
                continue
            out = _call(op, known)
            tensors = [out] if isinstance(out, torch.Tensor) else [o for o in out if isinstance(o, torch.Tensor)]
            known |= zip(op.results, map(_wide, tensors), strict=False)
            found[op] = to_numpy(known[op.results[0]])
    return found


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def _operator(overload: str) -> Any:
    namespace, _, name = overload.rpartition("::")
    packet, _, rest = name.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace or "aten"), packet), rest or "default")


def _call(op: AtenOp, known: Mapping[SSAValue, torch.Tensor]) -> Any:
    def value(argument: object) -> object:
        if isinstance(argument, (list, tuple)):
            return [value(a) for a in cast(Sequence[object], argument)]
        return known[argument] if isinstance(argument, SSAValue) else argument

    operator = _operator("reshape" if op.overload == "view" else op.overload)  # strides are not part of a program
    arguments = {name: value(argument) for name, argument in op.arguments().items()}
    by_schema: dict[str, object] = {}
    for parameter in operator._schema.arguments:
        names = (parameter.name, _OTHER_NAMES.get(parameter.name, ""))
        given = next((arguments[n] for n in names if n in arguments), None)
        if given is not None:
            by_schema[parameter.name] = _in_torch(parameter.name, given)
    return operator(**by_schema)


def _in_torch(name: str, value: object) -> object:
    """An argument as torch spells it; a number format is the widest of its kind."""
    if name == "memory_format" and isinstance(value, str):
        return getattr(torch, value)
    if name != "dtype":
        return value
    dtype = _DTYPES.get(str(value))
    return torch.float64 if dtype is not None and dtype.is_floating_point else dtype

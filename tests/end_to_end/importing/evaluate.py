"""Runs an aten module on numpy arrays in double precision, by what the op table says each op means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.ir import SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.frontend import Program, to_numpy
from spyre_mlir.machine.levels import aten as machine
from spyre_mlir.ops.array_views import ArrayView
from spyre_mlir.ops.table import Family


def evaluate(program: Program, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> list[Any]:
    """The results of the program's function; every op must have a table entry."""
    tensors = [
        *program.flatten(args, kwargs),
        *(program.values[a.name] for a in program.arguments if a.kind != "input"),
    ]
    main = next(op for op in program.module.ops if isinstance(op, func.FuncOp))
    known: dict[SSAValue, Any] = {a: _wide(to_numpy(t)) for a, t in zip(main.body.block.args, tensors, strict=True)}
    for op in main.body.block.ops:
        if isinstance(op, func.ReturnOp):
            return [known[v] for v in op.arguments]
        assert isinstance(op, AtenOp)
        assert op.ENTRY is not None, f"{op.name} has no meaning in the table"
        known |= dict(zip(op.outputs, _run(op, known), strict=True))
    raise AssertionError("the function does not return")


def _wide(array: Any) -> Any:
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _run(op: AtenOp, known: Mapping[SSAValue, Any]) -> list[Any]:
    assert op.ENTRY is not None

    def value(argument: Any) -> Any:
        if isinstance(argument, list):
            return [value(a) for a in argument]
        return known[argument] if isinstance(argument, SSAValue) else argument

    bound = op.arguments()
    if op.ENTRY.composed:
        return [_wide(a) for a in machine.evaluate(op.ENTRY, {name: value(a) for name, a in bound.items()})]
    tensors = {p.name: value(bound[p.name]) for p in op.ENTRY.params if p.is_tensor}
    rest = {p.name: bound[p.name] for p in op.ENTRY.params if not p.is_tensor}
    if op.ENTRY.family is Family.VIEW:
        (array,) = tensors.values()
        return [op.ENTRY.meaning(ArrayView(array), **rest).array]
    return [op.ENTRY.meaning(**tensors, **rest)]

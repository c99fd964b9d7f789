"""Legality of functions for `convert-aten-to-spyre-loop`: all their ops are checked before the first is lowered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from xdsl.dialects import func
from xdsl.ir import Operation, SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.ir.control import ControlOp
from spyre_mlir.dialects.tensors import as_tensor_type, shape_of
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.native import movement
from spyre_mlir.ops.table import Family
from spyre_mlir.sizes import counted
from spyre_mlir.transforms.utils.host_support import is_marked
from spyre_mlir.transforms.utils.rebuild import Failures, describe_location


def check_supported(function: func.FuncOp, lowers: Callable[[Operation], bool]) -> None:
    """Raise one UnsupportedError that lists every op of the function without a lowering."""
    missing: Counter[str] = Counter()
    first: dict[str, str] = {}
    for op in function.body.block.ops:
        if isinstance(op, func.ReturnOp | func.CallOp | ControlOp) or lowers(op):
            continue
        name = op.operation if isinstance(op, AtenOp) else op.name
        missing[name] += 1
        first.setdefault(name, describe_location(op))
    if missing:
        lines = "".join(f"\n  {n}  x{c}, first at {first[n]}" for n, c in sorted(missing.items()))
        raise UnsupportedError(
            f"{counted(len(missing), 'operation', 'lack')} a lowering ({counted(missing.total(), 'node')}):{lines}",
            hint="these are ops behind this pass: --to goes on from where a program is"
            if all(n.startswith("spyre.") for n in missing)
            else "run decompose-aten first, or declare them in the op table",
        )


def check_not_empty(function: func.FuncOp) -> None:
    """Raise UnsupportedError if an op computes on an empty tensor, which only views, `cat` and results may be."""
    failures = Failures()
    for op in function.body.block.ops:
        if isinstance(op, func.ReturnOp | ControlOp) or is_marked(op) or failures.know(op):
            continue
        entry = op.entry if isinstance(op, AtenOp) else None
        slices = entry is not None and entry.family in (Family.VIEW, Family.CREATION)
        values: list[SSAValue] = [] if entry is movement.cat else list(op.operands)
        results: list[SSAValue] = [] if slices else list(op.results)
        empty = [v for v in (*values, *results) if as_tensor_type(v.type) is not None and 0 in shape_of(v)]
        if empty:
            message, where = f"a tensor without elements, {empty[0].type}", f"{op.name} at {describe_location(op)}"
            failures.meet(UnsupportedError(message, where=where, hint="leave the op out"), op)
    failures.raise_all()

"""Support of every operation of a program: a kernel or a view, a composition of other operations, or a host step.

Decision: docs/decisions/0075-support-by-lowering.md
"""

from __future__ import annotations

from collections import Counter

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.spyre.host import HostOp
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.table import Support
from spyre_mlir.transforms.convert_aten_to_spyre_loop import lowering_of

REMOVED = "removed"  # by a pass of a plugin, or because nobody uses it


def support_of(aten: ModuleOp, loop: ModuleOp) -> dict[AtenOp, str]:
    """Return the support of every operation of a module at the aten level.

    Args:
        aten: the module.
        loop: the same program at the loop level, whose host steps still stand where their operations stood.
    """
    left = Counter(_key(op.callee.data, op) for op in loop.walk() if isinstance(op, HostOp))
    found: dict[AtenOp, str] = {}
    for op in aten.walk():
        if isinstance(op, AtenOp):
            key = _key(op.overload, op)
            on_host = left[key] > 0
            left[key] -= on_host
            found[op] = Support.HOST.value if on_host else _on_device(op)
    return found


def _key(overload: str, op: Operation) -> tuple[str, str]:
    return overload.removeprefix("aten."), str(op.location)


def _on_device(op: AtenOp) -> str:
    if op.entry is not None:
        return ATEN.support(op.entry.overloads[0]).value
    return Support.NATIVE.value if lowering_of(op) is not None else REMOVED


__all__ = ["REMOVED", "support_of"]

"""Conditions on sizes that a trace takes for granted, because an operator of torch asks: noted in the program.

Such a check is no check of the model. A call for which it fails is none that eager refuses: the host runs it, by the
program without these checks.

Decision: docs/decisions/0231-the-host-runs-calls-of-sizes-that-a-trace-left-out.md
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from spyre_mlir.frontend.capture.graph_passes import with_own_graph
from spyre_mlir.frontend.torch_private import expression_of

# What the check of such a condition says, before the condition; a file of torch keeps it.
ASSUMED = "the trace takes for granted that "
_EQUAL = re.compile(r"Eq\((\w+), (\w+)\)")


def note_assumed(exported: ExportedProgram, conditions: Collection[str]) -> None:
    """Note in a program which of its checks are of conditions that its trace takes for granted.

    Args:
        exported: the program, which is changed.
        conditions: as torch writes them, `u0 >= 1`.
    """
    noted = _of_equal_sizes(conditions)
    for check in _checks(exported):
        if (condition := condition_of(check)) in noted:
            check.args = (check.args[0], f"{ASSUMED}{condition}")


def _of_equal_sizes(conditions: Collection[str]) -> set[str]:
    """Conditions, and the same ones of sizes that are taken for equal: torch checks each of both sizes."""
    pairs = [found.groups() for condition in conditions if (found := _EQUAL.fullmatch(condition))]
    noted = set(conditions)
    for _ in pairs:  # two sizes may be equal by way of others
        single = [condition for condition in noted if not _EQUAL.fullmatch(condition)]
        ways = [way for pair in pairs for way in (pair, pair[::-1])]
        noted |= {re.sub(rf"\b{size}\b", other, condition) for condition in single for size, other in ways}
    return noted


def assumed_by(exported: ExportedProgram) -> frozenset[str]:
    """Return the conditions that the trace of a program takes for granted."""
    return frozenset(str(c.args[1]).removeprefix(ASSUMED) for c in _checks(exported) if _is_noted(c))


def without_assumed(exported: ExportedProgram) -> ExportedProgram:
    """Return a program that does not check what its trace takes for granted; the program given stays as it is."""
    free = with_own_graph(exported)
    for check in list(_checks(free)):
        if _is_noted(check):
            free.graph.erase_node(check)
    free.graph_module.recompile()
    return free


def condition_of(check: Node) -> str:
    """Return the condition on sizes of a check, as torch writes it; empty if it is on something else."""
    condition = check.args[0] if check.args else None
    value = condition.meta.get("val") if isinstance(condition, Node) else None
    return str(expression_of(value)) if isinstance(value, torch.SymBool) else ""


def _checks(exported: ExportedProgram) -> Iterator[Node]:
    yield from exported.graph.find_nodes(op="call_function", target=torch.ops.aten._assert_scalar.default)


def _is_noted(check: Node) -> bool:
    return len(check.args) == 2 and str(check.args[1]).startswith(ASSUMED)


__all__ = ["ASSUMED", "assumed_by", "condition_of", "note_assumed", "without_assumed"]

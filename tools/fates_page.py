"""The page of fates: what becomes of every overload that torch has, for `generate.py`."""

from __future__ import annotations

from collections import Counter, defaultdict

import torch
from dialect_pages import EDIT

from spyre_mlir.ops import ATEN
from spyre_mlir.ops.table import Fate

INTRO = """What becomes of every overload of ATen that torch {torch} has. *native*: one hardware function, or a view.
*composed*: a composition of others; for some arguments there is none, and the host runs the step. *host*: a step of
the host, unless PyTorch takes the operator apart before we see it. Most variants that write in place or into `out` are
taken apart so, and are left out. What random numbers, complex numbers and shapes that depend on data mean for a model
stands on [the page about host steps](../tools/host-steps.md)."""


def overloads() -> dict[str, list[str]]:
    """Every functional operator of torch's `aten` namespace with its overloads, sorted."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in torch._C._dispatch_get_all_op_names():
        namespace, _, rest = name.partition("::")
        operator, _, overload = rest.partition(".")
        if namespace != "aten" or operator.endswith("backward") or _writes(operator, overload):
            continue
        found[operator].append(overload)
    return {operator: sorted(found[operator]) for operator in sorted(found)}


def _writes(operator: str, overload: str) -> bool:
    """Whether the overload changes an argument: export replaces it by the one that does not."""
    try:
        schema = torch._C._get_schema(f"aten::{operator}", overload)
    except RuntimeError:
        return True  # it has no schema, so nothing can call it
    return any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments)


def fates_page() -> str:
    """One line per operator: its overloads by fate."""
    lines: list[str] = []
    totals: Counter[Fate] = Counter()
    for operator, names in overloads().items():
        by_fate: dict[Fate, list[str]] = {}
        for overload in names:
            fate = ATEN.fate(f"{operator}.{overload}" if overload else operator)
            by_fate.setdefault(fate, []).append(overload or "default")
            totals[fate] += 1
        cells = [" ".join(f"`{o}`" for o in by_fate.get(fate, ())) for fate in Fate]
        lines.append(f"| `{operator}` | {' | '.join(cells)} |")
    counted = ", ".join(f"{totals[fate]} {fate.value}" for fate in Fate)
    head = "| operator | native | composed | host |\n| --- | --- | --- | --- |"
    version = torch.__version__.partition("+")[0]
    return (
        f"# What becomes of every ATen overload\n\n{EDIT.format(source='spyre_mlir/ops')}\n\n"
        f"{INTRO.format(torch=version)}\n\n{sum(totals.values())} overloads: {counted}.\n\n{head}\n"
        + "\n".join(lines)
        + "\n"
    )

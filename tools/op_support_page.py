"""The page of support of every ATen overload, for `generate.py`."""

from __future__ import annotations

from collections import Counter, defaultdict

import torch
from coverage_page import drawn, torch_decomposes, why_refused
from dialect_pages import EDIT, table

from spyre_mlir.ops import ATEN
from spyre_mlir.ops.table import Support

INTRO = """Support of every overload of ATen in torch {torch}. *native*: one hardware function, or a view.
*composed*: a composition of other operators; the host runs calls for whose arguments there is none. *by PyTorch*:
decomposed by PyTorch before import; the parts have the support given here. *host*: a host step. An op that depends on
no input is computed at import, whatever its support.
Random numbers are drawn by the host, as dropout in training draws them.
Where data decides the size or the number of a result, the host runs the call, between the parts of a program.
*refused*: random numbers that the host cannot draw, as from a generator of a model's own, and such results without a
kernel for the CPU. Variants that write in place or into `out` are decomposed too, and left out here. Complex
numbers are pairs of real tensors from import on; [a page](../tools/complex-numbers.md) has what is refused."""
APART, REFUSED = "by PyTorch", "refused"
COLUMNS = (Support.NATIVE.value, Support.COMPOSED.value, APART, Support.HOST.value, REFUSED)


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


def column(overload: str) -> str:
    """Under which heading an overload stands."""
    support = ATEN.support(overload)
    if support is not Support.HOST:
        return support.value
    if drawn(overload):
        return support.value
    return APART if torch_decomposes(overload) else REFUSED if why_refused(overload) else support.value


def op_support_page() -> str:
    """One line per operator: its overloads by support."""
    rows: list[tuple[str, ...]] = []
    totals: Counter[str] = Counter()
    for operator, names in overloads().items():
        found: dict[str, list[str]] = defaultdict(list)
        for overload in names:
            found[column(f"{operator}.{overload}" if overload else operator)].append(f"`{overload or 'default'}`")
        totals.update({heading: len(those) for heading, those in found.items()})
        rows.append((f"`{operator}`", *(" ".join(found[heading]) for heading in COLUMNS)))
    parts = [
        "# Support of every ATen overload",
        EDIT.format(source="spyre_mlir/ops"),
        INTRO.format(torch=torch.__version__.partition("+")[0]),
        f"{sum(totals.values())} overloads: {', '.join(f'{totals[heading]} {heading}' for heading in COLUMNS)}.",
        table(("operator", *COLUMNS), rows),
    ]
    return "\n\n".join(parts) + "\n"

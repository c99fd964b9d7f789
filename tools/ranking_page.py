"""Page of how robust plans are, for `reference_pages.py`: from the results that `benchmarks/ranking.py` wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dialect_pages import EDIT, table

RESULTS = Path(__file__).resolve().parents[1] / "benchmarks" / "data" / "ranking.json"
INTRO = """The planner chooses by predicted time, and few numbers of the cost model are certain. So every number that is
not certain is made half as large, and half as large again, with 0, 1 and 5 us per SuperDSC, under two laws of
how many cores fill the memory's bus: a *setting*. A plan survives a setting if, priced by it, it takes at
most 5 % more than the best plan known: that of the planner when it is given the setting, those that it makes
in other settings, the plan of each kernel alone, and that of torch-spyre's published rules.

*Survives* is the share of all settings, *entering* the share of those whose number the planner reads for the
workload at all; then the shares by overhead per SuperDSC. *Worst* is the plan over the best one in the worst
setting, and the last column the number that breaks the plan most often, with the count of settings. Results
are of the compiler that the row was counted with: `python benchmarks/ranking.py --only NAME --save
benchmarks/data/ranking.json` counts a workload anew."""
HEAD = ("workload", "survives", "entering", "0 us", "1 us", "5 us", "worst", "in", "breaks it most often")


def _row(found: dict[str, Any]) -> tuple[object, ...]:
    overheads = [[part for base, part in found["by_base"].items() if base.endswith(f" {us} us")] for us in (0, 1, 5)]
    ratio, setting = found["worst"]
    most = next(iter(found["breaks"].items()), None)
    return (
        found["workload"],
        f"{found['within'] / found['settings']:.0%}",
        f"{found['entering_within'] / max(1, found['entering']):.0%}",
        *(f"{sum(parts) / len(parts):.0%}" for parts in overheads),
        f"{ratio:.2f}",
        setting if ratio > 1.005 else "",
        "" if most is None else f"`{most[0]}` ({most[1]})",
    )


def ranking_page() -> str:
    """A row per workload, and how many reach 90 %."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    robust = sum(found["within"] >= 0.9 * found["settings"] for found in results)
    told = f"{robust} of {len(results)} workloads survive at least 90 % of {results[0]['settings']} settings."
    parts = ["# Plans under other numbers", EDIT.format(source="benchmarks/ranking.py"), INTRO, told]
    return "\n\n".join([*parts, table(HEAD, [_row(found) for found in results])]) + "\n"

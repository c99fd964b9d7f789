"""What a run found: counts per op and dtype for the page of coverage, and a list of what fails."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from tests.opinfo.core import LEFT_OUT
from tests.opinfo.store import Record, Store

FAILING = ("crash", "wrong", "slow", "refused")


def by_row(store: Store) -> dict[str, list[Record]]:
    rows: dict[str, list[Record]] = defaultdict(list)
    for key, record in store.samples.items():
        rows[key.rpartition("/")[0]].append(record)
    return rows


def row_summary(records: list[Record]) -> dict[str, Any]:
    """How many samples ended how; samples that torch itself refuses do not count."""
    counted = [r for r in records if r["status"] != "none"]
    counts = Counter(r["status"] for r in counted)
    fates = Counter(r["fate"] for r in counted if r["fate"])
    return {
        "samples": len(counted),
        **dict(sorted(fates.items())),
        **dict(sorted(counts.items())),
        "error": max((r.get("error") or 0.0 for r in counted if r["status"] == "ok"), default=0.0),
        "kernels": max((r.get("kernels") or 0 for r in counted), default=0),
    }


def write_summary(store: Store, path: Path) -> None:
    """Writes the counts as JSON, one row per line so that a change reads as one."""
    rows = {name: row_summary(records) for name, records in sorted(by_row(store).items())}
    rows = {name: row for name, row in rows.items() if row["samples"]}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    left_out = json.dumps(LEFT_OUT, indent=2, sort_keys=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{"left_out": {left_out},\n"rows": {{\n{lines}\n}}}}\n', encoding="utf-8")


def failures_text(store: Store) -> str:
    """What fails, by row, the worst kind first."""
    lines: list[str] = []
    for status in FAILING:
        rows = {n: [r for r in rs if r["status"] == status] for n, rs in sorted(by_row(store).items())}
        lines.append(f"== {status}: {sum(map(len, rows.values()))} samples of {sum(map(bool, rows.values()))} rows")
        for name, records in rows.items():
            if records:
                first = records[0]
                lines.append(f"{name}: {len(records)} samples, first {first['key']} {first.get('shown', '')}")
                lines += [f"    {line}" for line in first["detail"].split("\n")[:4]]
    return "\n".join(lines) + "\n"

"""What a run found: counts per op and dtype for the page of coverage, and a list of what fails."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from tests.opinfo.core import LEFT_OUT, core_overloads
from tests.opinfo.store import Record, Store

BAD = ("crash", "wrong", "slow")
FAILING = (*BAD, "refused")
RAN = ("ok", "exception")
KINDS = ("native", "composed", "host", *reversed(FAILING))  # from the best to the worst
RANKS = {kind: max(rank, 1) for rank, kind in enumerate(KINDS)}


def by_row(store: Store) -> dict[str, list[Record]]:
    rows: dict[str, list[Record]] = defaultdict(list)
    for key, record in store.samples.items():
        rows[key.rpartition("/")[0]].append(record)
    return rows


def row_summary(records: list[Record], count: int = 0) -> dict[str, Any]:
    """How many samples ended how; samples that torch itself refuses do not count. ``untried`` is how many of `count`
    are still to come.

    A sample that ran counts by its support, any other by what stopped it; ``exception`` says how many of those that ran
    differ from torch for values that DL16 cannot hold.
    """
    counted = [r for r in records if r["status"] != "none"]
    counts = Counter(map(kind_of, counted))
    exceptions = sum(r["status"] == "exception" for r in counted)
    return {
        "samples": len(counted),
        **{kind: counts[kind] for kind in KINDS if counts[kind]},
        **({"exception": exceptions} if exceptions else {}),
        **({"untried": count - len(records)} if count > len(records) else {}),
        **({"reasons": reasons} if (reasons := reasons_of(counted)) else {}),
    }


def reasons_of(records: Iterable[Record]) -> dict[str, int]:
    """Why samples are refused, and how many for each reason."""
    refused = (r for r in records if r["status"] == "refused")
    return dict(sorted(Counter(reason_of(r).removeprefix("refused: ") for r in refused).items()))


def write_summary(store: Store, path: Path) -> None:
    """Writes the counts as JSON, one row per line so that a change reads as one."""
    head = {
        "left_out": LEFT_OUT,
        "core": [n for n in core_overloads() if n not in LEFT_OUT],
        "torch": torch.__version__.partition("+")[0],
        "codes": _codes(store),
    }
    _write(path, head, _rows_of(store))


def update_summary(store: Store, path: Path) -> None:
    """Writes the counts of the rows that the store has into those of a run of everything.

    Raises:
        SystemExit: a row was not tried as a whole, or by another torch.
    """
    known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    new = _rows_of(store)
    unfinished = [name for name, row in new.items() if "untried" in row]
    if unfinished:
        raise SystemExit(f"samples of {', '.join(unfinished)} are still to come")
    if known["torch"] != torch.__version__.partition("+")[0]:
        raise SystemExit(f"the counts are of torch {known['torch']}, and this is torch {torch.__version__}")
    known.pop("refused", None)  # rows have their reasons since
    again = Counter(known.pop("again", {})) + _codes(store)
    rows = {name: row for name, row in known.pop("rows").items() if name not in by_row(store)} | new
    _write(path, known | {"again": again}, dict(sorted(rows.items())))


def _codes(store: Store) -> Counter[str]:
    return Counter(r["code"] for r in store.samples.values() if r["status"] != "none")


def _rows_of(store: Store) -> dict[str, Any]:
    rows = {name: row_summary(records, store.rows.get(name, 0)) for name, records in sorted(by_row(store).items())}
    return {name: row for name, row in rows.items() if row["samples"]}


def _write(path: Path, head: dict[str, Any], rows: dict[str, Any]) -> None:
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    facts = "".join(f"{json.dumps(k)}: {json.dumps(v, indent=2, sort_keys=True)},\n" for k, v in head.items())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{{facts}"rows": {{\n{lines}\n}}}}\n', encoding="utf-8")


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


def worse_than(store: Store, path: Path) -> dict[str, str]:
    """Samples that end worse than the worst of their row does in the committed counts; unknown rows may be anything."""
    rows: dict[str, dict[str, int]] = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return {
        key: f"{kind_of(record)}, at worst {worst(known)} before. {record['detail']}"
        for key, record in sorted(store.samples.items())
        if (known := rows.get(key.rpartition("/")[0])) is not None and is_worse(record, known)
    }


def reason_of(record: Record) -> str:
    """Why a sample that is not wrong does not count as right."""
    if record["status"] == "exception":
        return "differs, with values that DL16 has no code for"
    if record["status"] == "none":
        return "torch refuses it"
    first, *rest = record["detail"].splitlines()
    parts = [line.partition(": ")[2] for line in rest if line.lstrip()[:1].isdigit()]
    return f"refused: {parts[0] if parts else first.partition('] ')[2] or first}"


def is_worse(record: Record, row: dict[str, int]) -> bool:
    """Whether a sample ended worse than any of its row did.

    On the device is on the device, in one kernel or in many. Of a row that was not tried as a whole nothing is known,
    but that wrong numbers and crashes are not wanted.
    """
    if record["status"] == "none":
        return False
    known = worst(row)
    known = "refused" if row.get("untried") and RANKS[known] < RANKS["refused"] else known
    return RANKS[kind_of(record)] > RANKS[known]


def kind_of(record: Record) -> str:
    """The support of a sample that ran, or what stopped it."""
    return record["support"] if record["status"] in RAN else record["status"]


def worst(row: dict[str, int]) -> str:
    return next(kind for kind in reversed(KINDS) if row.get(kind))

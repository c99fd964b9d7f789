"""Results of long runs that are kept, and the state of the compiler that each is of, which their pages say."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from tests.paths import ROOT

_Row = TypeVar("_Row")

PACKAGE = ROOT / "spyre_mlir"


@cache
def code_digest() -> str:
    """A digest of the compiler's sources."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def states_text(codes: Iterable[str], what: str) -> str:
    """A paragraph for a page: how many results are of which state; nothing if none of them says."""
    found = ", ".join(f"`{code}` {count:,}" for code, count in Counter(filter(None, codes)).most_common())
    where = "digests of its sources, made by `tests/states.py`"
    return f"{what} by state of the compiler ({where}): {found}.\n\n" if found else ""


def load_rows(file: Path, row: Callable[..., _Row]) -> dict[str, _Row]:
    """The rows kept in a file, by name."""
    if not file.exists():
        return {}
    found: Mapping[str, Mapping[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return {name: row(**facts) for name, facts in found.items()}


def save_rows(file: Path, rows: Mapping[str, object], order: Iterable[str]) -> None:
    """Keeps rows in the order of their catalogue, one to a line."""
    lines = [f" {json.dumps(name)}: {json.dumps(vars(rows[name]))}" for name in order if name in rows]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")

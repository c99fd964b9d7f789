"""Which state of the compiler a kept result is of: long runs outlive changes, and their pages say so."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from functools import cache

from tests.paths import ROOT

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

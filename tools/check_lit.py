"""Check that no lit file only looks like a test: every file runs something, and every CHECK is checked."""

from __future__ import annotations

import re
import sys
from pathlib import Path

LIT = Path(__file__).resolve().parent.parent / "tests" / "lit"
RUN = re.compile(r"^\s*//\s*RUN:\s*(.*)$", re.MULTILINE)
CHECK = re.compile(r"^\s*//\s*([A-Z][A-Z0-9_-]*?)(?:-NEXT|-NOT|-SAME|-DAG|-LABEL|-EMPTY|-COUNT-\d+)?:", re.MULTILINE)
EXPECTED = re.compile(r"//\s*expected-(?:error|warning|remark|note)")
PREFIX = re.compile(r"--check-prefix(?:es)?[= ]([\w,-]+)")


def prefixes_of(runs: list[str]) -> set[str]:
    """Prefixes that the run lines of a file check."""
    found: set[str] = set()
    for line in runs:
        if "filecheck" in line:
            named = [name for group in PREFIX.findall(line) for name in group.split(",")]
            found.update(named or ["CHECK"])
    return found


def problems(path: Path) -> list[str]:
    """What is wrong with a lit file."""
    text = path.read_text(encoding="utf-8")
    runs = RUN.findall(text)
    if not runs:
        return ["has no RUN line"]
    if EXPECTED.search(text) and not any("--verify-diagnostics" in line for line in runs):
        return ["has comments about expected errors, and no RUN line with --verify-diagnostics"]
    checked = prefixes_of(runs)
    written = {name for name in CHECK.findall(text) if name == "CHECK" or name.startswith("CHECK-") or name in checked}
    found = [f"has {name} lines that no RUN line pipes into filecheck" for name in sorted(written - checked)]
    return found + [f"runs filecheck for {name}, but has no such line" for name in sorted(checked - written)]


def main() -> int:
    files = sorted(LIT.rglob("*.mlir"))
    bad = [(path, problem) for path in files for problem in problems(path)]
    for path, problem in bad:
        print(f"{path.relative_to(LIT.parent.parent)}: {problem}")
    print(f"{len(files)} lit files, {len(bad)} problems")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

"""Writes the language reference (`dialects/`, `docs/reference/`) from the definitions; `--check` only compares.

Everything in the generated files comes from `spyre_mlir`: what ops take from their xDSL definitions, what they mean
from the op table, and examples from running the passes on the programs in `examples/`. Edit those, never the files.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dialect_pages import dialect_files
from irdl_files import irdl_files
from reference_pages import reference_files

ROOT = Path(__file__).resolve().parent.parent
# Files in these folders that nobody generates any more are leftovers.
OWNED = ("dialects",)


def wanted_files() -> dict[Path, str]:
    """Path below the checkout to content."""
    files = dialect_files(ROOT) | irdl_files() | reference_files()
    return {ROOT / name: text for name, text in files.items()}


def leftovers(wanted: dict[Path, str]) -> list[Path]:
    return sorted(p for folder in OWNED for p in (ROOT / folder).rglob("*") if p.is_file() and p not in wanted)


def check(wanted: dict[Path, str]) -> int:
    """Name every file that is missing, old or left over."""
    stale = [p for p, text in wanted.items() if not p.exists() or p.read_text(encoding="utf-8") != text]
    for path in [*sorted(stale), *leftovers(wanted)]:
        print(f"{path.relative_to(ROOT)} differs from what the definitions say")
    if stale or leftovers(wanted):
        print("try: python3 tools/dev.py gen")
        return 1
    print(f"{len(wanted)} generated files are up to date")
    return 0


def write(wanted: dict[Path, str]) -> int:
    """Write every file and remove leftovers."""
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for path in leftovers(wanted):
        path.unlink()
    print(f"{len(wanted)} files written")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a file is not up to date")
    options = parser.parse_args()
    wanted = wanted_files()
    return check(wanted) if options.check else write(wanted)


if __name__ == "__main__":
    sys.exit(main())

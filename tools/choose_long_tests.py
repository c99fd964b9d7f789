"""Chooses the tests that a run of everything leaves out, by measured times, and writes `tests/long_tests.txt`.

    python3 tools/dev.py test -m "not slow" --junitxml=build/times.xml   # on a computer that does nothing else
    .venv/bin/python tools/choose_long_tests.py build/times.xml

Of each file tests run for up to `--seconds` together, and at least one: first a case of every test, then other cases,
the quickest first. What takes less than a tenth of a second always runs. With times of a run that left some out already
the list only grows: what a fixture costs that several tests share counts for the first of them, so when that is left
out another takes longer.
"""

from __future__ import annotations

import argparse
import sys
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tests" / "long_tests.txt"
SECONDS = 1.0
QUICK_SECONDS = 0.1


def times_of(report: ET.Element) -> dict[str, float]:
    """Seconds of each Python test of a JUnit report, by its name; text files that are tests have no times here."""
    cases = (
        (case.get("classname", ""), case.get("name", ""), case.get("time", "0")) for case in report.iter("testcase")
    )
    files = ((f"{place.replace('.', '/')}.py", name, float(time)) for place, name, time in cases)
    return {f"{file}::{name}": time for file, name, time in files if (ROOT / file).exists()}


def left_out(times: Mapping[str, float], seconds: float) -> set[str]:
    """Names of the tests that do not fit into the time of their files.

    Args:
        times: seconds by test.
        seconds: for each file.
    """
    files: dict[str, list[tuple[bool, float, str]]] = defaultdict(list)
    seen = set[str]()
    for time, name in sorted((time, name) for name, time in times.items()):
        test = name.partition("[")[0]
        files[name.partition("::")[0]].append((test in seen, time, name))
        seen.add(test)
    return {name for tests in files.values() for name in _beyond(sorted(tests), seconds)}


def _beyond(tests: Sequence[tuple[bool, float, str]], seconds: float) -> list[str]:
    """Names of tests behind the first that exceed the time of a file and are not quick."""
    beyond: list[str] = []
    spent = tests[0][1]
    for _, time, name in tests[1:]:
        if spent + time > seconds and time >= QUICK_SECONDS:
            beyond.append(name)
        else:
            spent += time
    return beyond


def main(argv: Sequence[str] | None = None) -> int:
    """Write the list anew, with the names that it has and the run confirmed by leaving them out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path, help="of pytest, written by --junitxml")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"for each file; {SECONDS:g} by default")
    options = parser.parse_args(argv)
    times = times_of(ET.parse(options.report).getroot())
    kept = set(LIST.read_text(encoding="utf-8").splitlines()) - times.keys() if LIST.exists() else set[str]()
    names = sorted(kept | left_out(times, options.seconds))
    LIST.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    print(f"{len(names)} tests are left out of a run of everything")
    return 0


if __name__ == "__main__":
    sys.exit(main())

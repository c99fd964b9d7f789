"""Runs the long test suites, each a process of its own, and prints one line per suite; called by tools/dev.py.

`python3 tools/dev.py suites [NAMES] [--jobs N] [--quick]`. Counts come from pytest's own JUnit reports, and from the
results that `tests.opinfo` keeps; nothing is read from printed text. What failed is named below the line of its suite;
the reports and the output of every suite stay in build/suites. `--quick` leaves out what is marked slow.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "build" / "suites"
NOT_STARTED = 5  # pytest: no tests were collected
SHOWN = 20


@dataclass(frozen=True)
class Suite:
    """One suite: where its tests are, and the module that runs what is no test, unless it is to be quick."""

    name: str
    what: str
    paths: tuple[str, ...]
    options: tuple[str, ...] = ()
    module: str = ""

    @property
    def exists(self) -> bool:
        """Whether this checkout has it."""
        return all((ROOT / path).exists() for path in self.paths)


@dataclass
class Counts:
    """What became of the tests of a suite."""

    passed: int = 0
    failed: list[str] = field(default_factory=list[str])
    skipped: Counter[str] = field(default_factory=Counter[str])

    def __add__(self, other: Counts) -> Counts:
        """Of both."""
        return Counts(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def line(self) -> str:
        """`N passed, N failed, N skipped`, with the skips by reason."""
        reasons = "; ".join(f"{count} {reason}" for reason, count in self.skipped.most_common())
        numbers = f"{self.passed:,} passed, {len(self.failed):,} failed, {self.skipped.total():,} skipped"
        return f"{numbers} ({reasons})" if reasons else numbers


SUITES = (
    Suite("unit", "units of the package", ("tests/unit",), ("--ignore=tests/unit/backend/test_corruptions.py",)),
    Suite("lit", "text in, text out", ("tests/lit",)),
    Suite("property", "random programs", ("tests/property",)),
    Suite("trunk", "a model's trunk, read by witnesses", ("tests/trunk",)),
    Suite("models", "46 models, by every route", ("tests/models",)),
    Suite("op-cases", "the op cases of another front end", ("tests/op_cases",)),
    Suite("opinfo", "PyTorch's operator database", ("tests/opinfo",), module="tests.opinfo"),
    Suite("mutants", "damaged programs are noticed", ("tests/mutants",)),
    Suite("corruptions", "damaged files are noticed", ("tests/unit/backend/test_corruptions.py",)),
    Suite("plugin", "a package that adds ops", ("tests/plugin",)),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 1 if anything failed."""
    names = [suite.name for suite in SUITES]
    listing = "\n".join(f"  {suite.name:12} {suite.what}" for suite in SUITES)
    parser = argparse.ArgumentParser(
        prog="tools/dev.py suites",
        description=__doc__,
        epilog=f"suites:\n{listing}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", choices=[*names, []], metavar="NAMES", help="all of them if there is none")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes side by side")
    parser.add_argument("--quick", action="store_true", help="leave out what is marked slow")
    options = parser.parse_args(argv)
    KEPT.mkdir(parents=True, exist_ok=True)
    failed = False
    for suite in SUITES:
        if options.names and suite.name not in options.names:
            continue
        start = time.monotonic()
        counts = run(suite, options.jobs, quick=options.quick)
        print(f"{suite.name:12} {counts.line()}, {time.monotonic() - start:,.0f} s", flush=True)
        for name in counts.failed[:SHOWN]:
            print(f"    failed: {name}")
        if len(counts.failed) > SHOWN:
            print(f"    and {len(counts.failed) - SHOWN} more: see {KEPT.relative_to(ROOT)}")
        failed |= bool(counts.failed)
    return int(failed)


def run(suite: Suite, jobs: int, *, quick: bool) -> Counts:
    """Runs a suite and counts."""
    if not suite.exists:
        return Counts(skipped=Counter({"this checkout has no such suite": 1}))
    counts = run_pytest(suite, jobs, quick=quick)
    return counts + run_samples(suite, jobs) if suite.module and not quick else counts


def run_pytest(suite: Suite, jobs: int, *, quick: bool) -> Counts:
    """Runs a suite of tests; a run that ends without a report is a failure of its own."""
    report = KEPT / f"{suite.name}.xml"
    report.unlink(missing_ok=True)
    which = "not slow" if quick else "slow or not slow"
    options = ["-q", "-m", which, "-n", str(jobs), f"--junitxml={report}", "-o", "junit_family=xunit2"]
    code = logged(suite.name, [sys.executable, "-m", "pytest", *suite.paths, *suite.options, *options])
    if not report.exists():
        return Counts(failed=[f"pytest ended with exit code {code} and without a report"])
    counts = counted(ET.parse(report).getroot())
    if code not in (0, NOT_STARTED) and not counts.failed:
        counts.failed.append(f"pytest ended with exit code {code}")
    return counts


def counted(report: ET.Element) -> Counts:
    """The counts of a JUnit report; expected failures are skips with their reason."""
    counts = Counts()
    for case in report.iter("testcase"):
        name = f"{case.get('classname', '')}::{case.get('name', '')}"
        kinds = {child.tag: child for child in case}
        if "failure" in kinds or "error" in kinds:
            counts.failed.append(name)
        elif (skip := kinds.get("skipped")) is not None:
            expected = "expected to fail: " if skip.get("type") == "pytest.xfail" else ""
            counts.skipped[expected + (skip.get("message") or "no reason given")] += 1
        else:
            counts.passed += 1
    return counts


def run_samples(suite: Suite, jobs: int) -> Counts:
    """Runs a suite that keeps its results in a directory, in shards, and counts what they keep there."""
    kept = KEPT / suite.name
    command = [sys.executable, "-m", suite.module, "--run", str(kept)]
    running = [started(f"{suite.name}-{n}", [*command, "--shard", f"{n}/{jobs}"]) for n in range(jobs)]
    codes = [process.wait() for process in running]
    counts = of_samples(latest(kept))
    counts.failed += [f"shard {n} ended with exit code {code}" for n, code in enumerate(codes) if code]
    return counts


def latest(directory: Path) -> dict[str, Mapping[str, str]]:
    """The last result of every sample."""
    records: dict[str, Mapping[str, str]] = {}
    for path in sorted(directory.glob("results-*.jsonl"), key=lambda path: path.stat().st_mtime):
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if "key" in record:
                records[record["key"]] = record
    return records


def of_samples(records: Mapping[str, Mapping[str, str]]) -> Counts:
    """Counts of samples: wrong, crashed and slow ones fail; what is neither run nor wrong is a skip."""
    counts = Counts()
    for key, record in sorted(records.items()):
        match record["status"]:
            case "ok":
                counts.passed += 1
            case "wrong" | "crash" | "slow":
                counts.failed.append(f"{key}: {record['status']}")
            case other:
                counts.skipped[other] += 1
    return counts


def logged(name: str, command: Sequence[str]) -> int:
    """Runs a command; its output goes to a file."""
    return started(name, command).wait()


def started(name: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
    """A running command whose output goes to a file."""
    with (KEPT / f"{name}.log").open("wb") as log:
        return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)


if __name__ == "__main__":
    sys.exit(main())

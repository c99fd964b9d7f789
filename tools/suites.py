"""Runs the long test suites, each a process of its own, and prints one line per suite; called by tools/dev.py.

`python3 tools/dev.py suites [NAMES] [--jobs N] [--quick]`. Counts come from pytest's own JUnit reports, and from the
results that `tests.opinfo` keeps; nothing is read from printed text. What failed is named below the line of its suite;
the reports and the output of every suite stay in build/suites. `--quick` leaves out what is marked slow. A run that is
stopped goes on with the samples of opinfo where it was, as long as the compiler stays as it is.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "build" / "suites"
COUNTS = ROOT / "tools" / "data" / "opinfo.json"
NONE_CHOSEN = 5  # pytest: no tests were collected, as when all of a suite are slow
SHOWN = 20
STOPPED = 128 + signal.SIGINT
PATIENCE = 30  # seconds that a process has to end when it is asked to


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


HALVES = ("tests/end_to_end/ops/test_half_precision.py", "tests/end_to_end/ops/test_thresholds.py")
_OF_THEIR_OWN = ("tests/end_to_end/bundles/test_corruptions.py", *HALVES)

SUITES = (
    Suite("unit", "units of the package", ("tests/unit",)),
    Suite("halves", "ops in float16 and bfloat16, and either side of every size that changes their form", HALVES),
    Suite("lit", "text in, text out", ("tests/lit",)),
    Suite("property", "random programs", ("tests/property",)),
    Suite("graphs", "random torch programs of many operators", ("tests/graphs",)),
    Suite(
        "end-to-end",
        "models and programs through every level",
        ("tests/end_to_end", "tests/oracles"),
        tuple(f"--ignore={path}" for path in _OF_THEIR_OWN),
    ),
    Suite("tooling", "developer tools, pages, structure of the checkout", ("tests/tooling",)),
    Suite("models", "46 models, by every route", ("tests/models",)),
    Suite("clients", "models of other packages, where they are installed", ("tests/clients",)),
    Suite("op-cases", "the op cases of another front end", ("tests/op_cases",)),
    Suite("opinfo", "PyTorch's operator database", ("tests/opinfo",), module="tests.opinfo"),
    Suite("mutants", "damaged programs are noticed", ("tests/mutants",)),
    Suite("module-mutants", "changed lines are noticed by mirrored tests", ("tests/module_mutants",)),
    Suite("corruptions", "damaged files are noticed", ("tests/end_to_end/bundles/test_corruptions.py",)),
    Suite("fuzz", "damaged files and command lines", ("tests/fuzz",)),
    Suite("ktir-cpu", "KTIR and its authors' interpreter, where KTIR_CPU names it", ("tests/ktir_cpu",)),
    Suite("card", "bundles and a stand-in for the software of a card", ("tests/card",)),
    Suite("plugin", "a package that adds ops", ("tests/plugin",)),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 1 if anything failed."""
    names = [suite.name for suite in SUITES]
    listing = "\n".join(f"  {suite.name:14} {suite.what}" for suite in SUITES)
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
    chosen = [suite for suite in SUITES if not options.names or suite.name in options.names]
    try:
        good = [shown(suite, options.jobs, quick=options.quick) for suite in chosen]
    except KeyboardInterrupt:
        print(f"stopped; what ran is in {KEPT}")
        return STOPPED
    return int(not all(good))


def shown(suite: Suite, jobs: int, *, quick: bool) -> bool:
    """Runs a suite, prints its line, and says whether nothing failed."""
    start = time.monotonic()
    counts = run(suite, jobs, quick=quick)
    print(f"{suite.name:14} {counts.line()}, {time.monotonic() - start:,.0f} s")
    for name in counts.failed[:SHOWN]:
        print(f"    failed: {name}")
    if len(counts.failed) > SHOWN:
        print(f"    and {len(counts.failed) - SHOWN} more: see {KEPT}")
    sys.stdout.flush()
    return not counts.failed


def run(suite: Suite, jobs: int, *, quick: bool) -> Counts:
    """Runs a suite and counts."""
    if not suite.exists:
        return Counts(skipped=Counter({"this checkout has no such suite": 1}))
    samples = bool(suite.module) and not quick
    counts = run_pytest(suite, jobs, quick=quick or samples)  # slow tests of samples try a part of them
    return counts + run_samples(suite, jobs) if samples else counts


def run_pytest(suite: Suite, jobs: int, *, quick: bool) -> Counts:
    """Runs a suite of tests; a run that ends without a report is a failure of its own."""
    report = KEPT / f"{suite.name}.xml"
    report.unlink(missing_ok=True)
    which = "not slow" if quick else "slow or not slow"
    options = ["-q", "-m", which, "-n", str(jobs), f"--junitxml={report}"]
    command = [sys.executable, "-m", "pytest", *suite.paths, *suite.options, *options, "-o", "junit_family=xunit2"]
    (code,) = exit_codes({suite.name: command})
    if not report.exists():
        return Counts(failed=[f"pytest ended with exit code {code} and without a report"])
    counts = counted(ET.parse(report).getroot())
    if code not in (0, NONE_CHOSEN) and not counts.failed:
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
    from tests.opinfo.store import Store
    from tests.opinfo.summary import worse_than

    kept = KEPT / suite.name
    command = [sys.executable, "-m", suite.module, "--run", str(kept), "--fresh"]
    shards = {f"{suite.name}-{n}": [*command, "--shard", f"{n}/{jobs}"] for n in range(jobs)}
    codes = exit_codes(shards)
    store = Store(kept)
    counts = of_samples(store.samples, worse_than(store, COUNTS))
    counts.failed += [f"shard {n} ended with exit code {code}" for n, code in enumerate(codes) if code]
    return counts


def of_samples(records: Mapping[str, dict[str, Any]], worse: Mapping[str, str]) -> Counts:
    """Counts of samples: wrong, crashed and slow ones fail, and `worse` ones; others that differ or stop are skips."""
    from tests.opinfo.summary import BAD, reason_of

    counts = Counts()
    for key, record in sorted(records.items()):
        if key in worse:
            counts.failed.append(f"{key}: {worse[key].splitlines()[0]}")
        elif record["status"] in BAD:
            counts.failed.append(f"{key}: {record['status']}")
        elif record["status"] == "ok":
            counts.passed += 1
        else:
            counts.skipped[reason_of(record)] += 1
    return counts


def exit_codes(commands: Mapping[str, Sequence[str]]) -> list[int]:
    """Runs commands side by side, the output of each in a file of its name; whatever happens, none outlives this."""
    running = [started(name, command) for name, command in commands.items()]
    try:
        return [process.wait() for process in running]
    finally:
        for process in running:
            ended(process)


def started(name: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
    """A running command, with its children in a group of their own."""
    with (KEPT / f"{name}.log").open("wb") as log:
        return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)


def ended(process: subprocess.Popen[bytes]) -> None:
    """Ends a process and its children, unless it has ended: first as with Ctrl-C, so that it can clean up."""
    if process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(PATIENCE)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))  # for what the tests know of their results
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())

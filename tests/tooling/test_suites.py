"""The tool that runs the long suites counts what the reports say."""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from unittest import mock

import pytest

from tests.opinfo.store import Store
from tests.paths import ROOT

REPORT = """\
<testsuites><testsuite>
  <testcase classname="a" name="good"/>
  <testcase classname="a" name="bad"><failure message="no"/></testcase>
  <testcase classname="a" name="worse"><error message="no"/></testcase>
  <testcase classname="a" name="left"><skipped type="pytest.skip" message="no mlir-opt"/></testcase>
  <testcase classname="a" name="left too"><skipped type="pytest.skip" message="no mlir-opt"/></testcase>
  <testcase classname="a" name="known"><skipped type="pytest.xfail" message="listed"/></testcase>
</testsuite></testsuites>
"""


def load_suites() -> ModuleType:
    spec = importlib.util.spec_from_file_location("suites_tool", ROOT / "tools" / "suites.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


suites = load_suites()


def test_counts_of_a_report() -> None:
    counts = suites.counted(ET.fromstring(REPORT))
    assert counts.failed == ["a::bad", "a::worse"]
    assert counts.line() == "1 passed, 2 failed, 3 skipped (2 no mlir-opt; 1 expected to fail: listed)"


def test_counts_of_samples_are_of_the_last_results(tmp_path: Path) -> None:
    lines = [
        {"row": "add/float32", "count": 3},
        {"key": "add/float32/0", "status": "wrong"},
        {"key": "add/float32/0", "status": "ok"},
        {"key": "add/float32/1", "status": "crash"},
        {"key": "add/float32/2", "status": "refused", "detail": "UnsupportedError: [SPY-U001] a part\n  1 x a.b: why"},
        {"key": "add/float32/3", "status": "ok"},
        {"key": "add/float32/4", "status": "none"},
    ]
    unfinished = '{"key": "add/float32/3", "sta'  # of a process that was killed
    (tmp_path / "results-all.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + unfinished)
    counts = suites.of_samples(Store(tmp_path).samples, {"add/float32/3": "host, at worst native before. Why\nWhere"})
    assert counts.failed == ["add/float32/1: crash", "add/float32/3: host, at worst native before. Why"]
    assert counts.line() == "1 passed, 2 failed, 2 skipped (1 refused: why; 1 torch refuses it)"
    assert (counts + counts).line() == "2 passed, 4 failed, 4 skipped (2 refused: why; 2 torch refuses it)"


def test_a_suite_prints_a_line_and_its_failures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_two.py").write_text("def test_good(): pass\ndef test_bad(): assert False\n")
    suite = suites.Suite("two", "", (str(tmp_path),), ("-p", "no:cacheprovider"))
    with mock.patch.multiple(suites, SUITES=(suite,), KEPT=tmp_path, ROOT=tmp_path):
        assert suites.main(["two", "--jobs", "1"]) == 1
    first, second, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("two            1 passed, 1 failed, 0 skipped, ")
    assert second == "    failed: test_two::test_bad" and not rest


def test_a_run_without_a_report_is_a_failure(tmp_path: Path) -> None:
    suite = suites.Suite("none", "", (str(tmp_path),), ("--no-such-option",))
    with mock.patch.multiple(suites, KEPT=tmp_path, ROOT=tmp_path):
        assert suites.run(suite, 1, quick=True).failed == ["pytest ended with exit code 4 and without a report"]


def test_a_suite_that_crashes_fails(tmp_path: Path) -> None:
    (tmp_path / "test_dies.py").write_text("import os\ndef test_good(): pass\ndef test_dies(): os._exit(3)\n")
    suite = suites.Suite("dies", "", (str(tmp_path),), ("-p", "no:cacheprovider"))
    with mock.patch.multiple(suites, KEPT=tmp_path, ROOT=tmp_path):
        counts = suites.run(suite, 1, quick=True)
    assert (counts.passed, counts.failed) == (1, ["test_dies::test_dies"])


STOPPING = """
import sys, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # tests that run in the background inherit that it is ignored
sys.path[:0] = {paths}
import suites
from pathlib import Path
suites.KEPT = suites.ROOT = Path({folder!r})
suites.SUITES = (suites.Suite("slow", "", ("test_slow.py",), ("-p", "no:cacheprovider")),)
sys.exit(suites.main(["--jobs", "1"]))
"""
SLOW = """
import os, pathlib, time
def test_slow():
    pathlib.Path("pid").write_text(str(os.getpid()))
    time.sleep(600)
"""


def test_stopping_it_stops_what_it_runs(tmp_path: Path) -> None:
    (tmp_path / "test_slow.py").write_text(SLOW)
    code = STOPPING.format(paths=[str(ROOT / "tools")], folder=str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert out == f"stopped; what ran is in {tmp_path}\n"
    worker = int((tmp_path / "pid").read_text())
    wait_until(lambda: not Path(f"/proc/{worker}").exists())


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_every_folder_of_tests_is_in_a_suite() -> None:
    """A suite that nobody runs is no suite; the oracles and the data are none."""
    folders = {p.name for p in (ROOT / "tests").iterdir() if p.is_dir() and any(p.rglob("test_*.py"))}
    named = {path.split("/")[1] for suite in suites.SUITES for path in suite.paths}
    assert folders - {"__pycache__"} <= named

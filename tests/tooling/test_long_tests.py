"""Tests that a run of everything leaves out."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from xml.etree import ElementTree as ET

import pytest

from tests.long_tests import is_run_of_everything, mark_long
from tests.paths import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import choose_long_tests

THIS = "tests/tooling/test_long_tests.py"
REPORT = """<testsuites><testsuite>
<testcase classname="tests.tooling.test_long_tests" name="test_a[x y]" time="1.5" />
<testcase classname="tests.tooling.test_long_tests" name="test_b" time="0.75"><failure /></testcase>
<testcase classname="tests.lit.text.floats.mlir" name="floats" time="3" />
</testsuite></testsuites>"""


@dataclass
class Collected:
    """What the list looks at in a collected test."""

    nodeid: str
    marks: list[str] = field(default_factory=list[str])

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.marks.append(mark.name)


def of_one_file(**seconds: float) -> set[str]:
    times = {f"a.py::{name.replace('__', '[')}": time for name, time in seconds.items()}
    return {name.removeprefix("a.py::") for name in choose_long_tests.left_out(times, 2.0)}


def test_tests_run_for_the_time_of_their_file() -> None:
    assert of_one_file(test_a=0.5, test_b=1.4, test_c=0.6) == {"test_b"}


def test_one_test_of_each_file_stays() -> None:
    assert of_one_file(test_a=9.0, test_b=5.0) == {"test_a"}
    assert choose_long_tests.left_out({"a.py::test": 5.0, "b.py::test": 6.0}, 2.0) == set()


def test_a_case_of_every_test_comes_before_other_cases() -> None:
    assert of_one_file(test_a__1=0.5, test_a__2=0.6, test_b=1.2) == {"test_a[2"}


def test_quick_tests_stay() -> None:
    assert of_one_file(test_a=2.0, test_b=0.09, test_c=0.01) == {"test_a"}
    assert of_one_file(test_a=5.0, test_b=4.0, test_c=0.1) == {"test_a", "test_b"}


def test_times_are_those_of_python_tests() -> None:
    assert choose_long_tests.times_of(ET.fromstring(REPORT)) == {f"{THIS}::test_a[x y]": 1.5, f"{THIS}::test_b": 0.75}


def test_what_did_not_run_stays_in_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (report := tmp_path / "times.xml").write_text(REPORT)
    (listed := tmp_path / "long_tests.txt").write_text(f"{THIS}::test_b\n{THIS}::test_c\n")
    monkeypatch.setattr(choose_long_tests, "LIST", listed)
    assert choose_long_tests.main([str(report), "--seconds", "2"]) == 0
    assert listed.read_text() == f"{THIS}::test_a[x y]\n{THIS}::test_c\n"


def test_listed_tests_are_marked_and_unknown_ones_an_error() -> None:
    items = [Collected("a.py::test_a[1]"), Collected("a.py::test_a[2]")]
    mark_long(cast("list[pytest.Item]", items), {"a.py::test_a[2]"})
    assert [item.marks for item in items] == [[], ["long"]]
    with pytest.raises(pytest.UsageError, match=r"not there: a\.py::test_a\[3\], b\.py::test"):
        mark_long(cast("list[pytest.Item]", items), {"a.py::test_a[2]", "a.py::test_a[3]", "b.py::test"})


def test_workers_know_what_was_named() -> None:
    source = pytest.Config.ArgsSource
    alone = [SimpleNamespace(args_source=one) for one in (source.TESTPATHS, source.ARGS)]
    assert [is_run_of_everything(cast("pytest.Config", one)) for one in alone] == [True, False]
    workers = [SimpleNamespace(args_source=source.ARGS, workerinput={"everything": one}) for one in (True, False)]
    assert [is_run_of_everything(cast("pytest.Config", one)) for one in workers] == [True, False]


def test_every_file_has_a_test_that_runs_by_default(request: pytest.FixtureRequest) -> None:
    items = request.session.items
    if not is_run_of_everything(request.config):
        pytest.skip("some files were named")
    names = choose_long_tests.LIST.read_text().splitlines()
    assert {name.partition("::")[0] for name in names} <= {item.nodeid.partition("::")[0] for item in items}

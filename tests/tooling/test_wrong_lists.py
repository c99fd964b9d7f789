"""Lists with names of tests that are not there: every run says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

CONFTEST = """
import pytest
from tests.wrong_lists import told_as_collection_error


def pytest_collection_modifyitems(config, items):
    with told_as_collection_error(config, items):
        raise pytest.UsageError("list.txt names tests that are not there: a.py::test")
"""


@pytest.mark.parametrize(("workers", "code"), [("0", pytest.ExitCode.INTERRUPTED), ("2", pytest.ExitCode.TESTS_FAILED)])
def test_a_run_says_which_names_are_wrong_and_runs_no_test(workers: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text("def test_it():\n    raise SystemExit('it ran')\n")
    words = [sys.executable, "-m", "pytest", "-n", workers, "-c", os.devnull, "--rootdir", ".", "test_it.py"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")} | {"PYTHONPATH": str(ROOT)}
    run = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == code, run.stdout + run.stderr
    assert "\nlist.txt names tests that are not there: a.py::test\n" in run.stdout
    assert "INTERNALERROR" not in run.stdout and "it ran" not in run.stdout

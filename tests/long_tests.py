"""Tests that a run of everything leaves out because their file takes long: they are marked `long` when collected.

`long_tests.txt` has their names, one in a line, as `tools/choose_long_tests.py` chose them by measured times. A run of
named files, or with `-m "not slow"`, runs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from pathlib import Path

import pytest

from tests.paths import ROOT

LIST = ROOT / "tests" / "long_tests.txt"


def read_names(path: Path = LIST) -> frozenset[str]:
    """Names of the tests, as pytest writes them: file, test, and case in brackets."""
    return frozenset(path.read_text(encoding="utf-8").splitlines())


def is_run_of_everything(config: pytest.Config) -> bool:
    """Whether no files were named: a worker is told by the process that started it."""
    told: dict[str, bool] | None = getattr(config, "workerinput", None)
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS if told is None else told["everything"]


def mark_long(items: Iterable[pytest.Item], names: Set[str]) -> None:
    """Mark listed tests `long`.

    Args:
        items: all tests of a run of everything.
        names: of the tests to mark.

    Raises:
        pytest.UsageError: a name is of no test.
    """
    missing = set(names)
    for item in items:
        if item.nodeid in names:
            item.add_marker(pytest.mark.long)
            missing.discard(item.nodeid)
    if missing:
        raise pytest.UsageError(f"{LIST.name} names tests that are not there: {', '.join(sorted(missing))}")

"""Lists of tests that name what is not there: an error of the collection, which workers of xdist hand on.

An exception raised while a worker collects would end the run as an internal error of pytest.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import pytest


@contextmanager
def told_as_collection_error(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Report a usage error of the block as pytest reports a file that it cannot collect, and leave no test to run.

    Args:
        config: of the run.
        items: its tests; xdist would run them in spite of the error.
    """
    try:
        yield
    except pytest.UsageError as wrong:
        report = pytest.CollectReport("lists of tests", "failed", str(wrong), [])
        config.hook.pytest_collectreport(report=report)
        items.clear()


__all__ = ["told_as_collection_error"]

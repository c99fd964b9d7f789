"""The report of a compiled graph in the log, and only if the log is read."""

from __future__ import annotations

import logging
from typing import Any, cast

import pytest

from spyre_mlir.torch_compile.plan import log_plan


class Reported:
    """A program whose report is a word."""

    def report(self) -> str:
        return "the plan"


def test_the_report_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "spyre_mlir.torch_compile.plan"):
        log_plan("0/1", cast(Any, Reported()))
    assert [record.getMessage() for record in caplog.records] == ["graph 0/1\nthe plan"]


def test_no_report_is_made_for_a_log_that_nobody_reads(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "spyre_mlir.torch_compile.plan"):
        log_plan("0/1", cast(Any, None))
    assert caplog.records == []

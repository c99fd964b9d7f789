"""Texts of a compiled graph in the log and in torch's trace, and names that TORCH_LOGS takes."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from spyre_mlir.torch_compile import text
from spyre_mlir.torch_compile.text import log_text

# The process has loaded torch already; torch reads the variable when it is loaded.
PROGRAM = """
import torch
import torch._logging._internal as internal
internal._init_logs()
import spyre_mlir
with torch.no_grad():
    torch.compile(torch.relu, backend="spyre")(torch.ones(4, 64))
"""


class Written:
    """A program whose text is the name of the level."""

    def mlir(self, level: str) -> str:
        return f"text of {level}"


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], str]]:
    found: dict[str, Callable[[], str]] = {}
    monkeypatch.setattr(text, "trace_artifact", found.__setitem__)
    return found


@pytest.mark.usefixtures("traced")
def test_texts_of_all_levels(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "spyre_mlir.torch_compile.text"):
        log_text("0/1", cast(Any, Written()))
    assert [record.getMessage() for record in caplog.records] == [
        f"graph 0/1, level {level}\ntext of {level}" for level in ("aten", "spyre.loop", "spyre.kernel", "superdsc")
    ]


@pytest.mark.usefixtures("traced")
def test_no_text_is_made_for_a_log_that_nobody_reads(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "spyre_mlir.torch_compile.text"):
        log_text("0/1", cast(Any, None))
    assert caplog.records == []


def test_artifacts_of_the_trace(traced: dict[str, Callable[[], str]]) -> None:
    log_text("0/1", cast(Any, Written()))
    assert {name: make() for name, make in traced.items()} == {
        f"spyre_mlir_0_1_{level}": f"text of {level}" for level in ("aten", "spyre.loop", "spyre.kernel", "superdsc")
    }


@pytest.mark.parametrize(
    ("names", "there", "absent"),
    [
        (
            "spyre_mlir",
            ["import of graph", "level superdsc: ", "graph 0/0 of graph"],
            ["builtin.module", "predicted time"],
        ),
        ("+spyre_mlir.torch_compile.text", ["graph 0/0, level spyre.loop\n", "aten.relu("], ["import of", "predicted"]),
    ],
)
def test_names_in_the_environment(
    names: str, there: list[str], absent: list[str], python: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TORCH_LOGS", names)
    done = subprocess.run([*python, "-c", PROGRAM], capture_output=True, text=True, check=True, cwd=tmp_path)
    for part in there:
        assert part in done.stderr
    for part in absent:
        assert part not in done.stderr


def test_nobody_listens_to_the_trace_while_tests_run() -> None:
    """Torch would write every graph of every export, a tenth of the time of the tests that compile."""
    assert {type(one).__name__ for one in logging.getLogger("torch.__trace").handlers} <= {"LazyTraceHandler"}

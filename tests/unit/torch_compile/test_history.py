"""The history of what was compiled: kept in order, shown as a table, and forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from io import StringIO

import pytest
from rich.console import Console

from spyre_mlir.torch_compile.history import Compilation, compilations, explain, forget, record

FIRST = Compilation("0/0", "forward", "captured", "(2, 3)", 4, 1.256)
SECOND = Compilation("0/1", "forward", "inputs of another size", "(5, 3)", 7, 0.1)


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    forget()
    yield
    forget()


def test_what_is_recorded_is_kept_in_order_until_it_is_forgotten() -> None:
    assert compilations() == ()
    record(FIRST)
    before = compilations()
    record(SECOND)
    assert before == (FIRST,), "what was given stays as it was"
    assert compilations() == (FIRST, SECOND)
    forget()
    assert compilations() == ()


def test_what_happened_does_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        FIRST.kernels = 5  # type: ignore[misc]


def test_a_table_explains_every_program() -> None:
    record(FIRST)
    record(SECOND)
    out = StringIO()
    Console(file=out, width=200).print(explain())
    lines = [" ".join(line.replace("│", " ").replace("┃", " ").split()) for line in out.getvalue().splitlines()]
    assert "graph function why it was compiled inputs kernels seconds" in lines
    assert "0/0 forward captured (2, 3) 4 1.26" in lines
    assert "0/1 forward inputs of another size (5, 3) 7 0.10" in lines
    assert explain().row_count == 2

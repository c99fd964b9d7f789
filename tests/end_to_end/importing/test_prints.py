"""Prints of a model are printed by the host at each call, with the numbers of the call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import spyre_mlir
from tests.functions import FunctionModel

pytestmark = pytest.mark.filterwarnings("ignore")
X = torch.arange(12.0).reshape(4, 3)
SAY: Any = torch.ops.aten._print
PRINT: Any = getattr(torch._higher_order_ops, "print", None)
has_print = pytest.mark.skipif(PRINT is None, reason="this torch has no print that is traced")


def text(x: Tensor) -> Tensor:
    y = x + 1
    SAY("a {text}")
    return y


def values(x: Tensor) -> Tensor:
    y = x @ x.T
    PRINT("{} of {:.2f} and {rows}", "sum", y.sum(), rows=y[0] * 2)
    return y.relu()


def in_order(x: Tensor) -> Tensor:
    SAY("first")
    y = (x @ x.T).relu()
    PRINT("then {0}", y.max())
    SAY("last")
    return y


def in_a_branch(x: Tensor) -> Tensor:
    def one(x: Tensor) -> Tensor:
        SAY("positive")
        return x + 1

    def other(x: Tensor) -> Tensor:
        SAY("negative")
        return x - 1

    return torch.cond(x.sum() > 0, one, other, (x,))


def beside_sizes(x: Tensor) -> Tensor:
    y = x[x > 3]
    SAY("chosen")
    PRINT("{} of them", y.sum())
    return y * 2


PRODUCT = (X @ X.T).relu()
SUM = (X @ X.T).sum()
PROGRAMS = (
    (text, "a {text}\n"),
    pytest.param(values, f"sum of {SUM:.2f} and {(X @ X.T)[0] * 2}\n", marks=has_print),
    pytest.param(in_order, f"first\nthen {PRODUCT.max()}\nlast\n", marks=has_print),
    (in_a_branch, "positive\n"),
    pytest.param(beside_sizes, f"chosen\n{X[X > 3].sum()} of them\n", marks=has_print),
)


def printed(call: Callable[[], Any], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    call()
    return capsys.readouterr().out


@pytest.mark.parametrize(("program", "expected"), PROGRAMS)
def test_each_call_prints_what_eager_prints(
    program: Callable[..., Any], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    torch._dynamo.reset()
    made = spyre_mlir.compile(FunctionModel(program), (X * 0,), numerics="exact")
    for _ in range(2):
        assert printed(lambda: made(X), capsys) == expected
    assert made.verify(X)


def test_the_branch_that_runs_prints(capsys: pytest.CaptureFixture[str]) -> None:
    made = spyre_mlir.compile(FunctionModel(in_a_branch), (X,), numerics="exact")
    assert printed(lambda: made(-X), capsys) == "negative\n"


def test_a_saved_program_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spyre_mlir.compile(FunctionModel(text), (X,)).save(tmp_path / "saved")
    assert printed(lambda: spyre_mlir.load(tmp_path / "saved")(X), capsys) == "a {text}\n"


def test_a_decomposed_program_prints(capsys: pytest.CaptureFixture[str]) -> None:
    exported = torch.export.export(FunctionModel(text), (X,)).run_decompositions()
    made = spyre_mlir.compile(exported, numerics="exact")
    assert printed(lambda: made(X), capsys) == "a {text}\n"


@has_print
def test_torch_compile_prints(capsys: pytest.CaptureFixture[str]) -> None:
    torch._dynamo.reset()
    made = torch.compile(FunctionModel(values), backend="spyre", fullgraph=True)
    made(X)
    assert printed(lambda: made(X), capsys) == printed(lambda: values(X), capsys)

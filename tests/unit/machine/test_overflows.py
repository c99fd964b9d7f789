"""Numbers beyond DLFloat16 are said where they happen: the op, its line, how many, how large, and what helps."""

from __future__ import annotations

import inspect
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.cli import run as run_tool
from spyre_mlir.errors import InputError, MachineFault, OverflowFault
from spyre_mlir.machine.overflows import PAGE, DL16OverflowWarning
from tests.functions import FunctionModel
from tests.paths import ROOT

LARGE = torch.tensor([[1.0, -3e5, 2e5, 9e4]])  # the square of 9e4 is 8.1e9, and DLFloat16 goes on to 8.57e9


class Squared(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return (x * x).sqrt()


LINE = f"{Path(__file__).name}:{inspect.getsourcelines(Squared.forward)[1] + 1}"


def said(model: Any, *inputs: Tensor, call: tuple[Tensor, ...] | None = None, **options: Any) -> list[str]:
    """The warnings of two calls."""
    compiled = spyre_mlir.compile(model, inputs, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            compiled(*(inputs if call is None else call))
    assert all(w.category is DL16OverflowWarning and w.filename == __file__ for w in caught)
    return [str(w.message) for w in caught]


def test_the_warning_says_it_all_and_once() -> None:
    (text,) = said(Squared(), LARGE)
    assert "2 results of 1:mul are beyond DLFloat16, the largest 9.00" in text
    assert LINE in text and "sdsc_1.json" in text
    assert "try keep_float32=True; " in text
    assert PAGE in text


def test_what_helps_is_only_said_where_it_helps() -> None:
    (of_half,) = said(FunctionModel(lambda x: x * x * x), torch.full((1, 4), 6e4).half())
    assert "keep_float32" not in of_half
    (of_product,) = said(FunctionModel(torch.matmul), torch.full((4, 64), 2e4), torch.full((64, 4), 2e4))
    assert "keep_float32" not in of_product  # the matrix unit has no form on float32
    assert PAGE in of_product


def test_float32_is_the_cure() -> None:
    compiled = spyre_mlir.compile(Squared(), (LARGE,), keep_float32=True, on_overflow="raise")
    torch.testing.assert_close(compiled(LARGE), LARGE.abs())


def test_refused_on_request_every_time_and_before_anything_is_written() -> None:
    def added(x: Tensor) -> Tensor:
        x += 1
        return x * x

    compiled = spyre_mlir.compile(FunctionModel(added), (LARGE.clone(),), on_overflow="raise")
    for _ in range(2):
        given = LARGE.clone()
        with pytest.raises(OverflowFault, match=r"2 results of \d:mul are beyond DLFloat16") as caught:
            compiled(given)
        assert torch.equal(given, LARGE)
    assert isinstance(caught.value, MachineFault)
    assert (caught.value.code, caught.value.exit_code) == ("SPY-F002", 3)
    assert "functions.py:" in (caught.value.where or "")  # where a function of no module is called


def test_the_log_has_it_in_any_case() -> None:
    compiled = spyre_mlir.compile(Squared(), (LARGE,), on_overflow="ignore")
    compiled(LARGE)
    (met,) = compiled.log.overflows.values()
    assert (met.op, met.count, met.file, met.tensor) == ("1:mul", 2, "sdsc_1.json", "Tensor2")
    assert met.largest == pytest.approx(9e10, rel=0.01)
    assert met.line is not None and met.line.endswith(LINE)


def test_what_the_caller_sends_counts_too() -> None:
    (text,) = said(FunctionModel(lambda x: x + 1), torch.tensor([1.0, 1e10, 2e10]))
    assert "2 numbers of argument 0, 'args_0' are beyond DLFloat16, the largest 2e+10" in text
    assert "try keep_float32=True" in text


@pytest.mark.parametrize("fill", [float("-inf"), torch.finfo(torch.float32).min, -1e30, float("inf")])
def test_masks_and_infinities_are_no_overflow(fill: float) -> None:
    mask = torch.zeros(4, 4).masked_fill(torch.ones(4, 4).triu(1).bool(), fill)
    assert said(FunctionModel(lambda x, m: (x + m).softmax(-1)), torch.randn(4, 4), mask) == []


def far(x: Tensor) -> Tensor:
    return (x - 1e5) * (x - 1e5)


@pytest.mark.parametrize("shape", [(3, 5), (2, 65), (5,), (3, 2, 7)])
def test_padding_lanes_do_not_count(shape: tuple[int, ...]) -> None:
    """Sticks are filled up with 0, which is beyond DLFloat16 after the square; the numbers of the tensor are not."""
    assert said(FunctionModel(far), torch.full(shape, 1e5)) == []
    assert said(FunctionModel(lambda x: far(x).sum(-1)), torch.full(shape, 1e5)) == []
    (text,) = said(FunctionModel(far), torch.zeros(shape))
    assert f"{math.prod(shape)} results of" in text


def test_masks_that_the_model_makes_are_no_overflow() -> None:
    def masked(x: Tensor, keep: Tensor) -> Tensor:
        hidden = (1.0 - keep) * torch.finfo(torch.float32).min
        return (x.masked_fill(keep == 0, float("-inf")) + hidden).softmax(-1)

    assert said(FunctionModel(masked), torch.randn(4, 4), torch.ones(4, 4).tril()) == []


def test_exact_numbers_never_overflow() -> None:
    assert said(Squared(), LARGE, numerics="exact") == []


def test_a_policy_that_is_none() -> None:
    with pytest.raises(InputError, match="on_overflow must be one of warn, raise, ignore, got 'shout'"):
        spyre_mlir.compile(Squared(), (LARGE,), on_overflow="shout")  # type: ignore[arg-type]


def test_a_lazy_model() -> None:
    with pytest.raises(OverflowFault):
        spyre_mlir.compile(Squared(), on_overflow="raise")(LARGE)


def test_torch_compile() -> None:
    torch._dynamo.reset()
    with pytest.raises(OverflowFault):
        torch.compile(Squared(), backend="spyre", options={"on_overflow": "raise"})(LARGE)
    with pytest.warns(DL16OverflowWarning, match="2 results of 1:mul"):
        torch.compile(Squared(), backend="spyre")(LARGE)


@pytest.mark.parametrize(("policy", "code", "told"), [("warn", 0, True), ("raise", 3, True), ("ignore", 0, False)])
def test_spyre_run(policy: str, code: int, told: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "x.npy", LARGE.numpy())
    bundle = spyre_mlir.compile(Squared(), (LARGE,)).save(tmp_path / "bundle")
    given = [str(bundle), "--numerics", "device", "--input", f"x={tmp_path / 'x.npy'}", "--on-overflow", policy]
    assert run_tool.run(given) == code
    shown, errors = capsys.readouterr()
    assert ("2 results of 1:mul are beyond DLFloat16" in errors and PAGE in errors and LINE in errors) == told
    assert shown.startswith("output: ") == (code == 0)


def test_the_page_is_there() -> None:
    assert (ROOT / PAGE).is_file()
    assert PAGE in (ROOT / "README.md").read_text(encoding="utf-8")

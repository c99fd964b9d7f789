"""What errors of torch say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.capture.tracing.torch_errors import first_line, reason_of
from tests.functions import FunctionModel


def test_the_reason_of_an_error_without_one() -> None:
    assert reason_of(RuntimeError("shapes differ\nand more")) == "shapes differ"
    assert reason_of(RuntimeError("captured:\n\nBreak\n  Explanation: too deep\n  Hint: none")) == "Break: too deep"
    assert reason_of(RuntimeError("captured:")) == "captured:"
    assert reason_of(RuntimeError()) == ""
    assert reason_of(RuntimeError("failed\n  call f(): got ValueError('a \\'b\\'\\n c')")) == "a 'b' c"


def test_an_error_is_told_by_its_first_line() -> None:
    assert first_line(ValueError("\none\ntwo")) == "one"


def test_a_number_of_python_is_read_by_item() -> None:
    with pytest.raises(UnsupportedError, match=r"try: write x.item\(\) for float\(x\)"):
        spyre_mlir.compile(FunctionModel(lambda x: x * float(x[0])), (torch.ones(2),))


def test_layers_of_torch_that_decide_by_values_say_what_to_write() -> None:
    layer, places = nn.AdaptiveLogSoftmaxWithLoss(32, 20, [5, 12]), torch.tensor([1, 7, 15])
    programs: dict[str, Callable[[torch.Tensor], Any]] = {
        r"log_prob\(x\)\.gather": lambda x: layer(x, places + x[0, 0].long()).loss,
        "give BatchNorm a momentum": nn.BatchNorm1d(32, momentum=None),
    }
    for hint, program in programs.items():
        with pytest.raises(UnsupportedError, match=f"try: .*{hint}.*torch.compile"):
            spyre_mlir.compile(FunctionModel(program), (torch.randn(3, 32),))

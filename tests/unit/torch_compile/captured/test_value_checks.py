"""Checks of numbers in operators of torch, where a graph runs without numbers."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

import spyre_mlir  # noqa: F401 - registers the backend
from spyre_mlir.torch_compile.captured.value_checks import ChecksPassed

WINDOW = torch.hann_window(16)
SPECTRUM = torch.stft(torch.sin(torch.arange(2 * 64.0)).reshape(2, 64), 16, 4, window=WINDOW, return_complex=True)


def inverted(spectrum: Tensor, window: Tensor) -> Tensor:
    return torch.istft(spectrum, 16, 4, window=window, length=60)


def test_a_check_inside_an_operator_is_passed() -> None:
    with FakeTensorMode() as mode:
        spectrum, window = mode.from_tensor(SPECTRUM), mode.from_tensor(WINDOW)
        with pytest.raises(DataDependentOutputException):
            inverted(spectrum, window)
        with ChecksPassed():
            assert inverted(spectrum, window).shape == (2, 60)


def test_a_question_of_the_graph_itself_is_none() -> None:
    with ChecksPassed():
        assert torch.equal(WINDOW, WINDOW)


def test_istft_is_compiled() -> None:
    torch._dynamo.reset()
    options = {"numerics": "exact", "host_fallback": "allow"}
    made = torch.compile(inverted, backend="spyre", fullgraph=True, options=options)
    torch.testing.assert_close(made(SPECTRUM, WINDOW), inverted(SPECTRUM, WINDOW))

"""Calls on complex numbers, from their parts."""

from __future__ import annotations

import math
from typing import Any

import torch

from spyre_mlir.frontend.complex_calls import on_complex
from spyre_mlir.frontend.spelled_calls import ComplexAt, RealAt, spelled

Z = torch.tensor([[2 + 1j, -1j], [0.5, 3 - 2j]])
RE, IM = torch.tensor([[2.0, 0.0], [0.5, 3.0]]), torch.tensor([[1.0, -1.0], [0.0, -2.0]])


def called(operator: str, **arguments: Any) -> list[torch.Tensor]:
    text = spelled(arguments)
    assert text is not None
    return on_complex([RE, IM], f"aten.{operator}", text)


def test_a_result_is_two_parts() -> None:
    re, im = called("linalg_inv.default", A=ComplexAt(0, 1))
    torch.testing.assert_close(torch.complex(re, im) @ Z, torch.eye(2, dtype=torch.complex64))


def test_a_conjugate_view_is_given_as_numbers() -> None:
    re, im = called("conj.default", self=ComplexAt(0, 1))
    assert torch.equal(re, RE) and torch.equal(im, -IM)
    assert not im.is_neg() and im.is_contiguous()


def test_real_tensors_lists_numbers_and_types_are_arguments() -> None:
    """A real tensor counts once among the results, and one of two parts twice."""
    assert [tuple(t.shape) for t in called("cat.default", tensors=[ComplexAt(0, 1), RealAt(1)], dim=1)] == [(2, 4)] * 2
    (real,) = called("abs.default", self=ComplexAt(0, 1))
    assert real[1, 1] == math.sqrt(13)
    re, im = called("mul.Scalar", self=ComplexAt(0, 1), other=complex(0, float("-inf")))
    assert re[0, 0] == math.inf and im[0, 0] == -math.inf
    wide, _ = called("_to_copy.default", self=ComplexAt(0, 1), dtype=torch.complex128)
    assert wide.dtype is torch.float64

"""The model in double precision, also where torch has an operator in single precision only."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from spyre_mlir.frontend import double_reference, import_program, torch_reference
from spyre_mlir.frontend.reference.double_precision import WithoutHalves, in_doubles


class Slope(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.prelu(x, torch.tensor(0.2))


def test_tensors_of_numbers_are_double() -> None:
    x = torch.tensor([-1.0, 3.0])
    [found] = double_reference(import_program(Slope(), (x,), None), (x,))
    assert found.dtype == np.float64
    assert found.tolist() == [-0.2, 3.0]
    assert torch.tensor(0.2).dtype == torch.float32


class Groups(torch.nn.Module):
    def forward(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten._grouped_mm(x, weight, torch.tensor([1, 4], dtype=torch.int32)) / 3


def test_an_operator_without_double_precision_runs_in_single() -> None:
    x, weight = torch.arange(64.0).reshape(4, 16), torch.arange(512.0).reshape(2, 16, 16)
    with in_doubles():
        found = Groups()(x.double(), weight.double())
    rows, first, second = x.double().numpy(), *weight.double().numpy()
    assert found.dtype == torch.float64
    assert np.array_equal(found.numpy(), np.concatenate([rows[:1] @ first, rows[1:] @ second]) / 3)


def test_a_model_of_halves_has_groups_in_single_precision() -> None:
    x, weight = torch.arange(64.0).reshape(4, 16) / 64, torch.arange(512.0).reshape(2, 16, 16) / 512
    given = (x.half(), weight.half())
    with WithoutHalves():
        found = Groups()(*given)
    rows, first, second = given[0].double().numpy(), *given[1].double().numpy()
    assert found.dtype == torch.float64
    np.testing.assert_allclose(found.numpy(), np.concatenate([rows[:1] @ first, rows[1:] @ second]) / 3, rtol=1e-6)


def test_other_errors_stay() -> None:
    with in_doubles(), pytest.raises(RuntimeError, match="size of tensor"):
        _ = torch.ones(3) + torch.ones(4)
    assert torch.get_default_dtype() is torch.float32


class Narrows(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.bfloat16)


def test_a_cast_to_half_precision_does_not_round() -> None:
    """Exact numerics never round, so neither may what they are held against: 1.001 is no bfloat16."""
    x = torch.tensor([1.001])
    [found] = torch_reference(import_program(Narrows(), (x,), None), (x,))
    assert found.tolist() == [float(x)]


@pytest.mark.parametrize("equation", ["bij,jk->bik", "bij,bkj->bik", "bij,bij->b", "bij->jb", "bi...->b..."])
def test_einsum_is_taken_apart_at_import(equation: str) -> None:
    x = torch.ones(2, 4, 4)
    second = (torch.ones(4, 4) if "jk" in equation else x,) if "," in equation else ()

    class Einsum(torch.nn.Module):
        def forward(self, *args: torch.Tensor) -> torch.Tensor:
            return torch.einsum(equation, *args)

    assert "aten.call" not in str(import_program(Einsum(), (x, *second), None).module)

"""A program takes each argument for a tensor of its own: what it writes may be no part of another one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import spyre_mlir
from spyre_mlir.errors import InputError
from spyre_mlir.frontend.program.aliasing import check_apart


class Writer(torch.nn.Module):
    """Writes to an input and to a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(6))
        self.weight = torch.nn.Parameter(torch.arange(6.0), requires_grad=False)

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        a.add_(1)
        self.total.add_(b)
        return a * self.weight + b


def compiled(model: torch.nn.Module) -> spyre_mlir.CompiledModel:
    return spyre_mlir.compile(model, (torch.zeros(6), torch.zeros(6)), numerics="exact")


def test_tensors_that_overlap_are_refused() -> None:
    model, memory = Writer(), torch.arange(8.0)
    call = compiled(model)
    same, before, array = torch.arange(6.0), memory.clone(), np.arange(6, dtype=np.float32)
    for args, both in (
        ((same, same), "'a', which shares memory with 'b'"),
        ((memory[:6], memory[2:]), "'a', which shares memory with 'b'"),
        ((torch.from_numpy(array), torch.from_numpy(array)), "'a', which shares memory with 'b'"),
        ((model.weight, same), "'a', which shares memory with 'weight'"),
        ((same, model.total), "'total', which shares memory with 'b'"),
        ((torch.zeros(1).expand(6), same), "'a', of which many elements are one place"),
    ):
        with pytest.raises(InputError, match=f"the model writes to {both}"):
            call(*args)
    assert torch.equal(memory, before)
    assert not model.total.any()


def test_tensors_between_one_another_are_taken() -> None:
    memory, halves = torch.arange(12.0), torch.arange(12.0, dtype=torch.bfloat16)
    call, model = compiled(Writer()), Writer()
    expected = memory.clone()
    assert torch.equal(call(memory[::2], memory[1::2]), model(expected[::2], expected[1::2]))
    assert torch.equal(memory, expected)
    model = Writer().bfloat16()
    half = spyre_mlir.compile(model, (halves[:6].clone(), halves[6:].clone()), numerics="exact")
    assert torch.equal(
        half(halves[::2], halves[1::2]), (torch.arange(0, 12, 2) + 1) * torch.arange(6) + torch.arange(1, 12, 2)
    )


def test_what_is_only_read_may_be_one_tensor() -> None:
    class Sum(torch.nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return a + b

    x = torch.arange(6.0)
    assert torch.equal(compiled(Sum())(x, x), x + x)


@pytest.mark.parametrize(
    ("size", "stride", "overlaps"),
    [
        ((4, 3), (2, 1), True),
        ((4, 3), (2, 3), True),
        ((2, 2), (2, 3), False),
        ((3, 4), (0, 1), True),
        ((4, 6), (6, 1), False),
        ((6, 4), (1, 6), False),
        ((3, 2), (8, 2), False),
        ((1, 4), (0, 1), False),
        ((), (), False),
        ((0, 3), (0, 0), False),
    ],
)
def test_a_written_tensor_has_a_place_for_each_element(
    size: tuple[int, ...], stride: tuple[int, ...], overlaps: bool
) -> None:
    tensor = torch.zeros(24).as_strided(size, stride)
    if overlaps:
        with pytest.raises(InputError, match="'x', of which many elements are one place"):
            check_apart(["x"], {"x": tensor}, {})
    check_apart([] if overlaps else ["x"], {"x": tensor}, {})


def test_what_is_stored_negated_may_be_written() -> None:
    class Doubles(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.mul_(2)

    numbers = torch.complex(torch.ones(3), torch.arange(3.0)).conj()
    call = spyre_mlir.compile(Doubles(), (torch.zeros(3),), numerics="exact")
    assert numbers.imag.is_neg()
    assert call(numbers.imag).tolist() == numbers.imag.tolist() == [0, -2, -4]
    assert numbers.real.tolist() == [1, 1, 1]

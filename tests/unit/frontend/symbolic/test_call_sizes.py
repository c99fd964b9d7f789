"""Values of symbols in a call."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim

from spyre_mlir.errors import InputError
from spyre_mlir.frontend.importer import import_program
from spyre_mlir.frontend.program.program import Program
from spyre_mlir.frontend.symbolic.call_sizes import sizes_of_call


class Pairs(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, n: int, z: torch.Tensor) -> Any:
        return x.view(x.shape[0] // 2, 2, -1) * n, y + z


SHAPES: Any = ({0: 2 * Dim("half", min=2)}, {0: Dim("rows")}, Dim.DYNAMIC, {0: Dim("rows")})


@cache
def program() -> Program:
    return import_program(Pairs(), (torch.ones(8, 4), torch.ones(6), 5, torch.ones(6)), dynamic_shapes=SHAPES)


def test_symbols_follow_from_extents_and_numbers() -> None:
    call = (torch.ones(14, 4), torch.ones(9), 3, torch.ones(9))
    assert sizes_of_call(program(), call) == {"s0": 7, "s1": 9, "s2": 3}


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ((torch.ones(14, 4), torch.ones(9), 3, torch.ones(8)), "dimension 0 of 'z' is 8, expected s1 = 9"),
        ((torch.ones(13, 4), torch.ones(9), 3, torch.ones(9)), r"dimension 0 of 'x' is 13, .* symbols of 2 \* s0"),
        ((torch.ones(14, 4), torch.ones(9), 3.0, torch.ones(9)), "argument 'n' is 3.0, expected a whole number"),
        ((torch.ones(14, 4), torch.ones(9, 1), 3, torch.ones(9)), "argument 'y' has 2 dimensions, expected 1"),
        ((torch.ones(14, 4),), "expected 4 positional arguments, got 1"),
    ],
)
def test_calls_that_do_not_fit(call: tuple[Any, ...], text: str) -> None:
    with pytest.raises(InputError, match=text):
        sizes_of_call(program(), call)


def test_a_constant_of_the_program_is_what_it_was() -> None:
    class Scaled(nn.Module):
        def forward(self, x: torch.Tensor, factor: int) -> torch.Tensor:
            return x * factor

    made = import_program(Scaled(), (torch.ones(6), 3), dynamic_shapes=({0: Dim("rows")}, None))
    assert sizes_of_call(made, (torch.ones(9), 3)) == {"s0": 9}
    with pytest.raises(InputError, match="argument 'factor' is 4, but the program was made for 3"):
        sizes_of_call(made, (torch.ones(9), 4))

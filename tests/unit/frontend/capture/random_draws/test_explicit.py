"""What draws in a way that the host cannot follow is refused; the program given stays as it is."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from spyre_mlir.errors import ImportProgramError, UnsupportedError
from spyre_mlir.frontend import import_program
from spyre_mlir.frontend.capture.random_draws.explicit import explicit_draws
from tests.functions import FunctionModel

X = torch.arange(6.0).reshape(2, 3)


def exported(function: Callable[..., Any], *args: torch.Tensor) -> torch.export.ExportedProgram:
    return torch.export.export(FunctionModel(function), args)


def test_the_program_given_stays() -> None:
    program = exported(lambda x: x + torch.rand_like(x.t()).t(), X)
    before = str(program.graph)
    made = explicit_draws(program)
    assert str(program.graph) == before
    assert "random.uniform.default](args = ([3, 2], [1, 3], torch.float32, 0.0, 1.0)" in str(made.graph)


def test_a_program_without_such_draws_is_itself() -> None:
    program = exported(lambda x: x + torch.rand(3), X)
    assert explicit_draws(program) is program


def test_parts_of_complex_numbers_are_drawn_beside_each_other() -> None:
    program = exported(lambda x: x + torch.randn_like(torch.complex(x, x).t()).t(), X)
    drawn = "random.normal.default](args = ([3, 2, 2], [2, 6, 1], torch.float32, 0.0, 0.7071067811865475)"
    assert drawn in str(explicit_draws(program).graph)


def own_generator(x: torch.Tensor) -> torch.Tensor:
    return x + torch.rand(3, generator=torch.Generator())


def turned(x: torch.Tensor) -> torch.Tensor:
    return torch.multinomial(x.t(), 1)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (own_generator, "aten.rand.generator: it draws from a generator of its own"),
        (turned, "aten.multinomial: it draws in the order of a memory that is not row-major"),
        (lambda x: torch.randint_like(x, x.sum().long()), "host cannot draw for it"),
    ],
    ids=["generator", "order", "tensor of limits"],
)
def test_refused(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        import_program(FunctionModel(function), (X,))


def test_unread_draws_where_torch_takes_the_program_apart() -> None:
    def unread(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[:, 0].normal_()  # a write through a view, which torch follows
        torch.rand(2)
        return y

    with pytest.raises(UnsupportedError, match="draws random numbers that nothing reads"):
        import_program(FunctionModel(unread), (X,))


def test_strides_by_symbols() -> None:
    rows = torch.export.Dim("rows", min=2, max=8)
    with pytest.raises(UnsupportedError, match="draws in the order of a memory whose strides depend"):
        import_program(FunctionModel(lambda x: torch.rand_like(x.t())), (X,), dynamic_shapes=(({0: rows},),))


def test_what_torch_cannot_export() -> None:
    with pytest.raises(ImportProgramError, match="cannot trace FunctionModel: invalid syntax"):
        import_program(
            FunctionModel(lambda x: torch.empty_like(x).random_(3, 9)), (X,)
        )  # its overload is called `from`

"""Control flow that cannot be imported is refused with its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._higher_order_ops.while_loop import while_loop

from spyre_mlir.errors import DataSizesError, ImportProgramError, SpyreError, UnsupportedError
from spyre_mlir.frontend import import_program
from tests.functions import FunctionModel

X, N = torch.ones(2, 3), torch.tensor(2.0)


def float_predicate(x: Tensor, n: Tensor) -> Any:
    return torch.cond(n, lambda x: x + 1, lambda x: x - 1, (x,))


def number_as_a_size(x: Tensor, n: Tensor) -> Any:
    return while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x + torch.ones(i).sum()), (1, x))


def other_shapes(x: Tensor, n: Tensor) -> Any:
    return torch.cond(n > 0, lambda x: x.sum(-1), lambda x: x - 1, (x,))


def writes(x: Tensor, n: Tensor) -> Any:
    return torch.cond(n > 0, lambda x: x.add_(1).clone(), lambda x: x - 1, (x,))


@pytest.mark.parametrize(
    ("program", "kind", "message"),
    [
        (float_predicate, UnsupportedError, r"cond: its predicate is torch.float32 of shape \[\], expected one truth"),
        (number_as_a_size, UnsupportedError, "while_loop: it takes numbers or sizes of Python"),
        (other_shapes, ImportProgramError, "torch.export cannot trace FunctionModel"),
        (writes, UnsupportedError, "cond: aten.add_.Tensor in it writes to what it is given"),
    ],
)
def test_refused(program: Callable[..., Any], kind: type[SpyreError], message: str) -> None:
    with pytest.raises(kind, match=message) as raised:
        import_program(FunctionModel(program), (X, N))
    assert raised.value.where is not None
    assert ".py:" in raised.value.where


def test_symbolic_sizes() -> None:
    rows = torch.export.Dim("rows", min=2, max=8)

    def halved(x: Tensor, n: Tensor) -> Any:
        return torch.cond(n > 0, lambda x: x / x.shape[0], lambda x: x - 1, (x,))

    program = import_program(FunctionModel(halved), (torch.ones(4, 3), N), dynamic_shapes=(({0: rows}, None),))
    text = str(program.module)
    assert 'other = #aten.size<"s0">' in text
    assert text.count("aten.symbols = {s0 = array<i64: 2, 8>}") == 3  # of the program and of both branches


def test_sizes_that_data_decides() -> None:
    def selected(x: Tensor, n: Tensor) -> Any:
        return torch.cond(n > 0, lambda x: x[x > 0].sum(), lambda x: x.sum(), (x,))

    with pytest.raises(DataSizesError, match="cond: data decides sizes in it"):
        import_program(FunctionModel(selected), (torch.ones(4, 3), N))

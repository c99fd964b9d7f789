"""Relative scores, whose rows are moved by a product with ones and zeros."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.frontend import import_program
from spyre_mlir.pipeline import OFF, lower
from spyre_mlir.report.timing import module_timeline
from spyre_mlir.transforms.aten_forms.shift_rows import ShiftRowsPass
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel

Shifted = Callable[[Tensor], Tensor]


def numbers(*shape: int) -> Tensor:
    return torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(5)).float()


def behind_zeros(scores: Tensor) -> Tensor:
    """As conformers do: a column of zeros in front, and the first half of the columns."""
    *lead, rows, columns = scores.shape
    wide = torch.cat([torch.zeros(*lead, rows, 1, dtype=scores.dtype), scores], -1)
    return wide.view(*lead, columns + 1, rows)[..., 1:, :].view(scores.shape)[..., : columns // 2 + 1]


def by_counts(scores: Tensor) -> Tensor:
    """As XLNet does: no zeros, and columns by their numbers."""
    *lead, rows, columns = scores.shape
    dropped = scores.reshape(*lead, columns, rows)[..., 1:, :].reshape(*lead, rows, columns - 1)
    return torch.index_select(dropped, scores.ndim - 1, torch.arange(rows))


def in_parts(scores: Tensor) -> Tensor:
    """Two readers, of columns from the middle on and of some before."""
    *lead, rows, columns = scores.shape
    wide = torch.cat([torch.zeros(*lead, rows, 1, dtype=scores.dtype), scores], -1)
    moved = wide.view(*lead, columns + 1, rows)[..., 1:, :].view(scores.shape)
    return moved[..., 40:90] + moved[..., :50]


def program(shift: Shifted) -> nn.Module:
    """Shifted scores of queries and places."""
    return FunctionModel(lambda q, p: shift(q @ p.transpose(-1, -2)) * 2)


def of_one_bmm(q: Tensor, p: Tensor) -> Tensor:
    """By `einsum`, whose views have dimensions of one element."""
    return by_counts(torch.einsum("ibnd,jbnd->bnij", q, p))


FORMS = {
    "conformer": (program(behind_zeros), (2, 2, 100, 16), (1, 2, 199, 16)),
    "of three dimensions": (program(behind_zeros), (2, 130, 16), (2, 259, 16)),
    "readers": (program(in_parts), (2, 100, 16), (2, 199, 16)),
    "XLNet": (program(by_counts), (2, 128, 16), (2, 256, 16)),
    "einsum": (FunctionModel(of_one_bmm), (100, 2, 3, 16), (200, 2, 3, 16)),
    "rows that cores share": (program(behind_zeros), (1, 500, 16), (1, 999, 16)),
}


def overloads(model: nn.Module, inputs: tuple[Tensor, ...]) -> list[str]:
    """The operators behind the pass."""
    module = import_program(model, inputs).module
    ShiftRowsPass().apply(make_context(), module)
    module.verify()
    return [op.overload for op in module.walk() if isinstance(op, AtenOp)]


@pytest.mark.parametrize(("model", "queries", "places"), FORMS.values(), ids=FORMS)
def test_every_level_agrees_with_torch(model: nn.Module, queries: tuple[int, ...], places: tuple[int, ...]) -> None:
    inputs = numbers(*queries), numbers(*places)
    assert "arange.start_step" in overloads(model, inputs)
    compiled = spyre_mlir.compile(model, inputs)
    assert (outcome := compiled.verify(*inputs)), str(outcome)
    assert torch.equal(compiled(*inputs), model(*inputs))


def all_columns(scores: Tensor) -> Tensor:
    """Columns behind the last of a row are those of the next row."""
    *lead, rows, columns = scores.shape
    wide = torch.cat([torch.zeros(*lead, rows, 1, dtype=scores.dtype), scores], -1)
    return wide.view(*lead, columns + 1, rows)[..., 1:, :].view(scores.shape)[..., : columns // 2 + 2]


def read_twice(scores: Tensor) -> Tensor:
    return behind_zeros(scores) + scores[..., :100]


def of_functions(scores: Tensor) -> Tensor:
    """The product does not make what is shifted."""
    return behind_zeros(scores.exp())


@pytest.mark.parametrize("shift", [all_columns, read_twice, of_functions])
def test_other_views_stay(shift: Shifted) -> None:
    inputs = numbers(2, 100, 16), numbers(2, 199, 16)
    assert "arange.start_step" not in overloads(program(shift), inputs)


def test_few_scores_stay() -> None:
    assert "arange.start_step" not in overloads(program(behind_zeros), (numbers(2, 16, 16), numbers(2, 31, 16)))


def test_it_takes_a_quarter_of_the_time() -> None:
    inputs = torch.zeros(2, 4, 200, 64).half(), torch.zeros(1, 4, 399, 64).half()
    module = import_program(program(behind_zeros), inputs).module

    def us(**options: object) -> float:
        modules = lower(module, make_context(), options=options).modules  # type: ignore[arg-type]
        return module_timeline(modules["superdsc"], "calibrated").total_us

    assert us() < us(**{"shift-rows": OFF}) / 4

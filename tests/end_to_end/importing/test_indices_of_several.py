"""Indices that a program computes from several arguments, or from floats, are refused where eager refuses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dynamic.model import DynamicModel
from spyre_mlir.errors import InputError
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.pipeline import LEVELS
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel

f = nn.functional


def shifted_in_place(x: Tensor, i: Tensor, j: Tensor) -> Tensor:
    """As encoders with a decoder make its inputs of labels."""
    made = i.new_zeros(i.shape)
    made[1:] = i[1:].clone()
    made[0] = 2
    made.masked_fill_(j == 5, 6)
    return x[made]


X = torch.linspace(-1.0, 1.0, 20).reshape(5, 4)
TABLE = torch.tensor([4, 0, 7, 2, -6])
Case = Callable[[Tensor, Tensor, Tensor], Tensor]

# Of a table of 5 rows and 4 columns, and two vectors of two integers.
OF_TWO: dict[str, Case] = {
    "sum": lambda x, i, j: x[i + j],
    "row_of_a_batch": lambda x, i, j: x.view(20, 1)[i * 4 + j],
    "chosen": lambda x, i, j: x[torch.where(j > 2, i, 0)],
    "least": lambda x, i, j: x.index_select(0, torch.minimum(i, j)),
    "stacked": lambda x, i, j: x[torch.stack([i * 2, j])],
    "multiple": lambda x, i, j: f.embedding(torch.add(i, j, alpha=2).abs(), x),
    "looked_up": lambda x, i, j: x[TABLE[i] + j],
    "picked": lambda x, i, j: x.gather(0, i.gather(0, j.clamp(0, 1)).view(2, 1) * 2),
    "padded": lambda x, i, j: x[f.pad(i, (1, 0)) + f.pad(j, (0, 1))],
    "repeated": lambda x, i, j: x[i.repeat_interleave(2) * j.repeat(2)],
    "power": lambda x, i, j: x[i**2 - j],
    "shifted": lambda x, i, j: x[(i << 1) + (j >> 1)],
    "sorted": lambda x, i, j: x[torch.sort(i)[0] + torch.argsort(j, descending=True)],
    "edges": lambda x, i, j: x[torch.searchsorted(torch.stack([i, j]).sort()[0], torch.stack([j, i])) + i],
    "last": lambda x, i, j: x[torch.arange(2), (i == 3).int().argmax(-1) + j],
    "parts": lambda x, i, j: x[i.unbind(0)[1] * j.split(1)[1]],
    "largest": lambda x, i, j: x[torch.stack([i, j]).max(0).values],
    "shifted_in_place": shifted_in_place,
    "narrow": lambda x, i, j: x[(i.int() * j.int()).long()],
    "written": lambda x, i, j: x.index_put((i + j,), torch.tensor(2.5)),
    "classes": lambda x, i, j: f.one_hot(i + j, 6) + x[:2, :1],
    "targets": lambda x, i, j: f.cross_entropy(x[:2], torch.where(j < 0, -100, i)),
}


def is_refused(call: Callable[[], object], error: tuple[type[Exception], ...]) -> bool:
    try:
        call()
    except error:
        return True
    return False


def compiled(function: Callable[..., Any], *args: Tensor, x: Tensor = X) -> CompiledModel:
    made = spyre_mlir.compile(FunctionModel(function), (x, *args), numerics="exact")
    assert isinstance(made, CompiledModel)
    return made


def refused_as_in_eager(function: Case, made: Callable[..., Tensor], given: tuple[Tensor, ...]) -> bool:
    refused = is_refused(lambda: function(X, *given), (IndexError, RuntimeError))
    assert is_refused(lambda: made(X, *given), (InputError,)) is refused, given
    if not refused:
        torch.testing.assert_close(made(X, *given), function(X, *given), equal_nan=True)
    return refused


def pairs() -> Iterator[tuple[Tensor, Tensor]]:
    for first, second in product((-7, -3, 0, 1, 3, 6), (-9, -1, 0, 2, 5)):
        yield torch.tensor([1, first]), torch.tensor([0, second])


@pytest.mark.parametrize("name", OF_TWO)
def test_indices_of_two_arguments(name: str) -> None:
    function = OF_TWO[name]
    made = compiled(function, torch.tensor([1, 1]), torch.tensor([0, 0]))
    assert {refused_as_in_eager(function, made, given) for given in pairs()} == {True, False}


# Of a table, and two floats.
OF_FLOATS: dict[str, Case] = {
    "truncated": lambda x, u, v: x[(u * 5).long()] + v.view(2, 1),
    "grid": lambda x, u, v: x[((u + 1) * 4 / 2).floor().long(), ((v + 1) * 3 / 2).ceil().long()],
    "rounded": lambda x, u, v: x.index_select(0, torch.round(u + v).to(torch.int32)),
    "buckets": lambda x, u, v: x[torch.bucketize(u, torch.tensor([-1.0, 0.0, 0.1, 0.5, 0.7])) + (v > 0.1)],
    "masked": lambda x, u, v: x[torch.where(u > v, u.long(), 0)],
    "clamped": lambda x, u, v: x[torch.clamp(u * 3, min=-5.5, max=5.5).trunc().long()] * v.sum(),
    "largest": lambda x, u, v: x[torch.stack([u, u, u, u, u, v]).argmax(0)],
}
FLOATS = (-1.7, -1.0, -0.2, 0.1, 0.7, 0.99999994, 1.0, 2.5, 1e30, float("inf"), float("nan"))


@pytest.mark.parametrize("name", OF_FLOATS)
def test_indices_of_floats(name: str) -> None:
    function = OF_FLOATS[name]
    made = compiled(function, torch.rand(2), torch.rand(2))
    given = [(torch.tensor([0.3, u]), torch.tensor([0.2, v])) for u in FLOATS for v in (-0.9, 0.1, 1.5)]
    assert {refused_as_in_eager(function, made, pair) for pair in given} == {True, False}


class Positions(nn.Module):
    """Tables of integers that the model owns: one that is given, one that it writes."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("offsets", torch.tensor([0, 2]))
        self.register_buffer("seen", torch.tensor([0]))

    def forward(self, x: Tensor, i: Tensor) -> Tensor:
        found = f.embedding(i + self.offsets * 2 + self.seen, x)
        self.seen += 1
        return found


def test_tables_of_the_model_count(tmp_path: Path) -> None:
    ours, eager = Positions(), Positions()
    made = spyre_mlir.compile(ours, (X, torch.tensor([0, 0])), numerics="exact")
    made.save(tmp_path / "bundle")
    loaded = spyre_mlir.load(tmp_path / "bundle")
    for call in (made, loaded):
        eager.seen.zero_()
        for first in (1, 0):
            given = torch.tensor([first, -1])
            torch.testing.assert_close(call(X, given), eager(X, given), atol=0.01, rtol=0.01)
        message = r"1, 'i', argument 2, 'offsets' and argument 3, 'seen' make an index of 6 at \[1\], and aten.embed"
        with pytest.raises(InputError, match=message) as caught:
            call(X, torch.tensor([0, 0]))
        assert "at: test_indices_of_several.py:" in str(caught.value)


@pytest.mark.parametrize("level", LEVELS[:-1])
def test_every_level_refuses(level: str) -> None:
    zeros = torch.tensor([0, 0])
    module = parse_module(compiled(OF_TWO["sum"], zeros, zeros).mlir(level), make_context())
    run_function(module, [X.numpy(), zeros.numpy() + 2, zeros.numpy() + 2])
    with pytest.raises(InputError, match=r"argument 1, 'args_1' and argument 2, 'args_2' make an index of 5 at \[0\]"):
        run_function(module, [X.numpy(), zeros.numpy() + 2, zeros.numpy() + 3])


@pytest.mark.parametrize("numerics", ["exact", "device"])
@pytest.mark.parametrize("name", ["sum", "grid"])
def test_saved_directories_refuse(tmp_path: Path, name: str, numerics: Any) -> None:
    function = {**OF_TWO, **OF_FLOATS}[name]
    one = torch.tensor([1, 1] if name == "sum" else [0.5, 0.5])
    compiled(function, one, one).save(tmp_path / "bundle")
    loaded = spyre_mlir.load(tmp_path / "bundle", numerics=numerics)
    torch.testing.assert_close(loaded(X, one, one), function(X, one, one), atol=0.01, rtol=0.01)
    with pytest.raises(InputError, match=r"makes? an index of"):
        loaded(X, one * 4, one)


def test_programs_of_torch_compile_refuse() -> None:
    torch._dynamo.reset()
    function = torch.compile(OF_TWO["row_of_a_batch"], backend="spyre")
    i, j = torch.tensor([1, 0]), torch.tensor([3, 2])
    torch.testing.assert_close(function(X, i, j), X.view(20, 1)[i * 4 + j], atol=0.01, rtol=0.01)
    with pytest.raises(InputError, match=r"make an index of 23 at \[0\]"):
        function(X, i * 5, j)


@pytest.mark.parametrize("buckets", [(), (16,)])
def test_sizes_of_the_call_bound_indices(buckets: tuple[int, ...]) -> None:
    def function(x: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return x.index_add(0, i + j, x[:1])

    def rows(count: int) -> Tensor:
        return torch.arange(count * 4.0).reshape(count, 4)

    shapes = ({0: Dim("rows", min=2, max=64)}, None, None)
    one = torch.tensor([1])
    options = {"buckets": buckets, "numerics": "exact", "dynamic_shapes": (shapes,)}
    made = spyre_mlir.compile(FunctionModel(function), (rows(8), one, one), **options)
    assert isinstance(made, DynamicModel)
    for count in (8, 11):
        given = torch.tensor([count - 3])
        torch.testing.assert_close(made(rows(count), given, one + 1), function(rows(count), given, one + 1))
        with pytest.raises(InputError, match=rf" {count} at \[0\], and aten.* takes 0 to {count - 1}"):
            made(rows(count), given, one + 2)


@pytest.mark.parametrize("buckets", [(), (8,)])
def test_counts_to_a_size_of_the_call(buckets: tuple[int, ...]) -> None:
    """In a bucket, positions of padding may lie behind the end of the table."""

    def function(x: Tensor, table: Tensor, start: Tensor) -> Tensor:
        return x + f.embedding(torch.arange(x.shape[0]) + start, table)

    shapes = ({0: Dim("n", min=2, max=8)}, None, None)
    options = {"dynamic_shapes": (shapes,), "buckets": buckets, "numerics": "exact"}
    made = spyre_mlir.compile(FunctionModel(function), (X[:4], X, torch.tensor(0)), **options)
    for count, start in ((4, 1), (3, 2), (2, 0)):
        given = X[:count], X, torch.tensor(start)
        torch.testing.assert_close(made(*given), function(*given))
    with pytest.raises(InputError, match=r"makes an index of 5 at \[3\], and aten.embedding takes 0 to 4"):
        made(X[:4], X, torch.tensor(2))


NOT_ASKED: dict[str, Case] = {
    "of_the_program": lambda x, i, j: x[(x @ x.T).argmax(0)[:2] * 0 + i.clamp(0, 4)] + j.view(2, 1),
    "masked": lambda x, i, j: x[torch.where(i < 5, i, 0) * (j > 7)],
    "unread": lambda x, i, j: x[torch.stack([i, j])[:, :1] * 0],
}


@pytest.mark.parametrize("name", NOT_ASKED)
def test_numbers_that_name_nothing_are_free(name: str) -> None:
    function, given = NOT_ASKED[name], torch.tensor([2, 9])
    made = compiled(function, torch.tensor([0, 1]), torch.tensor([0, 1]))
    torch.testing.assert_close(made(X, given, given), function(X, given, given))


def test_narrow_sums_wrap_around() -> None:
    def function(x: Tensor, i: Tensor) -> Tensor:
        return x[(i + 120).long()]

    made = compiled(function, torch.tensor([136, 140], dtype=torch.uint8))
    for given in torch.tensor([[136, 138], [139, 140]], dtype=torch.uint8):
        torch.testing.assert_close(made(X, given), function(X, given))
    for last in (141, 1):
        outside = torch.tensor([136, last], dtype=torch.uint8)
        for call in (function, made):
            with pytest.raises((IndexError, InputError)):
                call(X, outside)

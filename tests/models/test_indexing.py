"""Choosing, placing and moving elements in models: against torch, at every level and on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import spyre_mlir
from tests.functions import FunctionModel


def numbers(*shape: int) -> torch.Tensor:
    return torch.randint(-16, 17, shape, generator=torch.Generator().manual_seed(len(shape))).float() / 4


def places(count: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, count, shape, generator=torch.Generator().manual_seed(count))


def holds(*shape: int) -> torch.Tensor:
    return numbers(*shape) > 0


def zoo_writes(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[:, 1:3] = 0.0
    y[i, i + 1] = 1.0
    return y


def strided_write(x: torch.Tensor) -> torch.Tensor:
    y = x.t() * 2
    y.as_strided((2, 2), (3, 1), 1).add_(5)
    return y


LAST = torch.tensor([3, 1, 3, 3])
ROWS = numbers(2, 40, 64).half()
ROWS[0, 3, 5], ROWS[1, 4, 6], ROWS[0, 27, 7] = torch.inf, torch.nan, -torch.inf
BAGS = torch.tensor([0, 4, 4, 9])
f = torch.nn.functional
CASES: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "index_negative": (lambda x, i: x[i], (numbers(4, 6), torch.tensor([-1, 2, -4]))),
    "index_hole": (lambda x, i, j: x[i, :, j], (numbers(5, 6, 3), places(5, 4), places(3, 4))),
    "index_broadcast": (lambda x, i, j: x[:, i, j], (numbers(2, 5, 6), places(5, 4, 1), places(6, 3))),
    "index_computed": (lambda x, i: (x * 2)[i + 1], (numbers(2000, 8), places(1999, 5))),
    "two_tables": (lambda x, y, i: x[i] + y[i + 8], (numbers(9, 2), numbers(40, 2), places(9, 20))),
    "cumsum_int32": (lambda x: torch.cumsum(x, 0, dtype=torch.int32), (places(9, 20).int(),)),
    "cumsum_int32_to_int64": (lambda x: torch.cumsum(x, 0), (places(9, 20).int(),)),
    "index_truths": (lambda x, i: (~x)[i], (holds(40, 3), places(40, 5))),
    "index_vector": (lambda x, i: x[i], (numbers(40), places(40, 5))),
    "index_column": (lambda x, i: x[i], (numbers(40, 1), places(40, 5))),
    "index_part": (lambda x, i: x[i[1:3]], (numbers(4, 6), places(4, 5))),
    "index_integers": (lambda x, i: (x + 1)[i], (places(5000, 9, 3), places(9, 4))),
    "put_last": (lambda x, i, v: x.index_put((i,), v), (numbers(5, 7), LAST, numbers(4, 7))),
    "put_sum": (
        lambda x, i, j, v: x.index_put((i, j), v, True),
        (numbers(5, 7), places(5, 9), places(7, 9), numbers(9)),
    ),
    "put_mask": (lambda x, m: x.index_put((m,), torch.tensor(1.5)), (numbers(5, 7), holds(5, 7))),
    "zoo_writes": (zoo_writes, (numbers(4, 6), torch.tensor([0, 2, 3]))),
    "scatter_last": (lambda x, i, s: x.scatter(0, i, s), (places(900, 5, 7), places(5, 3, 7), places(99, 3, 7))),
    "scatter_part": (lambda x, i, s: x.scatter_add(1, i, s), (numbers(5, 7), places(7, 3, 9), numbers(4, 9))),
    "gather_rows": (lambda x, i: x.gather(1, i[..., None].expand(-1, -1, 64)), (ROWS, places(40, 2, 20))),
    "gather_heads": (
        lambda x, i: x.view(2, 40, 4, 16).transpose(1, 2).gather(2, i[:, None, :, None].repeat(1, 4, 1, 16)),
        (ROWS, places(40, 2, 20)),
    ),
    "scatter_rows": (
        lambda x, i, s: x.scatter(1, i[..., None].expand(-1, -1, 64), s),
        (ROWS, places(9, 2, 20), ROWS[:, 20:] * 3),
    ),
    "add_rows": (
        lambda x, i, s: x.scatter_add(1, i[..., None].expand_as(s), s),
        (ROWS, places(9, 2, 20), ROWS[:, 20:] * 3),
    ),
    "copy_integers": (lambda x, i, s: x.index_copy(0, i, s), (places(9, 5, 7), LAST, places(3000, 4, 7))),
    "bag": (lambda w, i: f.embedding_bag(i, w, mode="max"), (numbers(10, 8), places(10, 3, 4))),
    "bag_offsets": (lambda w, i, o: f.embedding_bag(i, w, o, padding_idx=2), (numbers(10, 8), places(10, 12), BAGS)),
    "masked_scatter": (lambda x, m, s: x.masked_scatter(m, s), (numbers(3, 4), holds(3, 4), numbers(12))),
    "slice_step": (lambda x, s: x.slice_scatter(s, 1, 1, 7, 2), (numbers(3, 8), numbers(3, 3))),
    "cat_empty": (lambda a, b: torch.cat([torch.zeros(0), a, b], 1), (numbers(3, 4), numbers(3, 70))),
    "flip_sticks": (lambda x: x.flip(0, 1), (numbers(5, 130),)),
    "many_axes": (
        lambda x: x.view(2, 2, 3, 2, 3, 2, 2, 3).permute(7, 5, 3, 1, 0, 2, 4, 6).reshape(12, 6, 12) + 1,
        (numbers(4, 6, 6, 6),),
    ),
    "windows": (lambda x: x.unfold(1, 3, 2), (numbers(5, 70),)),
    "diagonal": (lambda x: x.diagonal(-1, 0, 2), (numbers(4, 6, 5),)),
    "strided": (lambda x: x.as_strided((4, 3), (1, 8), 2), (numbers(3, 8),)),
    "strided_turned": (lambda x: (x.t() * 2).as_strided((2, 3), (3, 1), 1), (numbers(3, 8),)),
    "strided_turned_input": (lambda x: x.as_strided((2, 3), (3, 1)) + 1, (numbers(3, 8).t(),)),
    "strided_part": (lambda x: x[1:].as_strided((3,), (2,)) + x[:, 1].as_strided((3,), (1,), 0), (numbers(3, 8),)),
    "strided_write": (strided_write, (numbers(3, 8),)),
}


LONG = (
    *("zoo_writes", "two_tables", "index_computed", "index_broadcast", "put_sum"),
    *("strided_write", "bag_offsets", "scatter_last", "index_part", "copy_integers"),
)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            n, marks=pytest.mark.slow(reason="a longer form of an indexing that runs by default") if n in LONG else ()
        )
        for n in CASES
    ],
)
def test_case(name: str) -> None:
    function, args = CASES[name]
    wanted = function(*args)
    compiled = spyre_mlir.compile(FunctionModel(function), args)
    outcome = compiled.verify(*args)
    assert outcome, str(outcome)
    got = compiled(*args)
    assert got.dtype == wanted.dtype
    torch.testing.assert_close(got, wanted, rtol=1e-2, atol=1e-2, equal_nan=True)


NOTHING: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "pointwise": (lambda x: x + 1, (torch.zeros(0, 3),)),
    "sum": (lambda x: x.sum(0), (torch.zeros(0, 3),)),
    "truth": (lambda x: (x > 0).all(), (torch.zeros(0, 3),)),
    "product": (lambda x, y, b: torch.addmm(b, x, y), (torch.zeros(3, 0), torch.zeros(0, 4), numbers(4))),
    "cat": (lambda x, y: torch.cat([x, y * 2]), (torch.zeros(0, 4), numbers(2, 4))),
    "no_index": (lambda x, i, s: x.index_add(0, i, s) * 2, (numbers(3, 4), places(3, 0), torch.zeros(0, 4))),
    "part": (lambda x: (x + 1)[:, 2:2].sum(1) + x[:, 0], (numbers(3, 4),)),
}


@pytest.mark.parametrize("name", NOTHING)
def test_tensors_without_elements(name: str) -> None:
    function, args = NOTHING[name]
    compiled = spyre_mlir.compile(FunctionModel(function), args)
    got, wanted = compiled(*args), function(*args)
    assert got.dtype == wanted.dtype
    torch.testing.assert_close(got, wanted, rtol=1e-2, atol=1e-2)


def test_rows_that_an_index_names_are_a_product() -> None:
    function, args = CASES["gather_rows"]
    product, selection = (
        spyre_mlir.compile(FunctionModel(f), args, cache=False).mlir("spyre.kernel")
        for f in (function, lambda x, i: x.gather(1, i[..., None].expand(-1, -1, 64) + (x[:, :20] > 99).long()))
    )
    assert "batchmatmul" in product
    assert "batchmatmul" not in selection


def test_largest_index_counted_from_the_end_is_wrapped_by_the_transfer() -> None:
    compiled = spyre_mlir.compile(FunctionModel(lambda x, i: x[i]), (numbers(4, 6), LAST))
    assert "from_end 4" in compiled.mlir("spyre.kernel")
    assert compiled.kernels == 1


def test_a_computed_index_outside_gives_nan() -> None:
    """A sum of floats is in no order that the host could repeat; indices that follow from it are not checked."""

    def model(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return x.gather(1, (i * 2.0 + x.sum() * 0).long())

    x, i = numbers(4, 6), torch.tensor([[9], [0], [1], [2]])
    got = spyre_mlir.compile(FunctionModel(model), (x, places(3, 4, 1)))(x, i)
    assert got[0].isnan().all()
    torch.testing.assert_close(got[1:], x.gather(1, 2 * i.clamp(max=2))[1:])

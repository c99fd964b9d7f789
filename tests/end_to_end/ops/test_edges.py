"""Edges of ops that samples of single entries do not reach: no dimensions, no elements, results of several kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import spyre_mlir
from spyre_mlir.errors import MachineFault, UnsupportedError
from tests.functions import FunctionModel

pytestmark = [
    pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning"),
    pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8"),
]
INF = float("inf")
ZERO = torch.tensor(0)
TABLE = torch.randn(10, 8, generator=torch.Generator().manual_seed(1))
INDICES, OFFSETS = torch.tensor([1, 2, 4, 5, 4, 3]), torch.tensor([0, 3, 3])
aten = torch.ops.aten


def bag(mode: int, padding: int = -1, last: bool = False) -> tuple[Callable[..., Any], tuple[Tensor, ...]]:
    def function(w: Tensor, i: Tensor, o: Tensor) -> Any:
        return aten._embedding_bag(w, i, o, False, mode, False, None, last, padding)

    return function, (TABLE, INDICES, OFFSETS)


def one(function: Callable[[Tensor], Any], x: Tensor) -> tuple[Callable[..., Any], tuple[Tensor, ...]]:
    return function, (x,)


def two(
    function: Callable[[Tensor, Tensor], Any], x: Tensor, y: Tensor
) -> tuple[Callable[..., Any], tuple[Tensor, ...]]:
    return function, (x, y)


def copied(x: Tensor, index: Tensor, source: Tensor) -> Tensor:
    return x.index_copy(0, index, source)


def pooled_backward(grad: Tensor, x: Tensor) -> Any:
    return aten.avg_pool3d_backward(grad, x, [2, 2, 2], [2, 2, 2], [0, 0, 0], False, True, None)


NUMBER, FIRST = torch.tensor(3.0), torch.tensor([0])
CASES: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "select_of_a_number": two(lambda x, i: x.index_select(0, i), NUMBER, FIRST),
    "select_of_an_integer": two(lambda x, i: x.index_select(0, i), torch.tensor(3), ZERO),
    "copy_to_a_number": (copied, (NUMBER, FIRST, torch.tensor(4.0))),
    "maximum_of_a_number": one(lambda x: torch.max(x, 0), NUMBER),
    "squeeze_of_a_number": one(lambda x: x.squeeze((0,)) + 1, NUMBER),
    "nothing_of_one": one(lambda x: torch.cat([x.view(1, 3)[1:], x.view(1, 3) * 2]), torch.arange(3.0)),
    "bags_summed": bag(0),
    "bags_averaged_without_some": bag(1, padding=4),
    "bags_weighted": (
        lambda w, i, o, by: torch.nn.functional.embedding_bag(i, w, o, mode="sum", per_sample_weights=by),
        (TABLE, INDICES, OFFSETS, TABLE[:6, 0]),
    ),
    "bags_largest": bag(2),
    "bags_largest_with_an_end": bag(2, padding=5, last=True),
    # Deprecated by torch, which still takes it here.
    "bytes_as_a_mask": two(lambda x, m: aten.index_put(x, [m], FIRST + 0.5, True), TABLE, (TABLE > 0).byte() * 200),
    "rows_by_bytes": two(lambda x, m: aten.index_put(x, [m], FIRST + 0.5, True), TABLE, (TABLE[:, 0] > 0).byte()),
    "an_integer_filled_with_a_fraction": one(lambda x: x + x.new_full((3,), -2.5), torch.arange(3)),
    "a_border_of_a_fraction": one(lambda x: 2 * aten.constant_pad_nd(x, [1, 1], -2.5), torch.arange(3)),
    "a_border_of_truth": one(lambda x: aten.constant_pad_nd(x, [1, 1], 0.5), torch.arange(3) > 1),
    "nothing_is_added_to_truth": two(lambda x, y: torch.add(x, y, alpha=False), TABLE > 0, TABLE > 1),
    "a_histogram_without_what_is_no_number": one(
        lambda x: torch.histc(x, bins=4, min=-1, max=3), torch.tensor([0.5, float("nan"), -1.0, 3.0, 4.0, -2.0])
    ),
    "cosines_of_likes_and_unlikes": two(
        lambda x, y: torch.nn.functional.cosine_embedding_loss(x, x.flip(0) + 0.5, y, margin=0.1, reduction="none"),
        TABLE,
        torch.tensor([1, -1, -1, 1, -1, 1, -1, 1, 0, -1]),
    ),
    "a_product_of_integers_with_fractions": one(
        lambda x: torch.addmm(x, x, x, beta=0.5, alpha=2.7) + torch.baddbmm(x, x[None], x[None], beta=2.5, alpha=0.5),
        torch.arange(9).reshape(3, 3),
    ),
    "a_host_step_with_a_number": one(torch.linalg.matrix_rank, TABLE),
    "a_host_step_with_none": two(pooled_backward, torch.ones(1, 1, 1, 1, 1), torch.ones(1, 1, 2, 2, 2)),
}


SLOW = {"bags_largest_with_an_end"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=pytest.mark.slow(reason="takes seconds; other edges of the same function run by default")
            if name in SLOW
            else (),
        )
        for name in CASES
    ],
)
def test_edges_are_as_torch_has_them(name: str) -> None:
    function, args = CASES[name]
    model = FunctionModel(function)
    got: Any = spyre_mlir.compile(model, args, numerics="exact", host_fallback="allow")(*args)
    torch.testing.assert_close(got, model(*args), rtol=1e-4, atol=1e-5)


def test_what_depends_on_the_rank_of_a_matrix_is_refused_with_its_place() -> None:
    """By this driver, batches have residuals where all their matrices have full rank, and none otherwise."""
    model = FunctionModel(lambda a, b: torch.linalg.lstsq(a, b, driver="gelsd").residuals)
    batch = torch.stack([TABLE, TABLE])
    with pytest.raises(UnsupportedError, match=r"the rank of its matrices decides how many dimensions the residuals"):
        spyre_mlir.compile(model, (batch, batch[..., :2]))


def test_blocks_with_scales_of_their_own_are_a_host_step_which_torch_has_on_other_processors_only() -> None:
    way = torch.nn.functional.ScalingType
    a, b = (torch.ones(128, 512).to(torch.float8_e4m3fn) for _ in range(2))
    recipes = {"scale_recipe_a": way.BlockWise1x128, "scale_recipe_b": way.BlockWise128x128}
    model = FunctionModel(lambda a, b, s, t: torch.nn.functional.scaled_mm(a, b.t(), s, scale_b=t, **recipes))
    args = a, b, torch.ones(4, 128).t(), torch.ones(1, 4).t()
    compiled = spyre_mlir.compile(model, args)
    assert [step.op for step in compiled.report().host_steps] == ["aten._scaled_mm_v2"]
    with pytest.raises(MachineFault, match="torch refuses _scaled_mm_v2: Invalid scaling configuration"):
        compiled(*args)


def test_numbers_among_truth_values() -> None:
    def function(x: Tensor, at: Tensor) -> tuple[Tensor, ...]:
        return (
            x.masked_fill(x, -INF),
            x.masked_fill(x, 0.0),
            x.index_fill(0, at, 2.5),
            x.scatter(0, at, 0.5),
        )

    x, at = torch.tensor([True, False, False]), torch.tensor([1])
    found = spyre_mlir.compile(FunctionModel(function), (x, at), numerics="exact")(x, at)
    assert [f.tolist() for f in found] == [w.tolist() for w in function(x, at)]


def test_no_negative_number_of_the_device_has_a_broken_power() -> None:
    """Inverses of numbers as large as -8e9 are 0 in DL16."""
    x, y = torch.tensor([-8e9, -2.0, 4.0]), torch.full((3,), 0.5)
    found = spyre_mlir.compile(FunctionModel(torch.pow), (x, y), numerics="device")(x, y)
    assert found.isnan().tolist() == [True, True, False]

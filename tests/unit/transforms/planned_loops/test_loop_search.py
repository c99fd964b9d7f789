"""Where loops begin, and which groups of kernels are tried."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp

from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.frontend import import_program
from spyre_mlir.hw.cost_parameters import CALIBRATED, LAUNCH_US
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.pipeline import lower
from spyre_mlir.pipeline.order import made_passes, passes_to
from spyre_mlir.planning.trips import TripSpan
from spyre_mlir.transforms.kernel_loops.group_loops import GroupLoops
from spyre_mlir.transforms.kernel_loops.group_prefixes import GroupPrefix
from spyre_mlir.transforms.kernel_loops.row_groups import RowGroup
from spyre_mlir.transforms.kernel_loops.trials import Trial
from spyre_mlir.transforms.kernel_plans.kernel_choices import KernelChoices
from spyre_mlir.transforms.kernel_plans.plan_record import PlanRecord
from spyre_mlir.transforms.plan import PlanPass
from spyre_mlir.transforms.plan_notes.kernel_forms import KernelForms
from spyre_mlir.transforms.planned_loops import loop_search
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel
from tests.unit.transforms.levels import ops, passed
from tests.unit.transforms.test_place_lx import softmax


class SharedHeads(nn.Module):
    """Attention of a batch: 4 heads of keys and values are made for 32 heads of queries."""

    def __init__(self) -> None:
        super().__init__()
        self.keys, self.values = nn.Linear(2048, 256, bias=False), nn.Linear(2048, 256, bias=False)

    def forward(self, x: Tensor, queries: Tensor) -> Tensor:
        keys, values = (layer(x).unflatten(-1, (4, 64)).transpose(1, 2) for layer in (self.keys, self.values))
        return scaled_dot_product_attention(queries, keys, values, enable_gqa=True)


def test_a_loop_begins_behind_products_that_have_few_rows_in_a_trip() -> None:
    """A loop over the batch has attention in it; all 4,096 rows make their keys and values at once."""
    with torch.device("meta"):
        model, inputs = SharedHeads(), (torch.empty(16, 256, 2048), torch.empty(16, 32, 256, 64))
    module = lower(import_program(model, inputs).module, make_context()).modules["spyre.kernel"]
    products = [op for op in ops(module, KernelOp) if op.is_product]
    places = {max(op.space.extents.values()) == 2048: op.parent_op() for op in products}
    assert isinstance(places[True], FuncOp) and isinstance(places[False], ForOp)
    assert all(op.parent_op() is places[max(op.space.extents.values()) == 2048] for op in products)


def test_loops_that_gain_nothing_are_not_tried_again_without_their_first_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, grow = list[KernelOp](), loop_search.grow

    def watched(op: KernelOp, *given: Any) -> list[RowGroup]:
        begun.append(op)
        return list(grow(op, *given))

    monkeypatch.setattr(loop_search, "grow", watched)
    monkeypatch.setattr(loop_search.LoopSearch, "_best", lambda *_: (0.0, None))
    module = passed(softmax(65_536, 1024))
    PlanPass().apply(make_context(), module)
    assert begun == ops(module, KernelOp)[:1]


@pytest.mark.parametrize(("each", "trips"), [(0.0, 32), (LAUNCH_US, 16)])
def test_loops_that_gain_alike_have_few_launches(monkeypatch: pytest.MonkeyPatch, each: float, trips: int) -> None:
    """Of 1,000 us one loop saves 1 more than the other, and launches its kernel 16 times more: 3.2 us."""
    module = passed(softmax(1024, 1024))
    search, kernels = searched(module)
    group, times = RowGroup.of(kernels[:1], ["m"]), {32: 899.0, 16: 900.0}
    monkeypatch.setattr(loop_search, "LAUNCH_US", each)
    monkeypatch.setattr(search, "_known_us", lambda trial, _: times[trial.spans[0].trips])
    trials = [Trial(group, (TripSpan.of_all(n),), None, 1000.0, 0.0) for n in times]
    gain, best = search._best(trials)
    assert best is trials[[*times].index(trips)] and gain == 1000 - times[trips]


def searched(module: ModuleOp) -> tuple[loop_search.LoopSearch, list[KernelOp]]:
    kernels, (function,) = ops(module, KernelOp), ops(module, FuncOp)
    builder = GroupLoops(KernelChoices.known(SPYRE, CALIBRATED, narrow=False), PlanRecord())
    return loop_search.LoopSearch(function.body.block, builder, KernelForms(kernels), 15), kernels


def test_only_loops_that_may_gain_most_are_priced_and_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two trips take 960 of 1,000 us, no clear gain, four take 500; eight save 490 at most, which none need ask."""
    search, kernels = searched(passed(softmax(1024, 1024)))
    group, asked = RowGroup.of(kernels[:1], ["m"]), list[tuple[str, int]]()
    by_trip = {2: 960.0, 4: 480.0, 8: 490.0}

    def priced(trial: Trial) -> Trial:
        asked.append(("priced", trial.spans[0].trips))
        return replace(trial, least_us=by_trip[trial.spans[0].trips], held=())

    def built(trial: Trial, _: float) -> float:
        asked.append(("built", trial.spans[0].trips))
        return 500.0

    monkeypatch.setattr(search._floors, "priced", priced)
    monkeypatch.setattr(search, "_known_us", built)
    held = (frozenset[int](),)
    trials = [
        Trial(group, (TripSpan.of_all(n),), None, usual, 100.0, held=held)
        for n, usual in ((8, 590.0), (4, 1000.0), (2, 1000.0))
    ]
    gain, best = search._best(trials)
    assert (gain, best and best.spans[0].trips) == (500.0, 4)
    assert asked == [("priced", 2), ("priced", 4), ("built", 4)]
    assert [(tried.us, tried.least_us) for tried in search.record.loops] == [(500.0, 480.0), (None, 100.0)]


def test_loops_that_begin_later_are_tried_if_they_may_save_more() -> None:
    search, kernels = searched(passed(softmax(1024, 1024), "divide-work"))
    search._most_us = dict.fromkeys(kernels, 10.0)
    assert search._may_gain(kernels[0], 10.0 * len(kernels) - 1)
    assert not search._may_gain(kernels[0], 10.0 * len(kernels))
    assert not search._may_gain(kernels[1], 10.0 * len(kernels) - 10)
    del search._most_us[kernels[-1]]  # a part of a product that was put meanwhile
    assert search._may_gain(kernels[0], 1e6)


def test_a_sum_over_rows_grows_in_one_loop() -> None:
    """Product and sum share the rows of each matrix too, but a second loop would stand inside the one that adds up."""
    left, right = (torch.empty(8, 256, 256, device="meta") for _ in range(2))
    module = import_program(FunctionModel(lambda a, b: torch.bmm(a, b).sum(0)), (left, right)).module
    before, _, _ = passes_to("spyre.kernel").partition(",plan,")
    for one in made_passes(before.split(","), {}):
        one.apply(make_context(), module)
    search, kernels = searched(module)
    summed = next(g for g in loop_search.grow(kernels[0], kernels[1:], search.builder.rows) if g.is_summed)
    prefix = GroupPrefix(summed, search._floors)
    for count, inside in ((len(summed.ops) - 1, True), (len(summed.ops), False)):
        prefix.extend(count)
        assert [*prefix.inner_loops()]
        assert any(inner is not None for _, inner in search._loops(prefix, 1)) is inside

"""Where loops begin, and which groups of kernels are tried."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp

from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.frontend import import_program
from spyre_mlir.hw.cost_parameters import CALIBRATED, LAUNCH_US
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.pipeline import lower
from spyre_mlir.planning.trips import TripSpan
from spyre_mlir.transforms.kernel_plans.group_loops import GroupLoops
from spyre_mlir.transforms.kernel_plans.kernel_choices import KernelChoices
from spyre_mlir.transforms.kernel_plans.plan_record import PlanRecord
from spyre_mlir.transforms.kernel_plans.row_groups import RowGroup
from spyre_mlir.transforms.kernel_plans.trials import Trial
from spyre_mlir.transforms.plan import PlanPass
from spyre_mlir.transforms.plan_notes.kernel_forms import KernelForms
from spyre_mlir.transforms.planned_loops import loop_search
from spyre_mlir.universe import make_context
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
    kernels, (function,) = ops(module, KernelOp), ops(module, FuncOp)
    group, times = RowGroup.of(kernels[:1], ["m"]), {32: 899.0, 16: 900.0}
    builder = GroupLoops(KernelChoices.known(SPYRE, CALIBRATED, narrow=False), PlanRecord())
    search = loop_search.LoopSearch(function.body.block, builder, KernelForms(kernels), 15)
    monkeypatch.setattr(loop_search, "LAUNCH_US", each)
    monkeypatch.setattr(search, "_known_us", lambda trial, _: times[trial.spans[0].trips])
    trials = [Trial(group, (TripSpan.of_all(n),), None, 1000.0, 0.0) for n in times]
    gain, best = search._best(trials)
    assert best is trials[[*times].index(trips)] and gain == 1000 - times[trips]

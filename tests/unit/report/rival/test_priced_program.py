"""Kernels of a program with times, and attentions among them that run in tiles."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from spyre_mlir.frontend import import_program
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.options import CompileOptions
from spyre_mlir.report.rival.beside import BesideRival
from spyre_mlir.report.rival.building import beside_rival, rival_timelines


class Attends(nn.Module):
    """Attention of what is projected first, and a function of each element behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.projected = nn.Linear(64, 64)

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """One call."""
        return scaled_dot_product_attention(self.projected(query), key, value, enable_gqa=True).relu()


@pytest.fixture(scope="module")
def both() -> BesideRival:
    """Both plans on a card whose scratchpads are small, so that the rule cuts the attention."""
    with torch.device("meta"):
        inputs = tuple(torch.zeros(1, heads, 128, 64, dtype=torch.float16) for heads in (4, 2, 2))
        module = import_program(Attends().half(), inputs).module
    return beside_rival("attends", module, CompileOptions(spec=replace(SPYRE, lx_usable_bytes=20 * 1024)))


def test_the_rivals_attention_runs_in_tiles(both: BesideRival) -> None:
    trips = {pair.name: {kernel.trips for kernel in pair.rival} for pair in both.operations}
    assert trips["aten.linear"] == trips["aten.relu"] == {1}
    assert both.notes[-1].endswith("blocks of keys for aten.scaled_dot_product_attention")
    assert len(trips["aten.scaled_dot_product_attention"]) == 1 and 1 not in trips["aten.scaled_dot_product_attention"]


def test_every_kernel_is_on_its_side_once(both: BesideRival) -> None:
    assert both.rival is not None
    assert sum(pair.us[0] for pair in both.operations) == pytest.approx(both.rival.total_us)
    assert sum(pair.moved_bytes[0] for pair in both.operations) == both.rival.moved_bytes
    assert sum(len(pair.rival) for pair in both.operations) == len(both.rival.kernels)
    assert len(both.rival.runs) > len(both.rival.kernels)


def test_timelines_without_the_plan_beside_them_are_the_same() -> None:
    with torch.device("meta"):
        inputs = tuple(torch.zeros(1, heads, 128, 64, dtype=torch.float16) for heads in (4, 2, 2))
        module = import_program(Attends().half(), inputs).module
    whole = beside_rival("attends", module, CompileOptions()).rival
    assert whole is not None
    calibrated, peak = rival_timelines(module, CompileOptions().passes(), ("calibrated", "peak"))
    assert calibrated.total_us == whole.total_us and peak.total_us < calibrated.total_us

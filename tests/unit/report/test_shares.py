"""Time of kernels by what they have in common."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.machine.bundle.timeline import Timeline
from spyre_mlir.report.shares import ROOT, by_function, by_line, by_module, folded_modules, moves, moving_us


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x).exp()


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return x.softmax(0).t() + 1


@pytest.fixture(scope="module")
def timeline() -> Timeline:
    return spyre_mlir.compile(Model().eval(), (torch.zeros(128, 64),)).timeline()


@pytest.mark.parametrize("group", [by_function, by_module, by_line])
def test_shares_are_all_of_the_time_and_the_longest_comes_first(group, timeline: Timeline) -> None:
    shares = group(timeline)
    assert sum(share.us for share in shares) == pytest.approx(timeline.kernels_us)
    assert sum(share.part for share in shares) == pytest.approx(1)
    assert sum(len(share.kernels) for share in shares) == len(timeline.kernels)
    assert [share.us for share in shares] == sorted((share.us for share in shares), reverse=True)
    assert sum(share.moving_us for share in shares) == pytest.approx(moving_us(timeline))


def test_modules_that_differ_in_numbers_are_one(timeline: Timeline) -> None:
    shares = {share.name: share for share in by_module(timeline)}
    assert set(shares) == {"blocks.*", "blocks.*.inner", ROOT}
    assert shares["blocks.*"].times == shares["blocks.*.inner"].times == 2
    assert {k.launch.module for k in shares["blocks.*"].kernels} == {"blocks.0", "blocks.1"}


def test_modules_of_a_plain_sequence_stay_apart() -> None:
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)).eval()
    report = spyre_mlir.compile(model, (torch.zeros(4, 64),)).report()
    assert report.timeline is not None
    assert {share.name for share in by_module(report.timeline)} == {"0", "1", "2"}
    assert "time by module" in str(report)


@pytest.mark.parametrize(
    ("modules", "names"),
    [
        (["layers.0.a", "layers.3.a", "layers.3", "head"], ["layers.*.a", "layers.*.a", "layers.*", "head"]),
        (["net.0", "net.2", ""], ["net.0", "net.2", ROOT]),
        (["0", "2"], ["0", "2"]),
        (["0", "1.inner", "2"], ["0", "*.inner", "2"]),
        (["net.0.0", "net.0.2", "net.1.0", "net.1.2"], ["net.*.0", "net.*.2", "net.*.0", "net.*.2"]),
        (["layers.0.mlp.0", "layers.1.mlp.0", "v2.x1"], ["layers.*.mlp.0", "layers.*.mlp.0", "v2.x1"]),
        (["layers.0.a", "layers.1.a"], ["layers.0.a", "layers.1.a"]),
        ([""], [ROOT]),
    ],
)
def test_layers_are_one_and_steps_of_a_sequence_are_not(modules: list[str], names: list[str]) -> None:
    folded = folded_modules(modules)
    assert [folded[module] for module in modules] == names


def test_layouts_are_rearranged_and_sums_are_computed(timeline: Timeline) -> None:
    found = {kernel.launch.descriptor.op_func_name: moves(kernel) for kernel in timeline.kernels}
    assert {name for name, moving in found.items() if moving} == found.keys() & {"ReStickifyOpHBM", "identity"}
    assert {"ReStickifyOpHBM", "exp", "batchmatmul", "add"} <= set(found)

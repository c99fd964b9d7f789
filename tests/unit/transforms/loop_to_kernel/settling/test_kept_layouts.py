"""Arguments that a program writes lie before a call as they do after it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from spyre_mlir.dialects.spyre.kernel import FromDeviceOp, ToDeviceOp, device_tensor
from spyre_mlir.frontend import import_program
from spyre_mlir.hw.sticks import UNIT
from spyre_mlir.options import CompileOptions
from spyre_mlir.pipeline import lower
from spyre_mlir.transforms.loop_to_kernel.layout_planner import LayoutPlanner
from spyre_mlir.transforms.loop_to_kernel.settling.kept_layouts import align
from spyre_mlir.universe import make_context
from tests.unit.transforms.loop_to_kernel.planning import tensor


class Layer(nn.Module):
    """Attention to a cache of 11 rows, one of which is new: products reserve 64 of them."""

    def forward(self, x: torch.Tensor, cache: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        cache.index_copy_(1, at, x)
        return (x @ cache.transpose(1, 2)).softmax(-1) @ cache


class Layers(nn.Module):
    """The same, several times."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(count))

    def forward(self, x: torch.Tensor, at: torch.Tensor, *caches: torch.Tensor) -> torch.Tensor:
        for layer, cache in zip(self.layers, caches, strict=True):
            x = layer(x, cache, at)
        return x


@pytest.mark.parametrize("count", [1, 3])
def test_a_written_argument_lies_as_its_new_value(count: int) -> None:
    caches = [torch.zeros(2, 11, 16) for _ in range(count)]
    program = import_program(Layers(count).eval(), (torch.ones(2, 1, 16), torch.tensor([3]), *caches), None)
    options = CompileOptions().passes()
    module = lower(program.module, make_context(), until="spyre.kernel", options=options).modules["spyre.kernel"]
    sent = [device_tensor(o.result) for o in module.walk() if isinstance(o, ToDeviceOp)]
    back = [device_tensor(o.operands[0]) for o in module.walk() if isinstance(o, FromDeviceOp)]
    caches_in, caches_out = ([t for t in found if t.shape == (2, 11, 16)] for found in (sent, back))
    assert len(caches_in) == len(caches_out) == count
    assert caches_in == caches_out
    assert all(t.layout.extents == (2, 64, 64) or t.layout.extents == (2, 64, 16) for t in caches_out)


def planned(**given: Any) -> tuple[LayoutPlanner, Any, Any]:
    """An argument of 3 x 70 elements, and a result of the same shape."""
    p, value = LayoutPlanner(), tensor(3, 70)
    p.hosts[value] = False
    old = p.buffer(p.of(value), given.get("stick", 1))
    new = p.fresh((3, 70), "SEN169_FP16", 1)
    return p, old, new


def test_either_side_gains_what_the_other_reserves() -> None:
    for side in (0, 1):
        p, *buffers = planned()
        buffers[side].pad(0, 4)
        align(p, [(0, 0)], [buffers[1]])
        assert buffers[0].layout == buffers[1].layout
        assert buffers[0].layout.extents == (4, 128)


def test_another_stick_stays() -> None:
    p, old, new = planned(stick=UNIT)
    align(p, [(0, 0)], [new])
    assert old.layout.stick == UNIT
    assert new.layout.stick == 1


def test_results_of_the_host_have_no_layout() -> None:
    p, old, _ = planned()
    before = old.layout
    align(p, [(0, 0)], [None])
    assert old.layout == before

"""Pass `cut-copies`: copies that merge two dimensions, in two steps."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from typing_extensions import override

import spyre_mlir
from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.frontend import import_program
from spyre_mlir.pipeline import lower
from spyre_mlir.report.timing import module_timeline
from spyre_mlir.transforms.cut_nests.cut_copies import CutCopiesPass
from spyre_mlir.universe import make_context


class Joined(nn.Module):
    """A layer on heads of some channels side by side, in rows of positions and sequences."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.channels, self.layer = channels, nn.Linear(4 * channels, 64, bias=False)

    @override
    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x.permute(2, 0, 1, 3).reshape(-1, 4 * self.channels))


def given(channels: int, sequences: int = 3) -> Tensor:
    return torch.randn(sequences, 4, 40, channels, generator=torch.Generator().manual_seed(0))


def nests(x: Tensor) -> list[tuple[int, ...]]:
    """The shapes of the nests of the program behind the pass."""
    program = import_program(Joined(x.shape[-1]), (x,)).module
    module = lower(program, make_context(), until="spyre.loop").modules["spyre.loop"]
    CutCopiesPass().apply(make_context(), module)
    module.verify()
    return [shape_of(op.result) for op in module.walk() if isinstance(op, NestOp)]


@pytest.mark.parametrize("channels", [32, 96, 20])
def test_every_level_agrees_with_eager(channels: int) -> None:
    x = given(channels)
    assert spyre_mlir.compile(Joined(channels), (x,)).verify(x)


def test_a_copy_in_one_step_stays() -> None:
    """Channels are whole sticks, and stay in the lanes."""
    assert nests(given(32)) == [(40, 3, 128), (120, 128), (120, 64)]
    assert nests(given(64)) in ([(120, 256), (120, 64)], [(120, 64)])


def test_it_takes_a_small_part_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def us() -> float:
        modules = lower(import_program(Joined(32), (given(32),)).module, make_context()).modules
        return module_timeline(modules["superdsc"], "calibrated").total_us

    quick = us()
    monkeypatch.setattr("spyre_mlir.transforms.cut_nests.cut_copies._dim_to_keep", lambda _nest: None)
    assert us() > 4 * quick

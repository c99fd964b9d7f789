"""Ops that only a late pass refuses: a pass refuses all of them at once, however many there are."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.frontend import import_program
from spyre_mlir.pipeline import Lowered, lower
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel

NINE_LOOPS = (2, 3, 2, 3, 2, 3, 2, 3, 2)  # more than a kernel has, which the kernel level finds out
LONG = 200_000_003  # one dimension beyond a core's reach that is summed: no division helps, which divide-work finds out


class Lowerings:
    """Counts how often a program is lowered."""

    def __init__(self) -> None:
        self.count = 0

    def before(self, name: str) -> None:
        self.count += name == "decompose-aten"

    def after(self, name: str, module: ModuleOp) -> None:
        pass


def lowered(function: Callable[..., object], *shapes: tuple[int, ...]) -> tuple[Lowered, int]:
    program = import_program(FunctionModel(function), tuple(torch.empty(s, device="meta") for s in shapes))
    watch = Lowerings()
    return lower(program.module, make_context(), watch=watch), watch.count


def turned(x: Tensor, y: Tensor, times: int) -> Tensor:
    """Each sum reads the one before."""
    for _ in range(times):
        x = torch.exp(x.permute(8, 7, 6, 5, 4, 3, 2, 1, 0) + y)
    return x


@pytest.mark.parametrize("times", [1, 4, 16])
def test_one_pass_refuses_all_at_once(times: int) -> None:
    made, count = lowered(lambda x, y: turned(x, y, times), NINE_LOOPS, NINE_LOOPS)
    # The first one fails, the second one says which ops it is about, the third one has them on the host.
    assert count == 3
    assert [s.op for s in made.host_steps].count("aten.add.Tensor") == times
    assert all("loops" in s.reason or "dimensions" in s.reason for s in made.host_steps)


@pytest.mark.parametrize("times", [1, 4])
def test_two_passes_refuse_some_each(times: int) -> None:
    def function(x: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        for _ in range(times):
            z = z * z.sum()
        return turned(x, y, times), z

    made, count = lowered(function, NINE_LOOPS, NINE_LOOPS, (LONG,))
    assert count == 5
    ops = [s.op for s in made.host_steps]
    assert (ops.count("aten.add.Tensor"), ops.count("aten.sum")) == (times, times)

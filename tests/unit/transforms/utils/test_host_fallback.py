"""Ops that only a late pass refuses: a pass refuses all of them at once, however many there are."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from xdsl.dialects.builtin import IntegerAttr, ModuleOp

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.aten_arguments import ORIGIN
from spyre_mlir.errors import LoweringError, UnsupportedError
from spyre_mlir.frontend import import_program
from spyre_mlir.pipeline import Lowered, lower
from spyre_mlir.transforms.utils.host_fallback import (
    HostStep,
    HostStepWarning,
    listed,
    lower_with_more_on_host,
    tell_host_steps,
    warning_text,
)
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel
from tests.unit.machine.modules import parse

NINE_LOOPS = (2, 3, 2, 3, 2, 3, 2, 3, 2)  # more than a kernel has, which the kernel level finds out
LONG = 200_000_003  # one dimension beyond a core's reach that is summed: no division helps, which divide-work finds out


class Lowerings:
    """Counts how often a program is lowered."""

    def __init__(self) -> None:
        self.count = 0

    def before(self, name: str, module: ModuleOp) -> None:
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


SORT, TOP = HostStep("aten.sort", "no sort", "m.py:3"), HostStep("aten.topk", "too wide", "")


def test_steps_are_listed_by_operator_and_reason() -> None:
    others = [HostStep("aten.sort", "no sort", f"m.py:{line}") for line in (3, 4, 5)]
    assert listed([SORT, TOP, *others]) == (
        "  4 x aten.sort: no sort\n      m.py:3, m.py:4, m.py:5\n  1 x aten.topk: too wide"
    )
    many = [HostStep("aten.sort", "no sort", f"m.py:{line}") for line in range(1, 6)]
    assert listed(many) == "  5 x aten.sort: no sort\n      m.py:1, m.py:2, m.py:3, and 2 more"


def test_a_warning_counts_steps() -> None:
    assert warning_text([TOP]) == "a step of this program will run on the host\n  1 x aten.topk: too wide"
    assert warning_text([TOP, TOP]) == "2 steps of this program will run on the host\n  2 x aten.topk: too wide"


def test_host_steps_are_told_as_wanted() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tell_host_steps([SORT], "allow")
        tell_host_steps([], "warn")
        tell_host_steps([], "error")
    with pytest.warns(HostStepWarning, match="^a step of this program will run on the host") as caught:
        tell_host_steps([SORT], "warn")
    assert caught[0].filename == __file__
    with pytest.raises(UnsupportedError, match=r"^.SPY-U001. a step of this program would run") as refused:
        tell_host_steps([SORT, TOP][:1], "error")
    assert refused.value.where == "m.py:3"
    with pytest.raises(UnsupportedError) as nowhere:
        tell_host_steps([TOP], "error")
    assert nowhere.value.where is None


TWO = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = aten.exp(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = aten.neg(%0) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}"""


def refusing(marked: str) -> Callable[[ModuleOp], list[str]]:
    """A lowering that refuses the first op unless the host runs it."""

    def lower_(module: ModuleOp) -> list[str]:
        first, second = (op for op in module.walk() if isinstance(op, AtenOp))
        if not first.on_host:
            error = UnsupportedError(marked)
            origin = first.attributes.get(ORIGIN)
            error.origin = origin.value.data if isinstance(origin, IntegerAttr) else None
            raise error
        assert not second.on_host
        return [str(op.reason) for op in (first, second)] + [str(ORIGIN in first.attributes)]

    return lower_


def test_an_op_that_is_refused_goes_to_the_host_with_its_reason() -> None:
    module = parse(TWO)
    before = str(module)
    found = lower_with_more_on_host(module, refusing("too hot"), UnsupportedError("too hot"))
    assert found == ['"too hot"', "None", "False"]
    assert str(module) == before


def test_a_refusal_of_no_op_stays() -> None:
    def lower_(module: ModuleOp) -> None:
        raise LoweringError("no memory")

    with pytest.raises(LoweringError, match="no memory"):
        lower_with_more_on_host(parse(TWO), lower_, UnsupportedError("first"))

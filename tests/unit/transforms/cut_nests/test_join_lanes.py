"""Pass `join-lanes`: loops that part the lanes of a result are one, behind a copy of what parts them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import spyre_mlir
from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.frontend import import_program
from spyre_mlir.pipeline import lower
from spyre_mlir.report.timing import module_timeline
from spyre_mlir.transforms.cut_nests import join_lanes
from spyre_mlir.transforms.cut_nests.join_lanes import JoinLanesPass
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel

Form = Callable[[Tensor, Tensor], Tensor]


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape))).half()


def by_pairs(x: Tensor, table: Tensor) -> Tensor:
    """Neighbours share a factor."""
    return x * table.repeat_interleave(2, -1)


def by_threes_of_pairs(x: Tensor, table: Tensor) -> Tensor:
    """Six neighbours share a factor that is one of three."""
    return x * table[..., None, None].expand(*table.shape, 3, 2).flatten(-3)


def both_by_pairs(x: Tensor, table: Tensor) -> Tensor:
    """A table that two nests read is copied once."""
    return (x * table.repeat_interleave(2, -1)).exp() + table.repeat_interleave(2, -1)


def by_two_tables(x: Tensor, table: Tensor) -> Tensor:
    return (x * table.repeat_interleave(2, -1)).exp() + (table * 2.0).repeat_interleave(2, -1)


def widened(x: Tensor, table: Tensor) -> Tensor:
    return (x.float() * table.float().repeat_interleave(2, -1)).to(x.dtype)


def of_an_image(x: Tensor, table: Tensor) -> Tensor:
    """Heads of 32 channels of an image, whose rows lie beside each other in the result."""
    return x.permute(2, 0, 1).reshape(2, 32, -1) - table


FORMS = {
    "pairs": (by_pairs, random(8, 16, 64), random(16, 32)),
    "pairs of three": (by_threes_of_pairs, random(8, 16, 96), random(16, 16)),
    "two readers": (both_by_pairs, random(8, 16, 64), random(16, 32)),
    "two tables": (by_two_tables, random(8, 16, 64), random(16, 32)),
    "float32": (widened, random(8, 16, 64), random(16, 32)),
    "an image": (of_an_image, random(20, 40, 64), random(2, 1, 800)),
}


def nests(form: Form, x: Tensor, table: Tensor) -> list[NestOp]:
    """The nests of a program after the pass."""
    program = import_program(FunctionModel(form), (x, table)).module
    module = lower(program, make_context(), until="spyre.loop").modules["spyre.loop"]
    JoinLanesPass().apply(make_context(), module)
    module.verify()
    return [op for op in module.walk() if isinstance(op, NestOp)]


def extents(op: NestOp) -> tuple[int, ...]:
    return tuple(d.extent for d in op.space.data)


@pytest.mark.parametrize("name", FORMS)
def test_every_level_agrees_with_eager(name: str) -> None:
    form, x, table = FORMS[name]
    assert spyre_mlir.compile(FunctionModel(form), (x, table), cache=False).verify(x, table)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("pairs", [(16, 32, 2), (8, 16, 64)]),
        ("pairs of three", [(16, 16, 6), (8, 16, 96)]),
        ("two readers", [(16, 32, 2), (8, 16, 64), (8, 16, 64), (8, 16, 64)]),
        ("an image", [(2, 32, 20, 40), (2, 32, 800)]),
    ],
)
def test_loops_are_one_behind_a_copy(name: str, wanted: list[tuple[int, ...]]) -> None:
    assert [extents(op) for op in nests(*FORMS[name])] == wanted


@pytest.mark.parametrize(
    ("x", "table"),
    [(random(2, 16, 64), random(16, 32)), (random(8, 16, 64), random(8, 16, 32)), (random(8, 32), random(8, 16))],
    ids=["read twice", "read once", "rows in the lanes"],
)
def test_what_is_read_a_few_times_is_not_copied(x: Tensor, table: Tensor) -> None:
    """Rows may be in the lanes instead."""
    assert [len(extents(op)) for op in nests(by_pairs, x, table)] == [len(x.shape) + 1]


def test_whole_sticks_stay_apart() -> None:
    """64 channels share a factor: the inner loop walks the lanes."""

    def by_heads(x: Tensor, table: Tensor) -> Tensor:
        return x * table.repeat_interleave(64, -1)

    assert [len(extents(op)) for op in nests(by_heads, random(8, 16, 256), random(16, 4))] == [4]


@pytest.mark.parametrize(("name", "times"), [("pairs", 2), ("an image", 1.1)])
def test_it_takes_less_time(name: str, times: float, monkeypatch: pytest.MonkeyPatch) -> None:
    form, x, table = FORMS[name]
    x = x if name == "an image" else random(16, 256, 64)
    table = table if name == "an image" else random(256, 32)

    def us() -> float:
        modules = lower(import_program(FunctionModel(form), (x, table)).module, make_context()).modules
        return module_timeline(modules["superdsc"], "calibrated").total_us

    quick = us()
    monkeypatch.setattr(join_lanes, "_joined", lambda _nest: None)
    assert us() > times * quick

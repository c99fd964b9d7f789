"""Passes of plugins: at which points they run, in which order, and what they see there."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from xdsl.dialects import func
from xdsl.passes import ModulePass

import spyre_mlir
from spyre_mlir.errors import RegistrationError
from spyre_mlir.plugins import passes, registry
from spyre_mlir.plugins.passes import PassHook
from tests.functions import FunctionModel

X = torch.linspace(-3, 3, 3 * 65).reshape(3, 65)


def compiled(function: Any) -> Any:
    return spyre_mlir.compile(FunctionModel(function), (X,), numerics="exact")


def named(name: str, ran: list[str] | None = None) -> type[ModulePass]:
    """A pass that notes that it ran."""

    def apply(self: ModulePass, ctx: Any, op: Any) -> None:
        if ran is not None:
            ran.append(name)

    return type("Noting", (ModulePass,), {"name": name, "apply": apply})


def test_passes_run_at_four_points_in_order() -> None:
    ran: list[str] = []
    for point, priority in (("spyre.kernel", 0), ("aten", 0), ("aten", 5), ("spyre.loop", 0), ("aten-decomposed", 0)):
        registry.register_pass(point, priority=priority)(named(f"tried-{point.replace('.', '-')}-{priority}", ran))
    compiled(lambda x: torch.relu(x))
    wanted = ["aten-5", "aten-0", "aten-decomposed-0", "spyre-loop-0", "spyre-kernel-0"]
    assert ran == [f"tried-{name}" for name in wanted]


def test_pass_at_aten_sees_the_program_before_decomposition_and_after() -> None:
    seen: dict[str, list[str]] = {}

    def looking(name: str) -> type[ModulePass]:
        def apply(self: ModulePass, ctx: Any, op: Any) -> None:
            main = next(f for f in op.ops if isinstance(f, func.FuncOp))
            seen[name] = [o.name for o in main.body.block.ops]

        return type("Looking", (ModulePass,), {"name": f"tried-{name}", "apply": apply})

    for point in ("aten", "aten-decomposed"):
        registry.register_pass(point)(looking(point))
    compiled(lambda x: torch.softmax(x, -1))
    assert "aten.softmax.int" in seen["aten"]
    assert "aten.softmax.int" not in seen["aten-decomposed"]
    assert "aten.exp" in seen["aten-decomposed"]


def test_the_highest_priority_of_a_point_comes_first() -> None:
    first, second = named("tried-first"), named("tried-second")
    registry.register_pass(PassHook.LOOP)(second)
    registry.register_pass("spyre.loop", priority=3)(first)
    assert [r.function for r in passes.passes_at("spyre.loop")] == [first, second]
    assert passes.passes_at("aten") == []
    assert {r.op for r in passes.all_passes()} >= {"tried-first", "tried-second"}


def test_passes_of_a_block_are_gone_behind_it() -> None:
    with passes.isolated():
        passes.register_pass("aten")(named("tried-inside"))
        assert [r.op for r in passes.passes_at("aten")] == ["tried-inside"]
    assert passes.passes_at("aten") == []


def test_a_point_that_does_not_exist_is_refused() -> None:
    with pytest.raises(RegistrationError, match="there is no point 'lx' for passes") as refused:
        passes.register_pass("lx")
    assert refused.value.hint == "the points are aten, aten-decomposed, spyre.loop, spyre.kernel"

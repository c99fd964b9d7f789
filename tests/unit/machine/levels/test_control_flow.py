"""Device memory of a function that control flow calls is free again behind it."""

from __future__ import annotations

from dataclasses import dataclass

from spyre_mlir.machine.levels.control_flow import CardControlFunctions
from spyre_mlir.machine.memory.exact import ExactMemory


@dataclass
class Placed:
    base: int


def test_only_what_is_kept_stays() -> None:
    memory = ExactMemory()
    outside = memory.allocate("outside", 128)
    rules = CardControlFunctions(memory)
    before = rules.begin()
    memory.allocate("working", 256)
    result = memory.allocate("result", 128)
    memory.add_scratchpads()
    rules.end(before, (Placed(result.base), 3))
    assert [region.name for region in memory.regions] == ["outside", "result", "LX"]
    assert outside in memory.regions
    assert memory.allocate("next", 256, first_fit=True).base == outside.end
    assert memory.allocate("larger", 128, first_fit=True).base == result.end

"""The memory of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spyre_mlir.choices import Numerics
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.machine.memory.choice import memory_for
from spyre_mlir.machine.memory.device_numerics import DeviceMemory
from spyre_mlir.machine.memory.exact import ExactMemory, Memory
from spyre_mlir.machine.memory.plain import PlainMemory
from spyre_mlir.machine.options import MachineOptions


@pytest.mark.parametrize(
    ("numerics", "kind"), [("exact", ExactMemory), ("device", DeviceMemory), ("none", PlainMemory)]
)
def test_options_choose_the_memory(numerics: Numerics, kind: type[Memory]) -> None:
    small = replace(SPYRE, cores_per_card=2)
    made = memory_for(MachineOptions(numerics=numerics, on_fault="collect"), small)
    assert type(made) is kind
    assert (made.spec, made.log.on_fault, made.nan_is_a_fault) == (small, "collect", False)


def test_the_memory_knows_whether_nan_is_a_fault() -> None:
    assert memory_for(MachineOptions(nan="fault")).nan_is_a_fault

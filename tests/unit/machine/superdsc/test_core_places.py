"""The core a fault belongs to, where only an address is known: the first core that touches it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, OpClass, Operand
from spyre_mlir.errors import FaultKind, MachineFault
from spyre_mlir.machine.faults import Place, fault
from spyre_mlir.machine.memory.exact import ExactMemory
from spyre_mlir.machine.memory.operand_views import OperandLayout
from spyre_mlir.machine.superdsc.core_places import settled

STICK = 128


def layouts() -> tuple[list[OperandLayout], ExactMemory]:
    """Eight rows of a stick over four cores, at 0 and at 4096, where only five of them are memory."""
    memory = ExactMemory()
    memory.add_region("a", 0, 8 * STICK)
    memory.add_region("b", 4096, 5 * STICK)
    operands = tuple(
        Operand(("mb", "out"), (8, 64), "out", "SEN169_FP16", tuple(str(base + 256 * core) for core in range(4)))
        for base in (0, 4096)
    )
    view = Descriptor(2, "neg", "sfp", OpClass.POINTWISE, (Dim("mb", 8, 4), Dim("out", 64)), operands)
    return [OperandLayout(view, index, memory) for index in (0, 1)], memory


def place_of(kind: FaultKind, **where: object) -> Place:
    given = {"op": "2:neg", "tensor": "Tensor1", "low": 4096, "high": 4096 + 8 * STICK}
    return settled(fault(kind, "text", Place(**{**given, **where})), *layouts())  # pyright: ignore


def test_out_of_bounds_is_the_first_core_that_is_with_its_own_bytes() -> None:
    """Core 2 has rows 4 and 5, and row 5 is no memory."""
    wanted = Place(op="2:neg", tensor="Tensor1", core=2, low=4096 + 512, high=4096 + 768)
    assert place_of(FaultKind.OUT_OF_BOUNDS) == wanted


def test_out_of_bounds_of_no_core_stays_as_it_is() -> None:
    inside = place_of(FaultKind.OUT_OF_BOUNDS, tensor="Tensor0", low=0, high=1024)
    assert inside == Place(op="2:neg", tensor="Tensor0", low=0, high=1024)


@pytest.mark.parametrize(
    ("low", "high", "core", "last"),
    [(4096, 4098, 0, 4098), (4351, None, 0, 4352), (4352, 4354, 1, 4354), (4354, 6000, 1, 4608), (5118, 5120, 3, 5120)],
)
def test_a_byte_belongs_to_the_core_that_touches_it(low: int, high: int | None, core: int, last: int) -> None:
    found = place_of(FaultKind.UNINITIALISED_READ, low=low, high=high)
    assert found == Place(op="2:neg", tensor="Tensor1", core=core, low=low, high=last)


@pytest.mark.parametrize(
    "other", [{"low": 9000}, {"low": None, "high": None}, {"tensor": "Tensor2"}, {"op": "1:add"}, {"tensor": None}]
)
def test_a_place_that_no_core_of_the_operation_has_stays_as_it_is(other: dict[str, object]) -> None:
    wanted = replace(Place(op="2:neg", tensor="Tensor1", low=4100, high=4102), **other)
    assert place_of(FaultKind.UNINITIALISED_READ, **{"low": 4100, "high": 4102, **other}) == wanted
    if "low" not in other:
        assert place_of(FaultKind.OUT_OF_BOUNDS, **{"low": 4100, "high": 4102, **other}) == wanted


def test_a_fault_of_another_operation_out_of_bounds_stays_without_a_core() -> None:
    found = MachineFault(FaultKind.OUT_OF_BOUNDS, "text", place=Place(tensor="Tensor1"))
    assert settled(found, *layouts()) == Place(tensor="Tensor1")

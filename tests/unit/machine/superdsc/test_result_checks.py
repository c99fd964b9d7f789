"""What is said about results: overflows by operation, integers that are not exact, and NaN that is born."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, OpClass, Operand
from spyre_mlir.errors import FaultKind, MachineFault
from spyre_mlir.machine.faults import FaultLog
from spyre_mlir.machine.hardware_functions import Movement, Reduction
from spyre_mlir.machine.memory.choice import memory_for
from spyre_mlir.machine.memory.exact import Memory
from spyre_mlir.machine.memory.operand_views import OperandLayout
from spyre_mlir.machine.options import MachineOptions
from spyre_mlir.machine.superdsc.result_checks import counted, require_integers, require_numbers
from spyre_mlir.machine.superdsc.work import Tile

DL16, FP32, INT32 = "SEN169_FP16", "IEEE_FP32", "IEEE_INT32"
A, C = 0, 1 << 20
SUM, COPY = Reduction(np.add), Movement()


def card(numerics: Any = "device", **other: Any) -> Memory:
    memory = memory_for(MachineOptions(numerics=numerics, **other))
    memory.add_region("a", A, 4096)
    memory.add_region("c", C, 4096)
    return memory


def line(base: int, form: str = DL16, extent: int = 64) -> Operand:
    return Operand(("out",), (extent,), "out", form, (str(base),))


def program(name: str = "neg", form: str = DL16, extent: int = 64, output: Operand | None = None) -> Descriptor:
    dims = (Dim("mb", 1), Dim("out", extent))
    operands = line(A, form, extent), output or line(C, form, extent)
    return Descriptor(3, name, "sfp", OpClass.POINTWISE, dims, operands)


def tile_of(view: Descriptor, memory: Memory, origin: int = 0) -> Tile:
    return Tile((0,), (0, origin), tuple(OperandLayout(view, index, memory).core(0) for index in range(2)))


def put(memory: Memory, base: int, values: Any, form: str = DL16) -> None:
    width = 2 if form == DL16 else 4
    memory.store(base + width * np.arange(len(values)), np.asarray(values, float), form)


# --- overflows


def test_overflows_are_counted_by_operation() -> None:
    memory = card()
    memory.tally.beyond(np.asarray([1e30]))  # of an operation before
    memory.tally.integers = 5
    with counted(program("add"), memory):
        memory.tally.beyond(np.asarray([1e10, 3e10]))
    met = memory.log.overflows["3:add"]
    assert (met.op, met.tensor, met.count, met.largest) == ("3:add", "Tensor1", 2, 3e10)
    with counted(program("exp"), memory):
        pass
    assert [*memory.log.overflows] == ["3:add"]
    assert memory.log.faults == []


@pytest.mark.parametrize(
    ("name", "overflows", "settings"),
    [
        ("add", 0, set()),
        ("add", 1, {"overflow"}),
        ("exp", 0, {"arithmetic"}),
        ("exp", 1, {"overflow", "arithmetic"}),
        ("unheard", 0, {"arithmetic"}),
    ],
)
def test_settings_that_a_result_depends_on(name: str, overflows: int, settings: set[str]) -> None:
    memory = card()
    with counted(program(name), memory):
        memory.tally.overflows += overflows
    assert memory.log.depends == {setting: {f"3:{name}"} for setting in settings}


@pytest.mark.parametrize(("split", "kept", "depends"), [(2, False, True), (1, False, False), (2, True, False)])
def test_a_sum_over_cores_depends_on_what_they_hand_on(split: int, *, kept: bool, depends: bool) -> None:
    dims = (Dim("mb", 2, split), Dim("out", 64))
    order = ("mb", "out") if kept else ("out",)
    operand = Operand(("mb", "out"), (2, 64), "out", DL16, ("0", "128"))
    result = Operand(order, (2, 64)[-len(order) :], "out", DL16, ("0", "128"))
    memory = card()
    with counted(Descriptor(3, "sum", "sfp", OpClass.REDUCTION, dims, (operand, result)), memory):
        pass
    assert ("partial_sums" in memory.log.depends) is depends


def test_exact_numerics_depend_on_no_setting() -> None:
    memory = card("exact")
    with counted(program("exp"), memory):
        memory.tally.overflows += 1
    assert memory.log.depends == {}


def test_integers_beyond_their_format_are_a_fault() -> None:
    memory = card()
    says = "2 results are beyond the integers of IEEE_INT32"
    with pytest.raises(MachineFault, match=says) as caught, counted(program("add", INT32), memory):
        memory.tally.integers += 2
    assert caught.value.kind == FaultKind.INT32_OVERFLOW
    assert (caught.value.place.op, caught.value.place.tensor) == ("3:add", "Tensor1")
    assert "low bits" in str(caught.value)


# --- integers in a format of floats


def integers(
    values: Any, valid: int = 64, *, meaning: Any = COPY, view: Descriptor | None = None, **other: Any
) -> None:
    """Check results of operation 3, whose first `valid` elements along the stick mean something."""
    numerics, origin = other.get("numerics", "device"), other.get("origin", 0)
    memory, of = card(numerics), view or program()
    memory.integer_kernels = {3: valid} if other.get("kernel", True) else {2: valid}
    memory.element = other.get("element")
    put(memory, A, other.get("operand", np.zeros(len(values))), of.operands[0].format)
    put(memory, C, values, of.output.format)
    require_integers(of, meaning, tile_of(of, memory, origin), memory)


def refused(says: str, low: int, *args: Any, **other: Any) -> None:
    with pytest.raises(MachineFault, match=says) as caught:
        integers(*args, **other)
    assert (caught.value.kind, caught.value.place.low) == (FaultKind.INT32_OVERFLOW, low)
    assert "split them, subtract an offset" in str(caught.value)


def at(place: int, value: float, count: int = 64) -> Any:
    values = np.zeros(count)
    values[place] = value
    return values


@pytest.mark.parametrize("value", [1024.0, -1024.0, np.nan])
def test_integers_beyond_a_format_of_floats_are_refused(value: float) -> None:
    """Ten bits of DL16: up to 1023 every integer is exact, and the limit itself may be a rounded one."""
    refused("1 integers are beyond 1,023, the largest exact one", C + 2 * 7, at(7, value))
    integers(at(7, 1023.0))
    integers(at(7, -1023.0))


def test_integers_of_float32_reach_further() -> None:
    single = program(form=FP32)
    refused("beyond 16,777,215", C + 4 * 3, at(3, 2.0**24), view=single)
    integers(at(3, 2.0**24 - 1), view=single)


def test_only_operations_on_integers_in_formats_of_floats_are_looked_at() -> None:
    integers(at(7, 2000.0), kernel=False)
    integers(at(7, 2000.0, 32), view=program(form=INT32, extent=32))
    integers(at(7, 2.0**63), numerics="exact")
    integers(at(7, 2.0**70), numerics="exact", element="i64")
    refused("beyond 9,223,372,036,854,775,808", C + 2 * 7, at(7, 2.0**70), numerics="exact")
    refused("beyond 1,023", C + 2 * 7, at(7, 2000.0), element="i64")


@pytest.mark.parametrize(("valid", "wrong"), [(8, 7), (1, 0), (0, 0), (64, 63)])
def test_padding_means_nothing(valid: int, wrong: int) -> None:
    refused("1 integers", C + 2 * wrong, np.where(np.arange(64) >= wrong, 2000.0, 0.0), valid)
    integers(np.where(np.arange(64) > wrong, 2000.0, 0.0), valid)


def test_padding_counts_from_the_start_of_the_whole_tensor() -> None:
    """Of 100 elements the second core has 36."""
    refused("1 integers", C + 2 * 35, np.where(np.arange(64) >= 35, 2000.0, 0.0), 100, origin=64)
    integers(np.where(np.arange(64) > 35, 2000.0, 0.0), 100, origin=64)


def test_padding_of_widened_sticks_lies_where_widening_puts_it() -> None:
    """Elements 0 to 3 are in lanes 0 to 3 of the first stick, and 4 to 7 in those of the second."""
    wide = program(form=FP32, extent=64)
    first = [0, 1, 2, 3, 32, 33, 34, 35]
    inside, outside = np.zeros(64), np.full(64, 2.0**25)
    outside[first] = 0.0
    integers(outside, 8, view=wide)
    inside[35] = 2.0**25
    refused("1 integers", C + 128 + 4 * 3, inside, 8, view=wide)
    integers(np.where(np.arange(64) > 0, 2.0**25, 0.0), 0, view=wide)


def test_a_result_in_single_lanes_has_no_padding() -> None:
    sparse = Operand((), (), None, DL16, (str(C),))
    view = Descriptor(3, "sum", "sfp", OpClass.REDUCTION, (Dim("mb", 1), Dim("out", 64)), (line(A), sparse))
    refused("1 integers", C, [2000.0], 0, view=view)


def test_padding_of_a_result_is_its_own() -> None:
    """One number is spread over the lanes, of which eight mean something."""
    sparse = Operand((), (), None, DL16, (str(A),))
    view = Descriptor(3, "neg", "sfp", OpClass.POINTWISE, (Dim("mb", 1), Dim("out", 64)), (sparse, line(C)))
    integers(np.where(np.arange(64) > 7, 2000.0, 0.0), 8, view=view)


def test_a_sum_is_looked_at_without_signs() -> None:
    """1000 and -1000 sum to 0, and on the way there may be any of them."""
    sparse = Operand((), (), None, DL16, (str(C),))
    view = Descriptor(3, "sum", "sfp", OpClass.REDUCTION, (Dim("mb", 1), Dim("out", 64)), (line(A), sparse))
    parts = at(0, 1000.0) - at(5, 1000.0)
    refused("1 integers", C, [0.0], view=view, meaning=SUM, operand=parts)
    integers([0.0], view=view, meaning=SUM, operand=at(0, 1000.0) - at(5, 23.0))
    refused("1 integers", C, [0.0], view=view, meaning=SUM, operand=at(0, 1000.0) - at(5, 24.0))
    integers([0.0], view=view, meaning=Reduction(np.maximum), operand=parts)


# --- NaN


def numbers(*results: Any, operand: Any = None, asked: bool = True) -> None:
    """Check the results of cores one after the other."""
    memory = card(nan="fault" if asked else "allow")
    dims = (Dim("mb", len(results), len(results)), Dim("out", 64))
    starts = [tuple(str(base + 128 * core) for core in range(len(results))) for base in (A, C)]
    operands = tuple(Operand(("mb", "out"), (len(results), 64), "out", DL16, start) for start in starts)
    view = Descriptor(3, "reciprocal", "sfp", OpClass.POINTWISE, dims, operands)
    put(memory, A, np.zeros(64 * len(results)))
    if operand is not None:
        put(memory, A, operand)
    put(memory, C, np.concatenate(results))
    layouts = [OperandLayout(view, index, memory) for index in range(2)]
    tiles = [Tile((core,), (core, 0), tuple(x.core(core) for x in layouts)) for core in range(len(results))]
    require_numbers(tiles, memory)


def test_nan_that_is_born_is_a_fault_where_a_run_asks_for_it() -> None:
    wrong = at(4, np.nan) + at(9, np.inf)
    with pytest.raises(MachineFault, match="2 results are infinite or NaN, and no operand is") as caught:
        numbers(wrong)
    assert (caught.value.kind, caught.value.place.low) == (FaultKind.NAN_BORN, C + 2 * 4)
    assert "division by zero" in str(caught.value)
    numbers(wrong, asked=False)
    numbers(np.zeros(64))


def test_nan_that_was_there_is_no_fault() -> None:
    numbers(at(4, np.nan), operand=at(60, np.nan))
    numbers(np.zeros(64), at(4, np.nan), operand=at(60, np.nan))


def test_the_first_core_with_nan_is_named() -> None:
    with pytest.raises(MachineFault, match="1 results") as caught:
        numbers(np.zeros(64), at(4, np.nan), at(5, np.nan))
    assert (caught.value.place.core, caught.value.place.low) == (1, C + 128 + 8)


def test_a_run_that_goes_on_keeps_the_fault() -> None:
    memory = card(on_fault="collect")
    assert isinstance(memory.log, FaultLog)
    with counted(program("add", INT32), memory):
        memory.tally.integers += 1
    assert [met.kind for met in memory.log.faults] == [FaultKind.INT32_OVERFLOW]

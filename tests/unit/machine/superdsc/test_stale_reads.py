"""Faults of bundles that only a history of the run can show, and what a run does when it meets one."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest

from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, OpClass, Operand
from spyre_mlir.errors import FaultKind, MachineFault
from spyre_mlir.machine.faults import FaultLog
from spyre_mlir.machine.memory.choice import memory_for
from spyre_mlir.machine.memory.exact import Memory
from spyre_mlir.machine.options import MachineOptions
from spyre_mlir.machine.superdsc.run import execute
from spyre_mlir.machine.superdsc.stale_reads import History

DL16 = "SEN169_FP16"
STICK = 128
ROWS = 8


def card(**settings: str) -> Memory:
    """Memory of two operands of eight sticks at 0 and 4096, and of room for a result at 8192."""
    memory = memory_for(MachineOptions(numerics="device", **settings))
    for name, base in (("a", 0), ("b", 4096), ("c", 8192)):
        memory.add_region(name, base, ROWS * STICK)
    for base, value in ((0, 1.0), (4096, 2.0)):
        memory.store(base + 2 * np.arange(ROWS * 64), np.full(ROWS * 64, value), DL16)
    return memory


def operand(start: int, rows: int = ROWS, cores: int = 4, component: str = "hbm", step: int = 2) -> Operand:
    """Eight rows of one stick, two per core."""
    lx = component == "lx"
    starts = tuple(str(start if lx else start + core * step * STICK) for core in range(cores))
    return Operand(("out", "mb"), (64, rows // cores if lx else rows), "out", DL16, starts, component=component)


def program(name: str, *operands: Operand, rows: int = ROWS, split: int = 4, index: int = 0) -> Descriptor:
    """A function of rows of one stick, cut into slices of rows."""
    dims = (Dim("mb", rows, split), Dim("out", 64))
    return Descriptor(index, name, "sfp", OpClass.POINTWISE, dims, operands)


def add(*operands: Operand, index: int = 0) -> Descriptor:
    return program("add", *operands, index=index)


def met(view: Descriptor, memory: Memory, history: History | None = None) -> MachineFault:
    with pytest.raises(MachineFault) as caught:
        execute(view, memory, history=history)
    return caught.value


def test_a_schedule_that_gives_two_cores_one_slice() -> None:
    view = add(operand(0), operand(4096), operand(8192))
    rows = [dict(row) for row in view.core_slices]
    rows[3]["mb"] = 1
    fault = met(replace(view, slices=tuple(rows)), card())
    assert (fault.kind, fault.place.op, fault.place.core) == ("bad-schedule", "0:add", 3)


def test_a_schedule_with_a_slice_that_is_not_there() -> None:
    view = add(operand(0), operand(4096), operand(8192))
    rows = [dict(row) for row in view.core_slices]
    rows[2]["mb"] = 4
    fault = met(replace(view, slices=tuple(rows)), card())
    assert (fault.kind, fault.place.core) == ("bad-schedule", 2)


def test_more_cores_than_the_card_has() -> None:
    rows = 64
    view = program("neg", operand(0, rows, 64, step=1), operand(0, rows, 64, step=1), rows=rows, split=64)
    assert met(view, card()).kind == "bad-schedule"


def test_a_scratchpad_beyond_its_end() -> None:
    end = 2 * 1024 * 1024
    fault = met(add(operand(0), operand(4096), operand(end - STICK, component="lx")), card())
    assert (fault.kind, fault.place.core, fault.place.low) == ("lx-overflow", 0, end - STICK)


def test_what_a_scratchpad_held_before_the_bundle() -> None:
    memory = card()
    fault = met(add(operand(0), operand(256, component="lx"), operand(8192)), memory)
    assert (fault.kind, fault.place.tensor) == ("stale-read", "Tensor1")
    assert fault.place.low == memory.scratchpad_address(0, 256)


def test_what_another_tensor_has_overwritten_in_part() -> None:
    memory, history = card(), History()
    execute(add(operand(0), operand(4096), operand(0, component="lx")), memory, history=history)
    execute(add(operand(0), operand(4096), operand(STICK, component="lx"), index=1), memory, history=history)
    fault = met(program("neg", operand(0, component="lx"), operand(8192), index=2), memory, history)
    assert (fault.kind, fault.place.op, fault.place.tensor) == ("stale-read", "2:neg", "Tensor0")
    assert fault.place.low == memory.scratchpad_address(0, 0)
    assert "1:add has overwritten a part of what 0:add wrote" in str(fault)


def test_an_update_in_place_is_no_fault() -> None:
    memory, history = card(), History()
    execute(add(operand(0), operand(4096), operand(8192)), memory, history=history)
    half = program("neg", operand(0, 4, 2), operand(8192, 4, 2), rows=4, split=2, index=1)
    execute(half, memory, history=history)
    execute(program("neg", operand(8192), operand(0), index=2), memory, history=history)
    values, written = memory.load(2 * np.arange(ROWS * 64), DL16)
    assert written.all()
    assert values[::64].tolist() == [1.0] * 4 + [-3.0] * 4


def test_a_tensor_that_is_known_to_be_another() -> None:
    memory, history = card(), History()
    execute(add(operand(0), operand(4096), operand(8192)), memory, history=history, tensors=("a", "b", "sum"))
    with pytest.raises(MachineFault) as caught:
        execute(program("neg", operand(8192), operand(0)), memory, history=history, tensors=("product", "r"))
    assert caught.value.kind == "stale-read"
    assert "it wants product; 0:add has written sum there since" in str(caught.value)


def test_another_cores_slice() -> None:
    memory, history = card(), History()
    execute(add(operand(0), operand(4096), operand(0, component="lx")), memory, history=history)
    reader = program("neg", operand(0, component="lx"), operand(8192), index=1)
    rows = [dict(row) for row in reader.core_slices]
    rows[1], rows[2] = rows[2], rows[1]
    out = replace(reader.operands[1], start=tuple(reader.operands[1].start[i] for i in (0, 2, 1, 3)))
    fault = met(replace(reader, slices=tuple(rows), operands=(reader.operands[0], out)), memory, history)
    assert (fault.kind, fault.place.op, fault.place.core) == ("foreign-slice", "1:neg", 1)
    assert fault.place.low == memory.scratchpad_address(1, 0)


def test_nan_is_a_fault_where_it_is_born_if_asked_for() -> None:
    memory = card(nan="fault")
    memory.store(np.asarray([2 * 70]), [0.0], DL16)
    fault = met(program("reciprocal", operand(0), operand(8192)), memory)
    assert (fault.kind, fault.place.op, fault.place.low) == ("nan-born", "0:reciprocal", 8192 + 2 * 70)
    alone = program("reciprocal", operand(0), operand(8192))
    first, second, *others = alone.operands[1].start
    apart = replace(alone.operands[1], start=(second, first, *others))  # addresses in no order: core after core
    fault = met(replace(alone, operands=(alone.operands[0], apart)), memory)
    assert (fault.kind, fault.place.core) == ("nan-born", 0)
    execute(program("reciprocal", operand(0), operand(8192)), (free := card()))
    assert not free.log.faults


def test_overflows_are_counted_by_op() -> None:
    memory = card()
    memory.store(np.asarray([0, 2, 4]), [8e9, 8e9, 1.0], DL16)
    memory.store(np.asarray([4096, 4098]), [8e9, 1.0], DL16)
    execute(program("mul", operand(0), operand(4096), operand(8192)), memory)
    execute(program("exp", operand(0), operand(8192), index=1), memory)
    assert memory.log.overflows["0:mul"].count == 1
    assert memory.log.depends["arithmetic"] == {"1:exp"}
    assert "0:mul" in memory.log.depends["overflow"]


def test_collect_goes_on_and_keeps_the_faults() -> None:
    memory = card(on_fault="collect")
    memory.remove_region("b")
    memory.add_region("b", 4096, ROWS * STICK)
    execute(add(operand(0), operand(4096), operand(8192)), memory)
    assert [fault.kind for fault in memory.log.faults] == ["uninitialised-read"]
    _, written = memory.load(8192 + 2 * np.arange(64), DL16)
    assert not written.any()


def test_warn_says_a_fault_once(caplog: pytest.LogCaptureFixture) -> None:
    memory = card(on_fault="warn")
    memory.remove_region("b")
    memory.add_region("b", 4096, ROWS * STICK)
    with caplog.at_level(logging.WARNING, "spyre_mlir.machine"):
        for _ in range(2):
            execute(add(operand(0), operand(4096), operand(8192)), memory)
    assert len(memory.log.faults) == 2
    assert [record.message.count("uninitialised-read") for record in caplog.records] == [1]


def test_a_fault_that_leaves_nothing_to_go_on_with_is_raised_to_the_launch() -> None:
    log = FaultLog("collect")
    with pytest.raises(MachineFault):
        log.meet(MachineFault(FaultKind.OUT_OF_BOUNDS, "text"))
    log.keep(MachineFault(FaultKind.OUT_OF_BOUNDS, "text"))
    assert len(log.faults) == 1


def test_a_log_shows_the_first_ops_of_many() -> None:
    log = FaultLog(depends={"arithmetic": {f"{n}:exp" for n in range(20)}})
    assert log.undecided() == [f"arithmetic: {', '.join(f'{n}:exp' for n in range(12))} and 8 more"]

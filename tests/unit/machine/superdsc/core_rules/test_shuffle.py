"""A copy between scratchpads in which each operand has its own distribution over the cores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, OpClass, Operand
from spyre_mlir.errors import FaultKind, MachineFault, UnsupportedError
from spyre_mlir.machine.memory.exact import ExactMemory
from spyre_mlir.machine.superdsc.core_rules.shuffle import run_shuffle
from spyre_mlir.machine.superdsc.stale_reads import History

DL16 = "SEN169_FP16"
FAR = 4096
X = np.random.default_rng(3).standard_normal((8, 256))
ROW, COLUMN = np.indices((8, 256))
BY_ROWS = tuple({"mb": core, "out": 0} for core in range(4))
BY_COLUMNS = tuple({"mb": 0, "out": core} for core in range(4))


def inside(start: int, extents: tuple[int, int], slices: Any = ()) -> Operand:
    return Operand(("mb", "out"), extents, "out", DL16, (str(start),) * 4, component="lx", slices=slices)


# In rows, a core's slice is four sticks of two rows each; in columns, a stick of eight rows.
ROWS, COLUMNS = inside(0, (2, 256), BY_ROWS), inside(FAR, (8, 64), BY_COLUMNS)


def program(source: Operand = ROWS, target: Operand = COLUMNS, **other: Any) -> Descriptor:
    dims = (Dim("mb", 8, 4), Dim("out", 256))
    return replace(Descriptor(6, "shuffle", "sfp", OpClass.SHUFFLE, dims, (source, target)), **other)


def pads(memory: ExactMemory) -> tuple[np.ndarray, np.ndarray]:
    """Where the elements are before, in slices of rows, and after, in slices of columns."""
    lx = memory.spec.lx_bytes
    before = ROW // 2 * lx + 128 * (2 * (COLUMN // 64) + ROW % 2) + 2 * (COLUMN % 64)
    after = COLUMN // 64 * lx + FAR + 128 * ROW + 2 * (COLUMN % 64)
    return memory.scratchpad_base + before, memory.scratchpad_base + after


def filled(*, written: bool = True) -> tuple[ExactMemory, History]:
    memory = ExactMemory()
    memory.add_scratchpads()
    memory.step = 3
    if written:
        memory.store(pads(memory)[0], X, DL16)
    memory.step = 4
    return memory, History()


def test_slices_of_rows_become_slices_of_columns() -> None:
    memory, past = filled()
    run_shuffle(program(), memory, None, past)
    found, written = memory.load(pads(memory)[1], DL16)
    assert written.all()
    assert np.array_equal(found, X)
    assert past.producers[4].op == "6:shuffle"


def test_an_operand_may_have_the_operation_s_own_distribution() -> None:
    memory, past = filled()
    own = replace(ROWS, slices=())
    run_shuffle(program(own), memory, None, past)
    assert np.array_equal(memory.load(pads(memory)[1], DL16)[0], X)
    memory, past = filled()
    run_shuffle(program(own, slices=tuple(reversed(BY_ROWS))), memory, None, past)
    assert np.array_equal(memory.load(pads(memory)[1], DL16)[0].reshape(4, 2, 256)[::-1].reshape(8, 256), X)


def test_cores_may_have_their_slices_in_any_order() -> None:
    memory, past = filled()
    turned = tuple(reversed(BY_COLUMNS))
    run_shuffle(program(target=replace(COLUMNS, slices=turned)), memory, None, past)
    lx = memory.spec.lx_bytes
    after = memory.scratchpad_base + (3 - COLUMN // 64) * lx + FAR + 128 * ROW + 2 * (COLUMN % 64)
    assert np.array_equal(memory.load(after, DL16)[0], X)


def test_what_has_no_value_has_none_afterwards() -> None:
    memory, past = filled(written=False)
    before, after = pads(memory)
    known = COLUMN % 64 < 10
    memory.store(before[known], X[known], DL16)
    run_shuffle(program(), memory, None, past)
    found, written = memory.load(after, DL16)
    assert np.array_equal(written, known)
    assert np.array_equal(found[known], X[known])


def test_starts_may_be_symbols() -> None:
    memory, past = filled()
    bound = replace(COLUMNS, start=("-1",) * 4, symbolic=True)
    run_shuffle(program(target=bound), memory, {-1: FAR}, past)
    assert np.array_equal(memory.load(pads(memory)[1], DL16)[0], X)


def test_what_a_scratchpad_held_before_is_not_moved() -> None:
    memory, past = filled(written=False)
    with pytest.raises(MachineFault, match="before the bundle began") as caught:
        run_shuffle(program(), memory, None, past)
    assert (caught.value.kind, caught.value.place.tensor) == (FaultKind.STALE_READ, "Tensor0")


def test_a_shuffle_has_a_place_of_its_own() -> None:
    memory, past = filled()
    with pytest.raises(MachineFault, match="read and written by one operation") as caught:
        run_shuffle(program(target=replace(COLUMNS, start=("128",) * 4)), memory, None, past)
    assert caught.value.kind == FaultKind.READ_WRITE_RACE


def refused(view: Descriptor, says: str) -> None:
    memory, past = filled()
    with pytest.raises(UnsupportedError, match=says) as caught:
        run_shuffle(view, memory, None, past)
    assert caught.value.where == f"6:{view.op_func_name}"


def test_only_a_shuffle_of_one_operand_runs() -> None:
    refused(program(op_class=OpClass.POINTWISE, op_func="neg"), "outside of a shuffle")
    refused(program(operands=(ROWS, ROWS, COLUMNS)), "several operands, or with a change of format")
    refused(program(target=replace(COLUMNS, format="BFLOAT16")), "several operands, or with a change of format")


def test_each_core_has_a_slice() -> None:
    halves = tuple({"mb": 0, "out": core % 2} for core in range(4))
    refused(program(target=replace(COLUMNS, slices=halves)), "2 slices of operand 1 on 4 cores")
    refused(program(replace(ROWS, slices=halves)), "2 slices of operand 0 on 4 cores")

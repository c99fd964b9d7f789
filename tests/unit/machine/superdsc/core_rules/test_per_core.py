"""Operations that each core computes by a rule of its own: what it reads, and what all of them write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from spyre_mlir.dialects.superdsc.model.descriptor import Constant, Descriptor, Dim, OpClass, Operand
from spyre_mlir.errors import FaultKind, InputError, MachineFault, UnsupportedError
from spyre_mlir.machine.faults import Place
from spyre_mlir.machine.memory.exact import ExactMemory
from spyre_mlir.machine.memory.operand_views import ByteAccess, TrackedArray
from spyre_mlir.machine.superdsc.core_rules.per_core import CoreWork, require_whole, run_by_core, shaped
from spyre_mlir.machine.superdsc.stale_reads import History
from tests.unit.machine.superdsc.works import work_of

DL16 = "SEN169_FP16"
A, C = 0, 1 << 20
X = np.arange(1.0, 257.0).reshape(4, 64)
FILL = (Constant("first", DL16, 0x3E00), Constant("fill", DL16, 0x4000))  # 1 and 2


def rows(base: int, *starts: int, component: str = "hbm") -> Operand:
    """Rows of one stick, two per core."""
    first = starts or (0, 256)
    extent = 2 if component == "lx" else 4
    starts_of = tuple(str(base + start) for start in first)
    return Operand(("mb", "out"), (extent, 64), "out", DL16, starts_of, component=component)


def program(*operands: Operand, valid: int | None = None, mask: int = -1) -> Descriptor:
    dims = (Dim("mb", 4, 2, valid), Dim("out", 64))
    return Descriptor(7, "neg", "sfp", OpClass.POINTWISE, dims, operands, FILL, mask)


def memory_of(values: np.ndarray = X) -> ExactMemory:
    memory = ExactMemory()
    memory.add_region("a", A, 512)
    memory.add_region("c", C, 1024)
    memory.store(A + 2 * np.arange(256), values.reshape(-1), DL16)
    return memory


def negative(work: CoreWork) -> Sequence[tuple[ByteAccess, TrackedArray]]:
    tensor = work.read(0)
    return [(work.accesses[-1], TrackedArray(-tensor.values, tensor.written))]


def result(memory: ExactMemory) -> np.ndarray:
    return memory.load(C + 2 * np.arange(256), DL16)[0].reshape(4, 64)


def test_each_core_reads_its_slice() -> None:
    memory = memory_of()
    view = program(rows(A), rows(C))
    for core in (0, 1):
        tensor = work_of(view, memory, core).read(0)
        assert np.array_equal(tensor.values, X[2 * core : 2 * core + 2])
        assert tensor.written is None


def test_a_dim_s_place_among_the_axes() -> None:
    work = work_of(program(rows(A), rows(C)), memory_of())
    assert (work.axis("mb"), work.axis("out")) == (0, 1)


def test_what_is_masked_reads_as_the_mask_constant() -> None:
    """Three rows of the whole tensor count: core 1 has one of them, and the other is 2.0."""
    memory = memory_of()
    view = program(rows(A), rows(C), valid=3, mask=1)
    assert np.array_equal(work_of(view, memory).read(0).values, X[:2])
    tensor = work_of(view, memory, 1).read(0)
    assert np.array_equal(tensor.values, np.stack([X[2], np.full(64, 2.0)]))
    assert np.array_equal(work_of(replace(view, mask_constant=-1), memory, 1).read(0).values, X[2:])
    assert np.array_equal(work_of(replace(view, mask_constant=0), memory, 1).read(0).values[1], np.ones(64))


def test_what_is_masked_counts_as_written() -> None:
    memory = ExactMemory()
    memory.add_region("a", A, 512)
    memory.add_region("c", C, 512)
    memory.store(A + 256 + 2 * np.arange(32), np.ones(32), DL16)  # half of row 2
    tensor = work_of(program(rows(A), rows(C), valid=3, mask=1), memory, 1).read(0)
    assert tensor.written is not None
    assert tensor.written.tolist() == [[True] * 32 + [False] * 32, [True] * 64]


def test_an_operand_without_the_masked_dim_is_read_as_it_is() -> None:
    memory = memory_of()
    bias = Operand(("out",), (64,), "out", DL16, (str(A), str(A)))
    assert np.array_equal(work_of(program(bias, rows(C), valid=1, mask=1), memory, 1).read(0).values, X[:1])


def test_constants_by_name() -> None:
    work = work_of(program(rows(A), rows(C)), memory_of())
    assert work.constants("fill", "first") == [2.0, 1.0]
    says = r"op 7:neg needs the constant 'scale', it has \['first', 'fill'\]"
    with pytest.raises(InputError, match=says):
        work.constants("fill", "scale")


def test_all_cores_write_what_the_rule_gives() -> None:
    memory, past = memory_of(), History()
    memory.step = 5
    run_by_core(program(rows(A), rows(C)), memory, None, negative, past)
    assert np.array_equal(result(memory), -X)
    assert past.producers[5].op == "7:neg"


def test_all_read_before_any_writes() -> None:
    memory, seen = memory_of(), list[bool]()

    def watched(work: CoreWork) -> Sequence[tuple[ByteAccess, TrackedArray]]:
        seen.append(bool(memory.load(C + 2 * np.arange(256), DL16)[1].any()))
        return negative(work)

    run_by_core(program(rows(A), rows(C)), memory, None, watched, History())
    assert seen == [False, False]


def test_starts_may_be_symbols() -> None:
    memory = memory_of()
    bound = replace(rows(A), start=("-1", "-2"), symbolic=True)
    run_by_core(program(bound, rows(C)), memory, {-1: 256, -2: 0}, negative, History())
    assert np.array_equal(result(memory), -X[[2, 3, 0, 1]])


def test_two_cores_that_write_one_byte_are_refused() -> None:
    with pytest.raises(MachineFault, match="cores 0 and 1 both write 64 elements") as caught:
        run_by_core(program(rows(A), rows(C, 0, 128)), memory_of(), None, negative, History())
    assert caught.value.kind == FaultKind.DOUBLE_WRITE


def test_a_core_that_writes_what_another_reads_is_refused() -> None:
    with pytest.raises(MachineFault, match="read and written by one operation") as caught:
        run_by_core(program(rows(A), rows(A, 256, 0)), memory_of(), None, negative, History())
    assert caught.value.kind == FaultKind.READ_WRITE_RACE


def test_a_core_that_reaches_too_far_is_refused() -> None:
    most = 268_431_360 // 128
    wide = Operand(("mb", "out"), (2 * most + 2, 64), "out", DL16, ("0", "0"))
    view = replace(program(wide, rows(C)), dims=(Dim("mb", 2 * most + 2, 2), Dim("out", 64)))
    with pytest.raises(MachineFault, match="one core spans") as caught:
        run_by_core(view, memory_of(), None, negative, History())
    assert caught.value.kind == FaultKind.SPAN


def test_what_a_scratchpad_held_before_is_not_read() -> None:
    memory = memory_of()
    inside = rows(0, 0, 0, component="lx")
    with pytest.raises(MachineFault) as caught:
        run_by_core(program(inside, rows(C)), memory, None, negative, History())
    assert (caught.value.kind, caught.value.place.tensor) == (FaultKind.STALE_READ, "Tensor0")


def test_a_fault_of_a_rule_is_the_core_s_that_touches_the_byte_and_says_what_overwrote_it() -> None:
    memory, past = memory_of(), History()
    memory.step = 3
    memory.store(C + np.asarray([0]), np.ones(1), DL16)
    past.ended[3] = "1:add has overwritten a part of what 0:add wrote"

    def broken(work: CoreWork) -> Sequence[tuple[ByteAccess, TrackedArray]]:
        kind = FaultKind.UNINITIALISED_READ
        work.memory.log.meet(MachineFault(kind, "text", place=Place(op="7:neg", tensor="Tensor0", low=A + 300)))
        return []

    with pytest.raises(MachineFault) as caught:
        run_by_core(program(rows(A), rows(C)), memory, None, broken, past)
    assert caught.value.place.core == 1
    assert memory.log.why(C) == "1:add has overwritten a part of what 0:add wrote"


def test_a_result_is_spread_along_what_is_written() -> None:
    access = work_of(program(rows(A), rows(C)), memory_of()).accesses[-1]
    made = shaped(TrackedArray(np.asarray([[1.0], [2.0]]), np.asarray([[True], [False]])), access)
    assert np.array_equal(made.values, np.broadcast_to([[1.0], [2.0]], (2, 64)))
    assert made.written is not None
    assert np.array_equal(made.written, np.broadcast_to([[True], [False]], (2, 64)))
    assert shaped(TrackedArray(np.ones((1, 1))), access).written is None


def test_a_dim_of_which_a_core_needs_all_is_not_divided() -> None:
    view = program(rows(A), rows(C))
    require_whole(view, ["out"], "a fold")
    with pytest.raises(UnsupportedError, match="a fold over dim mb, which is divided over cores") as caught:
        require_whole(view, ["out", "mb"], "a fold")
    assert caught.value.where == "7:neg"

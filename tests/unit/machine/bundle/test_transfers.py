"""Transfers between host and card: where elements land, what padding holds, and what goes there once."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.test import TestOp

from spyre_mlir.dialects.spyre.attributes import DeviceTensor
from spyre_mlir.hw.sticks import UNIT, StickLayout
from spyre_mlir.machine.arrays import HostArray
from spyre_mlir.machine.bundle import transfers
from spyre_mlir.machine.bundle.transfers import ResidentTensors, access_of, fetch, fills, send, send_image
from spyre_mlir.machine.faults import Place
from spyre_mlir.machine.memory.exact import ExactMemory
from spyre_mlir.machine.memory.frames import StridedAxis

DL16, FP32 = "SEN169_FP16", "IEEE_FP32"
BASE = 1280
Array = NDArray[Any]

# (3, 70) lies as [2 sticks, 3 rows, 64 lanes]; three rows of 128 lanes with 58 of padding.
ROWS = DeviceTensor((3, 70), DL16, StickLayout((1, 0), 1, (3, 128)))
# The same with a fourth row that is reserved.
MORE = DeviceTensor((3, 70), DL16, StickLayout((1, 0), 1, (4, 128)))
SPARSE = DeviceTensor((3,), DL16, StickLayout((0, UNIT), UNIT, (3,)))
FULL = DeviceTensor((2, 64), DL16, StickLayout((0, 1), 1, (2, 64)))
WIDENED = DeviceTensor((1, 64), FP32, StickLayout((1, 0), 1, (1, 64)), arrangement="dl16_to_fp32")
X = np.random.default_rng(1).standard_normal((3, 70))


def memory_of(sticks: int = 10) -> ExactMemory:
    """Memory in which every byte holds a 7 of the right format, so that what is written shows."""
    memory = ExactMemory()
    memory.add_region("all", BASE, sticks * 128)
    memory.store(BASE + 2 * np.arange(64 * sticks), np.full(64 * sticks, 7.0), DL16)
    return memory


def blank(sticks: int = 10) -> ExactMemory:
    memory = ExactMemory()
    memory.add_region("all", BASE, sticks * 128)
    return memory


def held(memory: ExactMemory, count: int, form: str = DL16) -> tuple[Array, Array]:
    """The first elements of memory, and which were written."""
    return memory.load(BASE + (2 if form == DL16 else 4) * np.arange(count), form)


def places(rows: int = 3, columns: int = 70, reserved: int = 3) -> Array:
    """Where each element of rows of two sticks lies, counted in lanes."""
    row, column = np.indices((rows, columns))
    return (column // 64 * reserved + row) * 64 + column % 64


def test_an_access_has_a_dim_per_dimension_and_padding_is_part_of_it() -> None:
    found = access_of(ROWS, BASE)
    assert found.axes == ((StridedAxis(3, 128),), (StridedAxis(2, 384), StridedAxis(64, 2)))
    assert (found.base, found.shape, found.format, found.place) == (BASE, (3, 128), DL16, Place())
    assert access_of(SPARSE, 0).axes == ((StridedAxis(3, 128),),)
    assert access_of(WIDENED, 0).axes == ((StridedAxis(1, 128),), (StridedAxis(2, 128), StridedAxis(32, 4)))


@pytest.mark.parametrize("tensor", [ROWS, MORE])
def test_elements_land_in_the_layout_and_padding_stays_as_it_was(tensor: DeviceTensor) -> None:
    memory, at = memory_of(), places(reserved=tensor.layout.extents[0])
    send(memory, tensor, BASE, HostArray(X), zero_padding=False)
    values, written = held(memory, 640)
    inside = np.zeros(tensor.sticks * 64, np.bool_)
    inside[at] = True
    assert np.array_equal(values[at], X)
    assert np.array_equal(written, np.concatenate([inside, np.ones(640 - inside.size, np.bool_)]))
    assert (values[tensor.sticks * 64 :] == 7).all()


@pytest.mark.parametrize("tensor", [ROWS, MORE])
def test_padding_becomes_zero_where_a_transfer_says_so(tensor: DeviceTensor) -> None:
    memory, at = memory_of(), places(reserved=tensor.layout.extents[0])
    send(memory, tensor, BASE, HostArray(X), zero_padding=True)
    values, written = held(memory, 640)
    wanted = np.full(640, 7.0)
    wanted[: tensor.sticks * 64] = 0.0
    wanted[at] = X
    assert written.all()
    assert np.array_equal(values, wanted)


def test_sparse_sticks_have_one_element_and_may_have_zeros_behind_it() -> None:
    memory = blank()
    send(memory, SPARSE, BASE, HostArray(np.asarray([1.0, 2.0, 3.0])), zero_padding=False)
    values, written = held(memory, 256)
    assert np.flatnonzero(written).tolist() == [0, 64, 128]
    assert values[[0, 64, 128]].tolist() == [1, 2, 3]
    memory = blank()
    send(memory, SPARSE, BASE, HostArray(np.asarray([1.0, 2.0, 3.0])), zero_padding=True)
    values, written = held(memory, 256)
    assert written.tolist() == [True] * 192 + [False] * 64
    assert np.flatnonzero(values).tolist() == [0, 64, 128]


def test_a_tensor_without_padding_fills_its_sticks() -> None:
    memory = memory_of()
    values = np.arange(128.0).reshape(2, 64)
    send(memory, FULL, BASE, HostArray(values), zero_padding=False)
    assert np.array_equal(held(memory, 129)[0], [*range(128), 7.0])


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("tensor", [ROWS, FULL])
def test_elements_without_a_value_have_none_on_the_card(tensor: DeviceTensor, zeros: bool) -> None:
    values = np.ones(tensor.shape)
    known = np.ones(tensor.shape, np.bool_)
    known[1, 5] = False
    values[1, 5] = np.nan
    memory = memory_of()
    send(memory, tensor, BASE, HostArray(values, known), zero_padding=zeros)
    found = fetch(memory, tensor, BASE)
    assert np.array_equal(found.values[known], values[known])
    if not zeros:
        assert found.defined is not None
        assert np.array_equal(found.defined, known)


def test_widened_sticks_hold_elements_in_their_order() -> None:
    """Element 8g + 4h + e of a row is in stick h at lane 4g + e."""
    x = np.arange(64.0)[None]
    memory = blank()
    send(memory, WIDENED, BASE, HostArray(x), zero_padding=False)
    values, written = held(memory, 64, FP32)
    assert written.all()
    for n in range(64):
        g, h, e = n // 8, n % 8 // 4, n % 4
        assert values[32 * h + 4 * g + e] == n
    assert np.array_equal(fetch(memory, WIDENED, BASE).values, x)


def test_widened_sticks_with_padding_and_with_gaps() -> None:
    narrow = DeviceTensor((1, 6), FP32, StickLayout((1, 0), 1, (1, 64)), arrangement="dl16_to_fp32")
    memory = blank()
    send(memory, narrow, BASE, HostArray(np.arange(1.0, 7.0)[None]), zero_padding=False)
    _, written = held(memory, 64, FP32)
    assert np.flatnonzero(written).tolist() == [0, 1, 2, 3, 32, 33]
    assert fetch(memory, narrow, BASE).values.tolist() == [[1, 2, 3, 4, 5, 6]]
    known = np.asarray([[True, True, True, True, False, True]])
    memory = blank()
    send(memory, narrow, BASE, HostArray(np.arange(1.0, 7.0)[None], known), zero_padding=False)
    assert np.flatnonzero(held(memory, 64, FP32)[1]).tolist() == [0, 1, 2, 3, 33]
    found = fetch(memory, narrow, BASE)
    assert found.defined is not None
    assert np.array_equal(found.defined, known)


def test_only_the_logical_elements_come_back() -> None:
    memory = memory_of()
    memory.store(BASE + 2 * places(), X, DL16)
    found = fetch(memory, ROWS, BASE)
    assert found.defined is None
    assert np.array_equal(found.values, X)
    assert found.values.flags.c_contiguous


def test_elements_that_were_never_written_come_back_as_such() -> None:
    memory, at = blank(), places()
    memory.store(BASE + 2 * at[:, :65], X[:, :65], DL16)
    found = fetch(memory, ROWS, BASE)
    assert found.defined is not None
    assert np.array_equal(found.defined, np.broadcast_to(np.arange(70) < 65, (3, 70)))
    assert np.array_equal(found.values[:, :65], X[:, :65])
    memory.store(BASE + 2 * at[:, 65:], X[:, 65:], DL16)
    assert fetch(memory, ROWS, BASE).defined is None  # only padding is unwritten


def test_rows_that_are_reserved_do_not_come_back() -> None:
    memory, tensor = blank(), DeviceTensor((1, 64), DL16, StickLayout((0, 1), 1, (2, 64)))
    memory.store(BASE + 128 + 2 * np.arange(64), np.ones(64), DL16)
    found = fetch(memory, tensor, BASE)
    assert found.defined is not None
    assert found.defined.tolist() == [[False] * 64]


def test_what_lies_in_sticks_already_is_sent_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = np.arange(128, dtype=np.uint16).reshape(2, 64)
    pieces: list[tuple[int, ...]] = []

    class Halves(ExactMemory):
        def put_codes(self, target: Array, codes: Array, format_name: str) -> None:
            assert format_name == DL16
            pieces.append(codes.shape)
            self.put(target, codes / 2, format_name)

    monkeypatch.setattr(transfers, "_PIECE", 1)
    memory = Halves()
    memory.add_region("all", BASE, 128 * 4)
    send_image(memory, FULL, BASE, codes, None)
    assert pieces == [(1, 64)] * 2
    values, written = held(memory, 192)
    assert np.array_equal(values[:128], np.arange(128.0) / 2)
    assert written.tolist() == [True] * 128 + [False] * 64
    known = codes % 3 > 0
    memory = blank()
    send_image(memory, FULL, BASE, codes, known)
    assert np.array_equal(held(memory, 128)[1], known.reshape(-1))


# --- weights that go to the card once


def fixed(*values: float) -> Array:
    """An array that cannot change."""
    made = np.asarray(values)
    made.setflags(write=False)
    return made


def test_an_array_that_cannot_change_is_restored() -> None:
    resident, memory, weight = ResidentTensors(), memory_of(), fixed(1.0, 2.0)
    region = memory.locate(BASE, BASE + 1)
    assert not resident.restore(("key",), weight, region)
    resident.remember(("key",), weight, region)
    assert region.shared
    other = blank()
    target = other.locate(BASE, BASE + 1)
    assert not resident.restore(("other",), weight, target)
    assert not resident.restore(("key",), fixed(1.0, 2.0), target)
    assert resident.restore(("key",), weight, target)
    assert (held(other, 640)[0] == 7).all()
    other.store(np.asarray([BASE]), np.asarray([8.0]), DL16)  # a copy is changed
    assert held(memory, 1)[0].tolist() == [7.0]


def test_an_array_that_may_change_is_sent_again() -> None:
    resident, region = ResidentTensors(), memory_of().locate(BASE, BASE + 1)
    number = fixed(1.0, 2.0)[0]  # no array, so nothing tells when it is gone
    for array in (np.asarray([1.0]), fixed(1.0, 2.0)[:1], number):
        resident.remember((), array, region)
        assert not region.shared
        assert not resident.restore((), array, region)


def test_what_was_sent_is_forgotten_with_its_array() -> None:
    resident, memory, weight = ResidentTensors(), memory_of(), fixed(1.0, 2.0)
    region = memory.locate(BASE, BASE + 1)
    resident.remember((), weight, region)
    cells = weakref.ref(region.cells)
    del memory, region
    assert cells() is not None
    del weight
    assert cells() is None


def test_a_weight_of_the_files_is_restored_by_its_key() -> None:
    resident, memory = ResidentTensors(), memory_of()
    region = memory.locate(BASE, BASE + 1)
    other = blank()
    target = other.locate(BASE, BASE + 1)
    assert not resident.restore_file((1,), target)
    resident.remember_file((1,), region)
    assert region.shared
    assert not resident.restore_file((2,), target)
    assert resident.restore_file((1,), target)
    assert (held(other, 640)[0] == 7).all()


def test_a_constant_is_made_once_and_counts_as_immutable() -> None:
    resident, region, op = ResidentTensors(), memory_of().locate(BASE, BASE + 1), TestOp()
    values = resident.constant(op, lambda: np.full((), 3.0))
    assert values.tolist() == 3.0
    assert resident.constant(op, lambda: np.full((), 4.0)) is values
    assert resident.constant(TestOp(), lambda: np.full(2, 4.0)).tolist() == [4.0, 4.0]
    resident.remember((), values, region)
    assert region.shared


@pytest.mark.parametrize(
    ("layout", "all_of_it"),
    [
        (StickLayout((0, 1), 1, (4, 64)), True),
        (StickLayout((0, 1), 1, (4, 128)), True),  # a tensor of fewer columns, with padding
        (StickLayout((0, UNIT), UNIT, (4,)), False),  # one lane of every stick
    ],
)
def test_whether_elements_fill_their_sticks(layout: StickLayout, all_of_it: bool) -> None:
    shape = (4, 64)[: len(layout.extents)]
    assert fills(DeviceTensor(shape, DL16, layout)) == all_of_it

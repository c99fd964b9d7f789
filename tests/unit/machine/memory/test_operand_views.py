"""Operands of descriptors as strided boxes: per core and all together, addresses by the published formula."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, Indirect, IndirectKind, OpClass, Operand
from spyre_mlir.errors import FaultKind, MachineFault, UnsupportedError
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.machine.faults import FaultLog, Place
from spyre_mlir.machine.memory.exact import ExactMemory
from spyre_mlir.machine.memory.frames import StridedAxis
from spyre_mlir.machine.memory.operand_views import OperandLayout, slice_table

DL16, FP32, INDEX, FP8 = "SEN169_FP16", "IEEE_FP32", "SENUINT32", "SEN143_FP8"
LX = SPYRE.lx_bytes
ROWS_AND_COLUMNS = (Dim("mb", 4, 2), Dim("out", 128, 2))


def operand(*starts: int, **other: Any) -> Operand:
    """(4, 128), laid out [2 sticks, 4 rows, 64 lanes]."""
    given = {"order": ("mb", "out"), "extents": (4, 128), "stick": "out", "format": DL16}
    return Operand(**{**given, "start": tuple(str(start) for start in starts), **other})


def view(dims: tuple[Dim, ...], *operands: Operand, kind: OpClass = OpClass.POINTWISE, **other: Any) -> Descriptor:
    return Descriptor(3, "neg", "sfp", kind, dims, operands, **other)


def layout(
    dims: tuple[Dim, ...], one: Operand, symbols: dict[int, int] | None = None, kind: OpClass = OpClass.POINTWISE
) -> OperandLayout:
    return OperandLayout(view(dims, one, kind=kind), 0, ExactMemory(), symbols)


# Core c has slice c % 2 of the rows (2 rows of 128 bytes) and c // 2 of the columns (a stick of 4 rows).
SPLIT = operand(0, 256, 512, 768)


def test_slices_of_every_core() -> None:
    assert slice_table(view(ROWS_AND_COLUMNS, SPLIT)).tolist() == [[0, 0], [1, 0], [0, 1], [1, 1]]


def test_what_one_core_touches() -> None:
    made = layout(ROWS_AND_COLUMNS, SPLIT)
    assert made.labels == {"mb", "out"}
    assert not made.starts.flags.writeable  # operands with the same text share them
    one = made.core(3)
    assert one.base == 768
    assert one.place == Place(op="3:neg", tensor="Tensor0", core=3)
    assert (one.shape, one.visible, one.format) == ((2, 64), (2, 64), DL16)
    row, column = np.indices((2, 64))
    assert np.array_equal(one.addresses(), 768 + 128 * row + 2 * column)


def test_what_all_cores_touch_is_the_whole_tensor() -> None:
    made = layout(ROWS_AND_COLUMNS, SPLIT)
    everything = made.whole(slice_table(made.view))
    assert everything is not None
    assert everything.shape == (4, 128)
    assert everything.place == Place(op="3:neg", tensor="Tensor0")
    row, column = np.indices((4, 128))
    assert np.array_equal(everything.addresses(), column // 64 * 512 + row * 128 + column % 64 * 2)
    assert everything.axes == (
        (StridedAxis(4, 128),),
        (StridedAxis(2, 512), StridedAxis(64, 2)),
    )  # slices and elements in one axis


def test_slices_that_are_apart_keep_an_axis_of_their_own() -> None:
    """The second slice of the rows begins 4096 bytes later."""
    made = layout((Dim("mb", 4, 2), Dim("out", 64)), operand(0, 4096, extents=(4, 64)))
    everything = made.whole(slice_table(made.view))
    assert everything is not None
    assert everything.axes[0] == (StridedAxis(2, 4096), StridedAxis(2, 128))


def test_starts_in_no_regular_steps_are_no_array() -> None:
    made = layout(ROWS_AND_COLUMNS, operand(0, 256, 512, 896))
    assert made.whole(slice_table(made.view)) is None


def test_the_origin_is_the_core_of_the_first_slices() -> None:
    rows = ({"mb": 1, "out": 0}, {"mb": 0, "out": 0}, {"mb": 1, "out": 1}, {"mb": 0, "out": 1})
    made = OperandLayout(view(ROWS_AND_COLUMNS, operand(256, 0, 768, 512), slices=rows), 0, ExactMemory())
    everything = made.whole(slice_table(made.view))
    assert everything is not None
    assert everything.base == 0
    assert everything.axes == ((StridedAxis(4, 128),), (StridedAxis(2, 512), StridedAxis(64, 2)))


def test_a_dim_that_an_operand_lacks_takes_no_step() -> None:
    bias = operand(0, 0, 128, 128, order=("out",), extents=(128,))
    made = layout(ROWS_AND_COLUMNS, bias)
    assert made.labels == {"out"}
    assert made.core(0).shape == (1, 64)
    assert made.core(0).axes == ((StridedAxis(1, 0),), (StridedAxis(1, 128), StridedAxis(64, 2)))
    everything = made.whole(slice_table(made.view))
    assert everything is not None
    assert (everything.shape, everything.axes[0]) == ((1, 128), (StridedAxis(1, 0),))


def test_a_copy_in_every_scratchpad_is_walked_slice_by_slice() -> None:
    bias = operand(128, 128, order=("out",), extents=(64,), component="lx")
    memory = ExactMemory()
    made = OperandLayout(view((Dim("mb", 4, 2), Dim("out", 64)), bias), 0, memory)
    assert [made.core(c).base for c in (0, 1)] == [memory.scratchpad_address(c, 128) for c in (0, 1)]
    everything = made.whole(slice_table(made.view))
    assert everything is not None
    assert everything.shape == (4, 64)
    assert everything.axes[0] == (StridedAxis(2, LX), StridedAxis(2, 0))


def test_a_sparse_operand_has_a_stick_per_element() -> None:
    column = layout((Dim("mb", 4), Dim("out", 64)), operand(0, order=("mb",), extents=(4,), stick=None))
    assert column.core(0).axes == ((StridedAxis(4, 128),), (StridedAxis(1, 0),))


def test_two_dims_in_one_stick() -> None:
    """FP8 weights: two of `in` innermost, 64 of `out` around them."""
    dims = (Dim("out", 128), Dim("in", 4))
    weight = operand(0, order=("in", "out"), extents=(4, 128), format=FP8, second_stick=("in", 2))
    out, into = np.indices((128, 4))
    wanted = out // 64 * 256 + into // 2 * 128 + out % 64 * 2 + into % 2
    assert np.array_equal(layout(dims, weight).core(0).addresses(), wanted)


def test_symbols_stand_for_start_addresses() -> None:
    dims = (Dim("mb", 4, 2), Dim("out", 64))
    one = operand(-1, -2, extents=(4, 64), symbolic=True)
    made = layout(dims, one, {-1: 1024, -2: 1280})
    assert [made.core(c).base for c in (0, 1)] == [1024, 1280]
    with pytest.raises(MachineFault, match="symbol -2 has no address") as caught:
        layout(dims, one, {-1: 1024})
    assert caught.value.kind == FaultKind.UNBOUND_SYMBOL
    assert caught.value.place == Place(op="3:neg", tensor="Tensor0", core=1)
    assert "sdsc_execute" in str(caught.value)
    with pytest.raises(MachineFault, match="symbol -1 has no address"):
        layout(dims, one)


@pytest.mark.parametrize(("symbolic", "start"), [(False, 2**63), (True, -1)])
def test_a_start_address_beyond_63_bits_is_refused(symbolic: bool, start: int) -> None:
    with pytest.raises(MachineFault, match="63 bits") as caught:
        layout((Dim("out", 64),), operand(start, order=("out",), extents=(64,), symbolic=symbolic), {-1: 2**63})
    assert (caught.value.kind, caught.value.place.tensor) == (FaultKind.OUT_OF_BOUNDS, "Tensor0")


def test_a_start_address_inside_of_a_stick_is_refused() -> None:
    with pytest.raises(MachineFault, match="start address 0x140 is not a multiple of 128") as caught:
        layout((Dim("mb", 4, 2), Dim("out", 64)), operand(0, 320))
    assert caught.value.kind == FaultKind.MISALIGNED
    assert caught.value.place == Place(op="3:neg", tensor="Tensor0", core=1, low=320)


@pytest.mark.parametrize(("start", "fits"), [(LX - 512, True), (LX - 384, False), (-128, False), (0, True)])
def test_an_operand_lies_inside_of_the_scratchpad(start: int, fits: bool) -> None:
    dims, one = (Dim("mb", 8, 2), Dim("out", 64)), operand(0, start, extents=(4, 64), component="lx")
    if fits:
        layout(dims, one)
        return
    with pytest.raises(MachineFault, match=f"do not fit the scratchpad of {LX:#x} bytes") as caught:
        layout(dims, one)
    assert caught.value.kind == FaultKind.LX_OVERFLOW
    assert caught.value.place == Place(op="3:neg", tensor="Tensor0", core=1, low=start, high=start + 512)


def spanning(sticks: int, split: int = 1, component: str = "hbm") -> OperandLayout:
    """Rows of a stick, `split` slices one after the other."""
    starts = [core * sticks // split * 128 for core in range(split)]
    dims = (Dim("mb", sticks, split), Dim("out", 64))
    return layout(dims, operand(*starts, extents=(sticks, 64), component=component))


def test_one_core_reaches_so_far_and_no_further() -> None:
    most = SPYRE.span_bytes // 128
    log = FaultLog()
    spanning(most).require_span(log)
    spanning(2 * most, 2).require_span(log)
    wide = spanning(most + 1)
    with pytest.raises(MachineFault, match=f"spans {SPYRE.span_bytes + 128} bytes .* {SPYRE.span_bytes}") as caught:
        wide.require_span(log)
    assert caught.value.kind == FaultKind.SPAN
    assert caught.value.place == Place(op="3:neg", tensor="Tensor0", core=0, low=0, high=SPYRE.span_bytes + 128)
    log = FaultLog("collect")
    wide.require_span(log)
    assert [met.kind for met in log.faults] == [FaultKind.SPAN]


def test_a_scratchpad_is_all_in_reach() -> None:
    one = operand(0, order=("out",), extents=(64,), component="lx")
    made = layout((Dim("out", 64),), one)
    made.operand = replace(one, extents=(SPYRE.span_bytes,))
    made.require_span(FaultLog())


def test_a_core_s_elements_are_whole_sticks() -> None:
    with pytest.raises(
        MachineFault, match="a core's 96 elements of stick dim out are not whole sticks of 64"
    ) as caught:
        layout((Dim("out", 192, 2),), operand(0, 256, order=("out",), extents=(192,))).core(0)
    assert caught.value.kind == FaultKind.MISALIGNED
    with pytest.raises(MachineFault, match="not whole sticks"):
        layout((Dim("out", 96),), operand(0, order=("out",), extents=(96,))).core(0)


@pytest.mark.parametrize("kind", [None, IndirectKind.INDEX])
def test_less_than_a_stick_is_walked_lane_by_lane(kind: IndirectKind | None) -> None:
    link = None if kind is None else Indirect(kind, 0)
    made = layout((Dim("out", 20),), operand(0, order=("out",), extents=(20,), format=FP32, indirect=link))
    assert made.core(0).axes == ((StridedAxis(20, 4),),)


def test_an_index_tensor_alone_ends_inside_a_stick() -> None:
    link = Indirect(IndirectKind.INDEX, 0)
    made = layout((Dim("mb", 40),), operand(0, order=("mb",), extents=(40,), stick="mb", format=INDEX, indirect=link))
    assert made.core(0).axes == ((StridedAxis(40, 4),),)
    # Behind another dim its sticks are apart.
    apart = operand(0, order=("x", "mb"), extents=(2, 40), stick="mb", format=INDEX, indirect=link)
    with pytest.raises(MachineFault, match="not whole sticks"):
        layout((Dim("x", 2), Dim("mb", 40)), apart).core(0)
    halves = operand(0, 128, order=("mb",), extents=(80,), stick="mb", format=INDEX, indirect=link)
    with pytest.raises(MachineFault, match="not whole sticks"):
        layout((Dim("mb", 80, 2),), halves).core(0)


def test_a_gathered_table_has_no_address_along_what_the_index_picks() -> None:
    dims = (Dim("mb", 64), Dim("out", 64))
    index = operand(0, order=("mb",), extents=(64,), stick="mb", format=INDEX, indirect=Indirect(IndirectKind.INDEX, 1))
    table = operand(1 << 20, order=("out", "mb"), extents=(64, 64), indirect=Indirect(IndirectKind.VALUE, 0))
    gather = view(dims, index, table, operand(1 << 21, extents=(64, 64)), kind=OpClass.GATHER)
    assert OperandLayout(gather, 1, ExactMemory()).labels == {"out"}
    assert OperandLayout(gather, 0, ExactMemory()).labels == {"mb"}
    assert OperandLayout(gather, 1, ExactMemory()).core(0).axes[0] == (StridedAxis(1, 0),)


def test_a_dim_runs_no_further_than_the_buffer() -> None:
    with pytest.raises(MachineFault, match="dim mb runs over 8 elements of a buffer that holds 4") as caught:
        layout((Dim("mb", 8, 2), Dim("out", 128)), operand(0, 512)).core(0)
    assert (caught.value.kind, caught.value.place.tensor) == (FaultKind.OUT_OF_BOUNDS, "Tensor0")
    # A scratchpad holds one core's slice, and a back gap costs nothing.
    one = operand(0, 0, component="lx")
    assert layout((Dim("mb", 8, 2), Dim("out", 128)), one).core(0).visible == (4, 128)
    assert layout((Dim("mb", 3), Dim("out", 128)), operand(0)).core(0).axes[1] == (
        StridedAxis(2, 512),
        StridedAxis(64, 2),
    )


def test_a_restickify_may_want_more_than_there_is() -> None:
    dims = (Dim("mb", 8), Dim("out", 256))
    short = layout(dims, operand(0), kind=OpClass.RESTICKIFY).core(0)
    assert (short.visible, short.shape) == ((4, 128), (8, 256))
    # Of a stick that is begun all lanes are there.
    begun = layout(dims, operand(0, extents=(4, 100)), kind=OpClass.RESTICKIFY).core(0)
    assert begun.visible == (4, 128)
    with pytest.raises(UnsupportedError, match="splits its padded dim mb") as caught:
        layout((Dim("mb", 8, 2), Dim("out", 128)), operand(0, 512), kind=OpClass.RESTICKIFY).core(0)
    assert caught.value.where == "op 3:neg, Tensor0"

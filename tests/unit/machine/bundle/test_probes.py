"""Watching a run: what launches and ops leave behind, without padding, and how it is found by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import i64
from xdsl.dialects.test import TestOp

from spyre_mlir.dialects.sdscbundle import SdscExecuteOp
from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, OpClass, Operand
from spyre_mlir.errors import InputError
from spyre_mlir.machine.arrays import HostArray
from spyre_mlir.machine.bundle.probes import (
    Launched,
    Observed,
    Recorder,
    logical_values,
    observe_function,
    observe_program,
    operand_labels,
    operand_values,
    pick,
)
from spyre_mlir.machine.levels.buffers import DeviceBuffer
from spyre_mlir.machine.memory.exact import ExactMemory
from spyre_mlir.machine.options import MachineOptions
from tests.unit.machine.bundle.host_programs import negation, numbers, program
from tests.unit.machine.modules import device, main, parse, send
from tests.unit.machine.modules import program as kernel_program

Array = NDArray[Any]
DL16, FP32 = "SEN169_FP16", "IEEE_FP32"

# --- operands of launches

X = np.arange(512.0).reshape(4, 128)
ROW, COLUMN = np.indices((4, 128))
AT = COLUMN // 64 * 512 + ROW * 128 + COLUMN % 64 * 2
DIMS = (Dim("mb", 4, 2), Dim("out", 128, 2))
MATRIX = Operand(("mb", "out"), (4, 128), "out", DL16, ("0", "256", "512", "768"))


def view(*operands: Operand, dims: tuple[Dim, ...] = DIMS) -> Descriptor:
    return Descriptor(0, "neg", "sfp", OpClass.POINTWISE, dims, operands)


def memory_of(known: Array | None = None) -> ExactMemory:
    """Eight sticks, of which some elements of X are written."""
    memory = ExactMemory()
    memory.add_region("a", 0, 1024)
    inside = np.ones((4, 128), np.bool_) if known is None else known
    memory.store(AT[inside], X[inside], DL16)
    return memory


def test_an_operand_is_put_together_from_the_slices_of_all_cores() -> None:
    assert np.array_equal(operand_values(view(MATRIX, MATRIX), 1, memory_of()), X)
    assert operand_labels(view(MATRIX), 0) == ("mb", "out")


def test_slices_may_be_in_any_order() -> None:
    rows = tuple({"mb": 1 - core % 2, "out": 1 - core // 2} for core in range(4))
    turned = replace(MATRIX, start=MATRIX.start[::-1])
    assert np.array_equal(operand_values(replace(view(turned), slices=rows), 0, memory_of()), X)


def test_what_nobody_wrote_is_nan() -> None:
    known = COLUMN % 64 < 50
    found = operand_values(view(MATRIX), 0, memory_of(known))
    assert np.array_equal(found, np.where(known, X, np.nan), equal_nan=True)


def test_slices_outside_of_memory_or_of_another_format_are_nan() -> None:
    memory = memory_of()
    memory.store(256 + 4 * np.arange(32), np.ones(32), FP32)
    far = replace(MATRIX, start=("0", "256", "8192", "768"))
    found = operand_values(view(far), 0, memory)
    lost = (COLUMN < 64) & (ROW >= 2) | (COLUMN >= 64) & (ROW < 2)
    assert np.array_equal(found, np.where(lost, np.nan, X), equal_nan=True)


def test_an_operand_has_an_axis_per_dim_that_it_has() -> None:
    bias = Operand(("out",), (128,), "out", DL16, ("0", "0", "512", "512"))
    assert np.array_equal(operand_values(view(bias), 0, memory_of()), X[0])
    assert operand_labels(view(MATRIX, bias), 1) == ("out",)
    turned = Operand(("out", "mb"), (128, 4), "out", DL16, MATRIX.start)
    assert operand_labels(view(turned), 0) == ("mb", "out")  # in the order of the operation


def test_a_buffer_that_falls_short_is_nan_behind_its_end() -> None:
    short = Operand(("mb", "out"), (4, 128), "out", DL16, ("0",))
    more = replace(view(short, dims=(Dim("mb", 6), Dim("out", 128))), op_class=OpClass.RESTICKIFY)
    found = operand_values(more, 0, memory_of())
    assert np.array_equal(found[:4], X)
    assert np.isnan(found[4:]).all()


def test_starts_may_be_symbols() -> None:
    bound = replace(MATRIX, start=("-1", "-2", "-3", "-4"), symbolic=True)
    symbols = {-1: 0, -2: 256, -3: 512, -4: 768}
    assert np.array_equal(operand_values(view(bound), 0, memory_of(), symbols), X)


# --- results of launches as tensors


def kernel(out: str, type_: str, shape: Sequence[int]) -> KernelOp:
    source = device((3, 70), 1)
    body = send("a", (3, 70), source) + (
        f'spyre.kernel.compute "neg" [m = 3, n = 70] ins(%da[m, n] : {source}) outs(%o[{out}] : {type_})'
    )
    text = kernel_program({"a": (3, 70)}, body, type_, shape)
    return next(op for op in parse(text).walk() if isinstance(op, KernelOp))


LOOPS = {"mb": "m", "out": "n"}


def test_a_result_is_a_tensor_without_padding() -> None:
    values = np.arange(3.0 * 128).reshape(3, 128)
    op = kernel("m, n", device((3, 70), 1), (3, 70))
    assert np.array_equal(logical_values(values, ["mb", "out"], op, LOOPS), values[:, :70])
    assert np.array_equal(logical_values(values.T, ["out", "mb"], op, LOOPS), values[:, :70])


def test_a_result_in_a_part_of_a_tensor_has_nan_around_it() -> None:
    """Written to rows 2 to 4 of five, behind column 64; what would lie outside of the tensor is left out."""
    values = np.arange(3.0 * 128).reshape(3, 128)
    found = logical_values(values, ["mb", "out"], kernel("m + 2, n + 64", device((5, 134), 1), (5, 134)), LOOPS)
    wanted = np.full((5, 134), np.nan)
    wanted[2:, 64:] = values[:, :70]
    assert np.array_equal(found, wanted, equal_nan=True)


def test_an_axis_that_is_no_loop_has_one_element() -> None:
    """A label that stands for no loop, as one of a dimension of one element."""
    values = np.arange(3.0 * 2 * 128).reshape(3, 2, 128)
    op = kernel("m, n", device((3, 70), 1), (3, 70))
    assert np.array_equal(logical_values(values, ["mb", "x", "out"], op, LOOPS), values[:, 0, :70])


def test_a_single_number_is_an_array_without_axes() -> None:
    body = send("a", (), device((), None)) + (
        f'spyre.kernel.compute "neg" [] ins(%da[] : {device((), None)}) outs(%o[] : {device((), None)})'
    )
    text = kernel_program({"a": ()}, body, device((), None), ())
    op = next(op for op in parse(text).walk() if isinstance(op, KernelOp))
    found = logical_values(np.asarray([[7.0, 8.0]]), ["mb", "out"], op, {})
    assert (found.shape, found.item()) == ((), 7.0)


# --- launches as they ran


def test_every_launch_of_a_program_is_observed() -> None:
    (one,) = observe_program(program(), [numbers()], MachineOptions())
    assert np.array_equal(one.values, -numbers())
    assert (one.file, one.labels) == ("sdsc_0.json", ("mb", "out"))
    assert one.symbols == {-1: 0, -2: 256, -3: 512, -4: 768}
    assert one.view.op_func == "neg"


def test_a_launch_without_its_padding() -> None:
    values = np.arange(24.0).reshape(4, 6)
    one = Launched(SdscExecuteOp("sdsc_3.json"), negation("0", "0"), {}, values)
    assert np.array_equal(one.cut({"mb": 3, "out": 5}), values[:3, :5])
    assert np.array_equal(one.cut({"out": 5}), values[:, :5])
    assert np.array_equal(one.cut({"mb": 0}), values[0])
    seen = one.observed({"mb": 3})
    assert (seen.op, seen.name, seen.function, seen.called) == (one.op, "sdsc_3", "neg", "sdscbundle.sdsc_execute neg")
    assert np.array_equal(seen.values, values[:3])


# --- ops as they ran


def test_every_op_of_the_kernel_level_is_observed() -> None:
    """Three rows of 70: the padding of what a kernel leaves is cut."""
    type_ = device((3, 70), 1)
    kernel_text = f'spyre.kernel.compute "neg" [m = 3, n = 70] ins(%da[m, n] : {type_}) outs(%o[m, n] : {type_})'
    text = kernel_program({"a": (3, 70)}, send("a", (3, 70), type_) + kernel_text, type_, (3, 70))
    x = np.arange(210.0).reshape(3, 70)
    seen = observe_function(parse(text), [x])
    assert [(one.called, one.name) for one in seen] == [
        ("spyre.kernel.compute neg", "%o"),
        ("spyre.kernel.from_device", "%out"),
    ]
    for one in seen:
        assert np.array_equal(one.values, -x)


def left_by(buffer: DeviceBuffer) -> Array:
    """What a recorder sees of a kernel that wrote a buffer."""
    op = kernel("m, n", device((3, 70), 1), (3, 70))
    recorder = Recorder({op.output: "o"})
    recorder.will_interpret_op(op, (None, buffer))
    recorder.did_interpret_op(op, ())
    (one,) = recorder.seen
    assert (one.op, one.name) == (op, "%o")
    return one.values


def test_what_a_kernel_did_not_write_is_nan() -> None:
    """Six sticks, [3 rows, 2 sticks, 64 lanes]; row 1 is written up to column 65."""
    tensor = kernel("m, n", device((3, 70), 1), (3, 70)).tensors[-1]
    values, known = np.arange(6 * 64.0).reshape(6, 64), np.zeros((6, 64), np.bool_)
    known[2], known[3, :2] = True, True
    wanted = np.full((3, 70), np.nan)
    wanted[1, :66] = np.arange(128, 194)
    assert np.array_equal(left_by(DeviceBuffer(tensor, values, known)), wanted, equal_nan=True)


@pytest.mark.parametrize("sticks", [4, 5])
def test_a_tile_behind_the_start_of_its_tensor_has_less_memory(sticks: int) -> None:
    """Of six sticks it has so many; the last of them is columns 64 to 69 of row 2."""
    tensor = kernel("m, n", device((3, 70), 1), (3, 70)).tensors[-1]
    values = np.arange(sticks * 64.0).reshape(sticks, 64)
    lane = np.arange(3)[:, None] * 128 + np.arange(70)
    wanted = np.where(lane < sticks * 64, lane, np.nan)
    found = left_by(DeviceBuffer(tensor, values, np.ones((sticks, 64), np.bool_)))
    assert np.array_equal(found, wanted, equal_nan=True)


def test_results_that_are_tensors_are_kept_and_others_are_not() -> None:
    op = TestOp(result_types=[i64, i64, i64])
    recorder, whole = Recorder({op.results[0]: "a"}), np.asarray([1, 2])
    part = HostArray(np.asarray([1, 2]), np.asarray([True, False]))
    recorder.will_interpret_op(op, ())
    recorder.did_interpret_op(op, (HostArray(whole), 7, part))
    first, second = recorder.seen
    assert [one.name for one in (first, second)] == ["%a", "%"]
    whole[0] = 9
    assert first.values.tolist() == [1, 2]
    assert np.array_equal(second.values, [1.0, np.nan], equal_nan=True)


def test_what_was_observed_is_a_copy() -> None:
    """The second kernel writes over the first one's result."""
    type_ = device((3, 64), 1)
    kernels = "".join(
        f'spyre.kernel.compute "{name}" [m = 3, n = 64] ins(%{of}[m, n] : {type_}) outs(%o[m, n] : {type_})\n'
        for name, of in (("neg", "da"), ("neg", "o"))
    )
    text = kernel_program({"a": (3, 64)}, send("a", (3, 64), type_) + kernels, type_, (3, 64))
    x = np.arange(192.0).reshape(3, 64)
    first, second, back = observe_function(parse(text), [x])
    assert np.array_equal(first.values, -x)
    assert np.array_equal(second.values, x)
    assert np.array_equal(back.values, x)


def test_an_op_of_the_model_is_observed_with_its_place() -> None:
    tensor = "tensor<2xf32>"
    text = main(f"%x: {tensor}", f'%out = aten.neg(%x) : ({tensor}) -> {tensor} loc("/home/me/model.py":4:2)', tensor)
    (one,) = observe_function(parse(text), [np.asarray([1.0, 2.0], np.float32)])
    assert (one.called, one.name, one.values.tolist()) == ("aten.neg", "%out", [-1.0, -2.0])
    assert (one.source.file, one.source.line) == ("/home/me/model.py", 4)


def test_a_host_step_is_run_by_who_can() -> None:
    tensor = "tensor<2xf32>"
    step = f'%out = spyre.loop.host "aten.exp" because "no" (%x) {{self = #aten.operands<1>}} : ({tensor}) -> {tensor}'
    seen = observe_function(
        parse(main(f"%x: {tensor}", step, tensor)), [np.zeros(2)], lambda call, operands, wide: [operands[0] + 5]
    )
    assert [one.values.tolist() for one in seen] == [[5.0, 5.0]]


# --- by name


def named(*names: str) -> list[Observed]:
    return [Observed(TestOp(), name, np.asarray(number)) for number, name in enumerate(names)]


def test_the_last_of_a_name_is_picked() -> None:
    seen = named("%a", "%b", "%a", "sdsc_0")
    assert [int(pick(seen, name).values) for name in ("a", "%a", "b", "sdsc_0")] == [2, 2, 1, 3]


def test_a_name_that_nothing_has() -> None:
    with pytest.raises(InputError, match="no value is called 'c'") as caught:
        pick(named("%a", "%b", "%a"), "c")
    assert caught.value.hint == "name one of %a, %b"
    with pytest.raises(InputError) as caught:
        pick([], "c")
    assert caught.value.hint == "the program has none"
    for count, more in ((20, ""), (21, " and 1 more"), (25, " and 5 more")):
        with pytest.raises(InputError) as caught:
            pick(named(*(f"%v{n}" for n in range(count))), "c")
        assert caught.value.hint == "name one of " + ", ".join(f"%v{n}" for n in range(20)) + more

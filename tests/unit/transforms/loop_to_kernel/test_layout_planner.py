"""Plans: which buffers a tensor gets, and the kernels between them. A stick is 64 numbers of DL16, or 32 of float32."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import FloatAttr, f16, f32, f64, i1, i8, i32, i64

from spyre_mlir.dialects.spyre.attributes import IterDim
from spyre_mlir.hw.sticks import UNIT, LinearExpr
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.transforms.loop_to_kernel.buffers import Define
from spyre_mlir.transforms.loop_to_kernel.device_forms import DeviceForms
from spyre_mlir.transforms.loop_to_kernel.layout_planner import LayoutPlanner, block_of, lanes_of
from tests.unit.machine.modules import numbers
from tests.unit.transforms.loop_to_kernel.planning import defined, functions_of, lowered, names, sent, steps, tensor

DL16, FP32, FP8 = "SEN169_FP16", "IEEE_FP32", "SEN143_FP8"
A, B = LinearExpr.of("a"), LinearExpr.of("b")
SPACE = (IterDim("a", 33), IterDim("b", 70))


def test_lanes_and_blocks() -> None:
    assert [lanes_of(f) for f in (DL16, FP32)] == [64, 32]
    assert [block_of(f) for f in (DL16, FP32)] == [64, 64]  # widened sticks belong together by two


def test_a_tensor_has_the_format_of_its_elements() -> None:
    p = LayoutPlanner()
    assert [p.of(tensor(4, element=e)).format for e in (f32, f16, i1)] == [DL16] * 3
    assert LayoutPlanner(keep_float32=True).of(tensor(4)).format == FP32
    value = sent(p, 4, 5, prepared=True)
    one = p.of(value)
    assert p.of(value) is one and (one.shape, one.host, one.prepared) == ((4, 5), value, True)
    assert p.of(tensor(4)).host is None


def test_where_layouts_cost_nothing() -> None:
    p = LayoutPlanner()
    weight, given, made = p.of(sent(p, 4, prepared=True)), p.of(sent(p, 4)), p.of(tensor(4))
    known = DeviceForms((4,), DL16, constant=FloatAttr(1.0, f64))
    assert [v.free_layout for v in (weight, given, made, known)] == [True, True, False, True]
    assert [v.provided for v in (weight, given, made, known)] == [True, True, False, True]
    p.buffer(weight, 0)
    p.buffer(given, 0)
    assert [v.free_layout for v in (weight, given)] == [True, False]


def test_a_layout_is_made_once() -> None:
    p = LayoutPlanner()
    versions = p.of(sent(p, 33, 70))
    one = p.buffer(versions, 1)
    assert p.buffer(versions, 1) is one and versions.find(1) is one and versions.find(0) is None
    assert one.layout.extents == (33, 128) and not one.zero_padding and one.host is versions.host
    assert defined(p) == [((33, 70), DL16, 1)]


def test_what_is_prepared_is_sent_in_every_layout() -> None:
    p = LayoutPlanner()
    versions = p.of(sent(p, 33, 70, prepared=True))
    both = [p.buffer(versions, stick) for stick in (1, 0)]
    assert names(p) == [] and all(b.zero_padding for b in both)


def test_an_input_is_sent_once_and_laid_out_again_on_the_device() -> None:
    p = LayoutPlanner()
    versions = p.of(sent(p, 33, 70))
    first, second = p.buffer(versions, 1), p.buffer(versions, 0)
    (step,) = steps(p)
    assert step.function == "restickify" and step.inputs[0][0] is first and step.output[0] is second
    assert [(d.name, d.extent) for d in step.space] == [("d0", 64), ("d1", 128)]
    assert first.layout.extents == (64, 128) and second.layout.extents == (64, 128)
    # A sparse form is sent once more instead: it is 64 times as large.
    p.buffer(versions, UNIT)
    assert names(p) == ["restickify"]


def test_what_is_computed_is_laid_out_again_also_sparsely() -> None:
    p = LayoutPlanner()
    versions = p.of(tensor(33))
    versions.buffers.append(p.fresh((33,), DL16, 0))
    made = p.buffer(versions, UNIT)
    (step,) = steps(p)
    assert step.function == "restickify" and made.layout.stick == UNIT
    assert [(d.name, d.extent) for d in step.space] == [("d0", 64), ("u", 64)]
    assert versions.buffers[0].layout.unit_extent == 64


def test_float32_is_laid_out_again_between_two_copies() -> None:
    p = LayoutPlanner(keep_float32=True)
    versions = p.of(tensor(64, 128))
    versions.buffers.append(p.fresh((64, 128), FP32, 1))
    p.buffer(versions, 0)
    assert names(p) == ["identity", "restickify", "identity"]
    sparse = LayoutPlanner(keep_float32=True)
    versions = sparse.of(tensor(64, 128))
    versions.buffers.append(sparse.fresh((64, 128), FP32, 1))
    sparse.buffer(versions, UNIT)
    assert names(sparse) == ["restickify", "identity"]


def test_equal_constants_are_one() -> None:
    p = LayoutPlanner()
    assert p.number(1.0) is p.number(1.0)
    assert len({id(b) for b in (p.number(1.0), p.number(2.0), p.number(1.0, FP32))}) == 3
    one = p.number(1.0)
    assert one.zero_padding and one.shape == () and one.constant == FloatAttr(1.0, f64)
    versions = DeviceForms((70,), DL16, constant=FloatAttr(3.0, f64))
    assert p.buffer(versions, 0).constant == FloatAttr(3.0, f64) and names(p) == []


def test_the_host_sends_what_it_has_in_the_format_that_is_asked_for() -> None:
    p = LayoutPlanner()
    value = sent(p, 4, 64, prepared=True)
    home, wide = p.of(value), p.form(value, FP32)
    assert p.form(value, DL16) is home and p.form(value, FP32) is wide
    assert (wide.host, wide.prepared, wide.origin) == (value, True, None)
    assert p.buffer(wide, 1).zero_padding


def test_what_is_computed_is_converted() -> None:
    p = LayoutPlanner()
    value = tensor(4, 64)
    home = p.of(value)
    home.buffers.append(p.fresh((4, 64), DL16, 1))
    wide = p.form(value, FP32)
    assert wide.origin is home
    made = p.buffer(wide, 1)
    (step,) = steps(p)
    assert step.function == "convert" and made.format == FP32 and p.some(wide) is made


def test_integers_are_sent_as_dl16_only_where_it_has_them_all() -> None:
    for element, provided in ((i8, True), (i64, False)):
        p = LayoutPlanner()
        value = sent(p, 4, 64, element=element)
        p.of(value).format = FP32
        found = p.form(value, DL16)
        assert (found.host is value) == provided and (found.origin is None) == provided
        assert p.form(value, DL16, saturate=True).saturate
        assert p.buffer(p.form(value, DL16, saturate=True), 1).saturate


def test_converted_integers_are_converted_in_every_format() -> None:
    p = LayoutPlanner()
    value, computed = sent(p, 4, 64, element=i64), tensor(4, 64)
    p.versions[value] = p.of(value).sent_as(FP32, i32).sent_as(FP32, f32)
    assert p.buffer(p.form(value, FP32), 1).elements == (i32, f32)
    home = p.of(tensor(4, 64))
    home.format = FP32
    home.buffers.append(p.fresh((4, 64), FP32, 1))
    p.versions[computed] = DeviceForms((4, 64), DL16, origin=home, elements=(f32,))
    p.buffer(p.form(computed, FP32), 1)
    (step,) = steps(p)
    assert (step.function, step.element) == ("identity", f32)


def test_dl16_is_laid_out_again_before_it_is_widened() -> None:
    p = LayoutPlanner()
    value = tensor(64, 128)
    home = p.of(value)
    home.buffers.append(p.fresh((64, 128), DL16, 1))
    p.buffer(p.form(value, FP32), 0)
    assert names(p) == ["restickify", "convert"]


def test_float32_is_laid_out_again_after_it_is_narrowed() -> None:
    p = LayoutPlanner(keep_float32=True)
    value = tensor(64, 128)
    p.of(value).buffers.append(p.fresh((64, 128), FP32, 1))
    p.buffer(p.form(value, DL16), 0)
    assert names(p) == ["convert", "restickify"]
    again = LayoutPlanner(keep_float32=True)
    value = tensor(64, 128)
    again.of(value).buffers.append(again.fresh((64, 128), FP32, 0))
    again.buffer(again.form(value, DL16), 0)
    assert names(again) == ["convert"]


def test_a_converted_tensor_goes_back_to_what_it_was() -> None:
    p = LayoutPlanner()
    value = tensor(4, 64)
    home = p.of(value)
    home.buffers.append(p.fresh((4, 64), DL16, 1))
    p.versions[value] = wide = p.form(value, FP32)
    assert wide.origin is home and p.form(value, DL16) is home


def test_few_elements_leave_no_stick_of_float32_empty() -> None:
    """Of 64 elements, 4 go to one stick and 4 to the next in turn: up to 4 behind whole blocks leave one empty."""
    for extent, filled in ((4, True), (5, False), (64, False), (68, True), (69, False)):
        p = LayoutPlanner()
        value = tensor(2, extent)
        p.of(value).buffers.append(p.fresh((2, extent), DL16, 1))
        made = p.buffer(p.form(value, FP32), 1)
        assert names(p) == (["convert", "where3"] if filled else ["convert"])
        assert made.filled == ({1: 0.0} if filled else {})


def test_eight_bit_floats_are_two_sticks_made_one() -> None:
    p = LayoutPlanner()
    value = sent(p, 4, 70)
    made = p.rounded(value)
    (step,) = steps(p)
    assert step.function == "convert" and made.format == step.output[0].format == FP8
    assert step.inputs[0][0].layout.extents[1] == step.output[0].layout.extents[1] == 128
    p.versions[value] = made
    back = p.form(value, FP32)
    assert back.origin is not None and back.origin.format == DL16 and back.origin.origin is made


def test_some_buffer_is_the_first_or_has_the_last_dimension_in_the_lanes() -> None:
    p = LayoutPlanner()
    assert p.some(p.of(sent(p, 33, 70))).layout.stick == 1
    assert p.some(p.of(sent(p))).layout.stick == UNIT
    versions = p.of(sent(p, 33, 70))
    first = p.buffer(versions, 0)
    assert p.some(versions) is first


def test_an_operand_in_the_layout_that_a_lane_wants() -> None:
    p = LayoutPlanner()
    versions = p.of(sent(p, 33, 70))
    (buffer, index) = p.operand(versions, (A, B), "b", SPACE)
    assert buffer.layout.stick == 1 and index == (A, B) and names(p) == []
    assert p.operand(versions, (A, B), None, SPACE)[0].layout.stick == UNIT


def test_an_operand_that_no_layout_serves_is_copied() -> None:
    """From the second element on: no stick begins there."""
    p = LayoutPlanner()
    versions = p.of(sent(p, 34, 70))
    buffer, index = p.operand(versions, (A.shifted(1), B), "a", SPACE)
    assert names(p) == ["identity", "restickify"]
    copy = steps(p)[0]
    assert copy.inputs[0][1] == (A.shifted(1), B) and copy.output[1] == (A, B) == index
    assert copy.output[0].shape == (33, 70) and copy.output[0].layout.stick == 1  # b needs no laying out
    assert buffer.layout.stick == 0


def test_a_copy_is_read_with_the_lane_that_was_asked_for() -> None:
    p = LayoutPlanner()
    versions = p.of(sent(p, 33, 71))
    buffer, index = p.operand(versions, (A, B.shifted(1)), "b", SPACE)
    assert index == (A, B) and buffer.layout.stick == 1 and buffer.shape == (33, 70)


def test_a_copy_keeps_the_longest_loop_in_its_lanes_unless_one_is_there() -> None:
    for first, stick in ((None, 1), (0, 0)):
        p = LayoutPlanner()
        versions = p.of(sent(p, 33, 70))
        if first is not None:
            p.buffer(versions, first)
        copied, own = p.copied(versions, (A, B), SPACE)
        assert copied.buffers[0].layout.stick == stick and own == (A, B) and names(p) == ["identity"]
    p = LayoutPlanner()
    versions = p.of(sent(p, 140))
    copied, own = p.copied(versions, (LinearExpr(1, (("b", 2),)),), SPACE)
    assert copied.shape == (70,) and copied.buffers[0].layout.stick == UNIT and own == (B,)


def test_a_number_behind_the_elements() -> None:
    p = LayoutPlanner()
    buffer = p.fresh((5, 70), DL16, 1)
    use = (buffer, (A, B))
    assert p.filled_tail(use, 1, 128, 7.0) == use and names(p) == []
    assert p.filled_tail(use, 1, 70, 7.0) == use
    (step,) = steps(p)
    mask, kept, number = (b for b, _ in step.inputs)
    assert step.function == "where3" and step.output[0] is kept is buffer and buffer.filled == {1: 7.0}
    assert (
        mask.shape == (64,) and str(mask.constant) == "#spyre.first_ones<6>" and number.constant == FloatAttr(7.0, f64)
    )
    assert step.inputs[1][1] == step.output[1] == (LinearExpr.of("d0"), LinearExpr(64, (("d1", 1),)))
    assert step.inputs[0][1] == (LinearExpr.of("d1"),)
    assert [(d.name, d.extent) for d in step.space] == [("d0", 5), ("d1", 64)]
    p.filled_tail(use, 1, 70, 7.0)
    assert len(steps(p)) == 1
    p.filled_tail(use, 1, 70, 0.0)
    assert len(steps(p)) == 2


def test_no_room_for_more_padding_makes_a_copy() -> None:
    p = LayoutPlanner()
    buffer = p.fresh((100, 64), DL16, 1)
    assert p.with_room(buffer, {0: 64}) is buffer and buffer.layout.extents == (128, 64)
    narrow = p.fresh((100, 64), DL16, 1)
    narrow.pad(0, 30)
    copy = p.with_room(narrow, {0: 64})
    assert copy is not narrow and copy.layout.extents == (128, 64) and names(p) == ["identity"]


def test_steps_pad_their_operands_and_say_what_they_are_told() -> None:
    p = LayoutPlanner()
    buffers = [p.fresh((100, 64), DL16, 1) for _ in range(2)]
    index = (LinearExpr(0, (("a", 3),)), B)
    p.step("exp", SPACE, [(buffers[0], index)], (buffers[1], (A, B)), integers=True, constants={"c": 1.0}, element=f32)
    (step,) = steps(p)
    assert (step.integers, step.constants, step.element, step.axis) == (True, {"c": 1.0}, f32, None)
    assert [type(i) for i in p.items[:2]] == [Define, Define]


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(("rows", "columns"), [(33, 70), (64, 128), (3, 68)])
def test_a_transposition_on_the_device(rows: int, columns: int, keep: bool) -> None:
    x = numbers(rows, columns)
    fold = f"sum.dim_IntList(%2) {{dim = array<i64: 1>, keepdim = false}} : (tensor<{columns}x{rows}xf32>)"
    fold += f" -> tensor<{columns}xf32>"
    module = lowered(
        f"%x: tensor<{rows}x{columns}xf32>",
        [
            f"neg(%x) : (tensor<{rows}x{columns}xf32>) -> tensor<{rows}x{columns}xf32>",
            f"t(%0) : (tensor<{rows}x{columns}xf32>) -> tensor<{columns}x{rows}xf32>",
            f"neg(%1) : (tensor<{columns}x{rows}xf32>) -> tensor<{columns}x{rows}xf32>",
            fold,
        ],
        f"tensor<{columns}xf32>",
        keep=keep,
    )
    (found,) = run_function(module, [x])
    np.testing.assert_allclose(found, x.T.sum(1), rtol=1e-5, atol=1e-5)
    assert "neg" in functions_of(module)

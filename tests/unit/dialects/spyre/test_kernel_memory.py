"""Buffers, constants, transfers and launches: text, places in memory, and what the verifiers refuse."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp, TensorType, f16, f64, i64
from xdsl.dialects.func import FuncOp
from xdsl.dialects.test import TestOp
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.spyre.attributes import DeviceTensor, DeviceTensorType
from spyre_mlir.dialects.spyre.core_view import CoreView
from spyre_mlir.dialects.spyre.kernel_memory import (
    AllocOp,
    ArgumentOp,
    FreeOp,
    FromDeviceOp,
    KernelConstantOp,
    LaunchOp,
    ToDeviceOp,
    segment_of,
    shared_view,
)
from spyre_mlir.hw.sticks import StickError, StickLayout
from tests.unit.dialects.texts import function, lines_of, only, read


def tensor(rows: int = 64, space: str = "hbm") -> str:
    return f"!spyre.tensor<[{rows}, 128] x SEN169_FP16, order [0, 1], stick 1, {space}>"


def exp(split: str = "m = 64 over 2, n = 128", space: str = "lx", function_name: str = "exp", rows: int = 64) -> str:
    type_ = tensor(rows, space)
    return f'spyre.kernel.compute "{function_name}" [{split}] ins(%b[m, n] : {type_}) outs(%b[m, n] : {type_})'


def alloc(at: int | None, rows: int = 64, space: str = "lx") -> str:
    return f"%b = spyre.kernel.alloc{'' if at is None else f' at {at} : i64'} : {tensor(rows, space)}"


def program(*lines: str, host: str = "64x128xf16") -> ModuleOp:
    return read(function(f"%h: tensor<{host}>, %d: {tensor()}", *lines))


@pytest.mark.parametrize(
    "line",
    [
        alloc(None, space="hbm"),
        alloc(4096, space="hbm"),
        f"spyre.kernel.free %d {{note}} : {tensor()}",
        f"%c = spyre.kernel.constant 2.500000e+00 : f64 {{note}} : {tensor()}",
        f"%c = spyre.kernel.constant #spyre.first_ones<33> : {tensor()}",
        f"%c = spyre.kernel.to_device %h zero_padding : tensor<64x128xf16> to {tensor()}",
        f"%c = spyre.kernel.from_device %d {{note}} : {tensor()} to tensor<64x128xf16>",
        f"spyre.kernel.launch @bundle(%d, %d) pool_bytes 128 : {tensor()}, {tensor()}",
    ],
)
def test_text(line: str) -> None:
    assert line in lines_of(program(line))


DEVICE = DeviceTensorType(DeviceTensor((64, 128), "SEN169_FP16", StickLayout((0, 1), 1, (64, 128))))
HOST = TensorType(f16, [64, 128])


def test_ops_are_made_without_text() -> None:
    host, device = TestOp(result_types=[HOST, DEVICE]).results
    buffer = AllocOp(DEVICE)
    assert (buffer.result.type, buffer.offset) == (DEVICE, None)
    one = KernelConstantOp(FloatAttr(1.0, f64), DEVICE)
    assert (one.value, one.result.type) == (FloatAttr(1.0, f64), DEVICE)
    sent, brought = ToDeviceOp(host, DEVICE), FromDeviceOp(device, HOST)
    assert (sent.source, sent.result.type) == (host, DEVICE)
    assert (brought.source, brought.result.type) == (device, HOST)
    free, launch = FreeOp(device), LaunchOp("bundle", [device, buffer.result])
    assert free.buffer is device
    assert (launch.bundle.string_value(), list(launch.buffers)) == ("bundle", [device, buffer.result])
    for op in (buffer, one, sent, brought, free, launch):
        op.verify()


@pytest.mark.parametrize(("at", "start", "end"), [(None, 0, 16_384), (4096, 4096, 20_480)])
def test_place_of_a_buffer_in_device_memory(at: int | None, start: int, end: int) -> None:
    """64 rows of two sticks, each of 128 bytes."""
    buffer = only(program(alloc(at, space="hbm")), AllocOp)
    assert (buffer.start, buffer.end) == (start, end)


@pytest.mark.parametrize(
    ("split", "end"), [("m = 64 over 2, n = 128", 128 + 8192), ("m = 64, n = 128", 128 + 16_384), ("", 128 + 16_384)]
)
def test_place_of_a_buffer_in_the_scratchpads(split: str, end: int) -> None:
    buffer = only(program(alloc(128), *([exp(split)] if split else [])), AllocOp)
    assert (buffer.start, buffer.end) == (128, end)


@pytest.mark.parametrize("at", [64, -128, 129])
def test_a_buffer_starts_on_a_stick(at: int) -> None:
    with pytest.raises(VerifyException, match=f"byte {at} is not on a stick of 128 bytes; try a multiple"):
        program(alloc(at, space="hbm"))


def test_a_buffer_ends_inside_the_scratchpad() -> None:
    """What programs may use of it ends with byte 1,589,376."""
    last = 1_589_376 - 16_384
    program(alloc(last))
    said = f"bytes {last + 128} to 1589504 of the scratchpad: a core has 1589376 for the program; try a lower address"
    with pytest.raises(VerifyException, match=said):
        program(alloc(last + 128))
    program(alloc(last + 128, space="hbm"))


def test_the_slices_on_which_all_users_agree() -> None:
    lines = [alloc(0), exp(), exp(function_name="neg"), exp(), f"spyre.kernel.free %b : {tensor(space='lx')}"]
    assert shared_view(only(program(*lines), AllocOp).result) == CoreView((2, 1), ((0, 0), (1, 0)))


def test_a_buffer_without_users_is_whole() -> None:
    for line in (alloc(0), alloc(0, space="hbm")):
        assert shared_view(only(program(line), AllocOp).result) == CoreView((1, 1), ((),))


def test_users_that_do_not_agree() -> None:
    lines = [alloc(0), exp(), exp("m = 64, n = 128 over 2", function_name="neg")]
    said = r"(exp|neg) takes it in slices .* on 2 cores .*, (neg|exp) in slices .*: no core can hold both"
    with pytest.raises(VerifyException, match=f"the buffer cannot be in LX: {said}; try hbm"):
        program(*lines)
    shared = [line.replace("lx>", "hbm>") for line in lines]
    buffer = only(program(*shared), AllocOp).result
    with pytest.raises(StickError, match=r"takes it in slices \[(2, 1|1, 2)\] on 2 cores"):
        shared_view(buffer)


LX = tensor(space="lx")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            [alloc(0), f"spyre.kernel.launch @bundle(%b) : {LX}"],
            r"the buffer cannot be in LX: spyre\.kernel\.launch cannot reach the scratchpads; try hbm",
        ),
        ([f"%c = spyre.kernel.constant 1.0 : f64 : {LX}"], "the host cannot reach the scratchpads; try hbm and a copy"),
        ([f"%c = spyre.kernel.to_device %h : tensor<64x128xf16> to {LX}"], "the host cannot reach the scratchpads"),
    ],
)
def test_the_host_reaches_device_memory_only(lines: list[str], said: str) -> None:
    with pytest.raises(VerifyException, match=said):
        program(*lines)


def test_nothing_comes_back_from_the_scratchpads() -> None:
    line = f"%c = spyre.kernel.from_device %l : {LX} to tensor<64x128xf16>"
    with pytest.raises(VerifyException, match="the host cannot reach the scratchpads; try hbm and a copy"):
        read(function(f"%l: {LX}", line))


@pytest.mark.parametrize(
    "line",
    [
        f"%c = spyre.kernel.to_device %h : tensor<64x64xf16> to {tensor()}",
        f"%c = spyre.kernel.from_device %d : {tensor()} to tensor<64x64xf16>",
    ],
)
def test_transfers_keep_the_shape(line: str) -> None:
    said = r"the host tensor has shape \(64, 64\), the device tensor \(64, 128\)"
    with pytest.raises(VerifyException, match=said):
        program(line, host="64x64xf16")


def test_a_place_is_a_property() -> None:
    buffer = AllocOp(DEVICE)
    buffer.offset = IntegerAttr(256, i64)
    assert (buffer.start, buffer.end) == (256, 256 + 16_384)


@pytest.mark.parametrize(
    "line",
    [
        "%c = spyre.kernel.alloc{} : ",
        "%c = spyre.kernel.constant 1.0 : f64{} : ",
        "%c = spyre.kernel.to_device %h{} : ",
    ],
)
def test_an_argument_has_its_segment(line: str) -> None:
    kind = f"tensor<64x128xf16> to {tensor()}" if "to_device" in line else tensor()
    for given, wanted in (("", None), (" segment 3", 3)):
        module = program(line.format(given) + kind)
        made = only(module, ArgumentOp)
        assert made.segment_number == segment_of(made.results[0]) == wanted
        assert "attributes" not in str(made) and not made.attributes
    (block,) = (op.body.block for op in module.ops if isinstance(op, FuncOp))
    assert segment_of(block.args[0]) is None


def test_a_transfer_knows_the_rows_of_its_table() -> None:
    for given, rows in (("", None), (" from_end 10", 10)):
        line = f"%c = spyre.kernel.to_device %h{given} : tensor<64x128xf16> to {tensor()}"
        assert only(program(line), ToDeviceOp).rows == rows


def test_what_a_launch_says_of_its_kernels() -> None:
    said = " integer_kernels [3, 64, 5, 10] elements {i64 = array<i64: 3, 5>, f32 = array<i64: 7>} pool_bytes 256"
    launch = only(program(f"spyre.kernel.launch @bundle(%d){said} : {tensor()}"), LaunchOp)
    assert (launch.watched, launch.fixed_pool_bytes) == ({3: 64, 5: 10}, 256)
    assert launch.element_names == {3: "i64", 5: "i64", 7: "f32"}
    silent = only(program(f"spyre.kernel.launch @bundle(%d) : {tensor()}"), LaunchOp)
    assert (silent.watched, silent.element_names, silent.fixed_pool_bytes) == ({}, {}, None)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("integer_kernels [3, 64, 5]", "integer_kernels has 3 numbers, expected pairs"),
        ("elements {f32 = 7 : i64}", "elements has 7 : i64 for f32, expected a list of numbers"),
    ],
)
def test_lists_of_kernels_have_their_form(said: str, message: str) -> None:
    with pytest.raises(VerifyException, match=message):
        program(f"spyre.kernel.launch @bundle(%d) {said} : {tensor()}")

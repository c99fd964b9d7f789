"""Walks of kernel operands through their buffers: axes, steps, views, and what may not be written."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import f32, i64
from xdsl.ir import Attribute

from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.errors import FaultKind, MachineFault
from spyre_mlir.hw.sticks import StickAccess
from spyre_mlir.machine.arrays import Array, Mask
from spyre_mlir.machine.levels.buffers import DeviceBuffer
from spyre_mlir.machine.levels.operands import (
    Grid,
    WalkedOperand,
    check_every_point_kept,
    lane_step,
    operands_of,
    write,
)
from tests.unit.machine.modules import device, parse, program, send

FP32 = "IEEE_FP32"
ROWS, ROW = device((3, 128), 1, order=[1, 0]), device((128,), 0)
WIDE = device((3, 128), 1, order=[1, 0], form=FP32)
ROW_INDEX, COLUMN = np.indices((3, 128))
LANES = np.arange(6 * 64.0).reshape(6, 64)  # each element says where it lies
# (3, 128) lies as [2 sticks, 3 rows, 64 lanes].
AT = (COLUMN // 64 * 3 + ROW_INDEX) * 64 + COLUMN % 64


def kernel(body: str, types: dict[str, tuple[tuple[int, ...], str]], out: str, shape: tuple[int, ...]) -> KernelOp:
    sends = "".join(send(name, extents, type_) for name, (extents, type_) in types.items())
    text = program({name: extents for name, (extents, _) in types.items()}, sends + body, out, shape)
    return next(op for op in parse(text).walk() if isinstance(op, KernelOp))


def add() -> KernelOp:
    """A row is added to every row."""
    return kernel(
        f"""spyre.kernel.compute "add" [m = 3, n = 128]
        ins(%da[m, n] : {ROWS}, %db[n] : {ROW}) outs(%o[m, n] : {ROWS})""",
        {"a": ((3, 128), ROWS), "b": ((128,), ROW)},
        ROWS,
        (3, 128),
    )


def widen() -> KernelOp:
    return kernel(
        f"""spyre.kernel.compute "identity" [m = 3, n = 128]
        ins(%da[m, n] : {ROWS}) outs(%o[m, n] : {WIDE})""",
        {"a": ((3, 128), ROWS)},
        WIDE,
        (3, 128),
    )


def buffers(op: KernelOp) -> list[DeviceBuffer]:
    return [DeviceBuffer.poisoned(tensor) for tensor in op.tensors]


def filled(op: KernelOp) -> list[WalkedOperand]:
    """Operands whose inputs say where each element lies."""
    made = buffers(op)
    for buffer in made[:-1]:
        buffer.values[...] = np.arange(buffer.values.size).reshape(buffer.values.shape)
        buffer.initialised[...] = True
    return operands_of(op, made)


def test_lanes_of_one_width_are_sticks_and_lanes() -> None:
    grid = Grid.of(add())
    assert grid.parts == {"m": ((1, 3),), "n": ((64, 2), (1, 64))}
    assert grid.axes == [("m", 1), ("n", 64), ("n", 1)]
    assert grid.shape(grid.axes) == [3, 2, 64]
    assert grid.of_names(["n"]) == [("n", 64), ("n", 1)]
    assert grid.shape([("n", 1), ("m", 1)]) == [64, 3]


def test_lanes_of_two_widths_are_cut_at_both() -> None:
    grid = Grid.of(widen())
    assert grid.parts["n"] == ((64, 2), (32, 2), (1, 32))
    assert grid.shape(grid.axes) == [3, 2, 2, 32]


def test_an_operand_walks_the_dims_it_has_in_the_order_of_the_space() -> None:
    grid = Grid.of(add())
    assert grid.names(StickAccess(0, {"n": 3, "m": 1}, "n")) == ["m", "n"]
    assert grid.names(StickAccess(0, {"n": 1}, "n")) == ["n"]


@pytest.mark.parametrize(
    ("axis", "lanes", "step"),
    [
        (("m", 1), 64, 64),  # a row is a stick
        (("n", 64), 64, 3 * 64),  # a stick further is three sticks of memory
        (("n", 1), 64, 1),
        (("n", 64), 32, 2 * 3 * 32),  # two sticks of 32
        (("n", 32), 32, 3 * 32),
        (("n", 32), 64, 32),  # inside of a stick
        (("k", 1), 64, 0),  # a dim it does not walk
    ],
)
def test_steps_of_memory_per_step_of_an_axis(axis: tuple[str, int], lanes: int, step: int) -> None:
    assert lane_step(StickAccess(0, {"m": 1, "n": 3}, "n"), axis, lanes) == step


def test_a_dim_beside_the_lanes_steps_in_whole_sticks() -> None:
    assert lane_step(StickAccess(0, {"m": 2}, None), ("m", 4), 64) == 2 * 64 * 4


def test_operands_are_seen_along_the_axes_of_the_op() -> None:
    op = add()
    left, right, out = filled(op)
    axes = Grid.of(op).axes
    assert np.array_equal(left.values(axes).reshape(3, 128), AT)
    assert np.array_equal(right.values(axes).reshape(3, 128), np.broadcast_to(np.arange(128), (3, 128)))
    assert left.initialised(axes).all()
    assert not out.initialised(axes).any()
    assert left.own_axes == axes
    assert right.own_axes == [("n", 64), ("n", 1)]
    assert [one.name for one in (left, right, out)] == ["input 0", "input 1", "the output"]
    assert [one.is_output for one in (left, right, out)] == [False, False, True]


def test_a_slice_starts_at_its_offset() -> None:
    op = kernel(
        f"""spyre.kernel.compute "identity" [m = 2, n = 64]
        ins(%da[m + 1, n + 64] : {ROWS}) outs(%o[m, n] : {device((2, 64), 1)})""",
        {"a": ((3, 128), ROWS)},
        device((2, 64), 1),
        (2, 64),
    )
    source, _ = filled(op)
    assert np.array_equal(source.values(Grid.of(op).axes).reshape(2, 64), LANES[4:6])


def test_a_walk_is_in_a_buffer_that_is_there() -> None:
    op = add()
    left, *_ = filled(op)
    axes = Grid.of(op).axes
    small = WalkedOperand(
        DeviceBuffer(left.buffer.tensor, LANES[:5], LANES[:5] > 0), left.access, left.grid, op, "input 0"
    )
    with pytest.raises(MachineFault, match="input 0: elements 0 to 383 of an array of 320") as caught:
        small.values(axes)
    assert (caught.value.kind, caught.value.place.tensor) == (FaultKind.OUT_OF_BOUNDS, "input 0")
    assert "reserve whole sticks" in str(caught.value)
    left.buffer.freed = True
    for use in (left.values, left.initialised):
        with pytest.raises(MachineFault, match="input 0 was freed") as caught:
            use(axes)
        assert (caught.value.kind, caught.value.place.tensor) == (FaultKind.USE_AFTER_FREE, "input 0")


@pytest.mark.parametrize(("element", "kind"), [(i64, np.int64), (f32, np.float64)])
def test_inputs_of_integers_are_integers(element: Attribute, kind: type) -> None:
    op = add()
    op.element = element
    left, _, out = filled(op)
    axes = Grid.of(op).axes
    assert left.values(axes).dtype == kind
    assert out.values(axes).dtype == np.float64


def results(op: KernelOp, values: object = 1.5) -> tuple[WalkedOperand, Array, Mask]:
    """The output of an op, values along its axes, and states that are all true."""
    out = filled(op)[-1]
    shape = out.grid.shape(out.own_axes)
    return out, np.broadcast_to(np.asarray(values), shape), np.ones(shape, np.bool_)


def test_results_are_written_where_they_lie() -> None:
    values = np.arange(384.0).reshape(3, 2, 64)
    out, made, known = results(add(), values)
    known[1, 0, 5] = known[2, 1, 63] = False
    write(out, made, known, copies=False)
    flat = out.buffer.values.reshape(-1)
    missing = [AT[1, 5], AT[2, 64 + 63]]
    assert np.flatnonzero(~out.buffer.initialised.reshape(-1)).tolist() == sorted(missing)
    assert np.isnan(flat[missing]).all()
    assert np.array_equal(np.delete(flat[AT.reshape(-1)], [133, 383]), np.delete(np.arange(384.0), [133, 383]))


def test_results_are_rounded_as_eager_does() -> None:
    op = add()
    op.element = f32
    out, made, known = results(op, 0.1)
    write(out, made, known, copies=False)
    assert (out.buffer.values == np.float64(np.float32(0.1))).all()
    out, made, known = results(add(), 0.1)
    write(out, made, known, copies=False)
    assert (out.buffer.values == 0.1).all()


def test_the_first_lane_of_a_stick_is_computed_from_lanes_that_somebody_wrote() -> None:
    out, made, known = results(add())
    known[2, 1, 0] = False
    with pytest.raises(
        MachineFault, match=r"add computes element \[m = 2, n = 64\] from lanes that were never written"
    ) as caught:
        write(out, made, known, copies=False)
    assert (caught.value.kind, caught.value.place.tensor) == (FaultKind.UNINITIALISED_READ, "the output")
    assert "fill the padding" in str(caught.value)
    assert not out.buffer.initialised.any()
    write(out, made, known, copies=True)
    assert int((~out.buffer.initialised).sum()) == 1


def test_first_lanes_are_those_of_the_output_s_own_sticks() -> None:
    """Sticks of 32 begin at columns 0, 32, 64 and 96; column 33 is none of them."""
    out, made, known = results(widen())
    known[1, 0, 1, 1] = False
    write(out, made, known, copies=False)
    known[1, 0, 1, 0] = False
    with pytest.raises(MachineFault, match=r"identity computes element \[m = 1, n = 32\]"):
        write(out, made, known, copies=False)


def test_a_result_is_written_once() -> None:
    kept = add()
    check_every_point_kept(kept, filled(kept)[-1])
    lost = kernel(
        f"""spyre.kernel.compute "neg" [m = 3, x = 1, n = 128]
        ins(%da[m, n] : {ROWS}) outs(%o[n] : {ROW})""",
        {"a": ((3, 128), ROWS)},
        ROW,
        (128,),
    )
    with pytest.raises(MachineFault, match=r"neg writes the same element for every m\n") as caught:
        check_every_point_kept(lost, filled(lost)[-1])
    assert caught.value.kind == FaultKind.DOUBLE_WRITE

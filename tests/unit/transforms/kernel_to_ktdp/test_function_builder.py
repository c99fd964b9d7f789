"""KTIR functions as they are written: constants once, slices of cores, loops and what they carry."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr, FloatAttr, TensorType, f16, f32, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.tensor import ExtractOp
from xdsl.dialects.test import TestOp
from xdsl.ir import SSAValue

from spyre_mlir.dialects.ktdp.grid import GetComputeTileIdOp
from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.transforms.kernel_to_ktdp.function_builder import (
    Code,
    Held,
    element_of,
    element_type,
    shape_of,
)
from spyre_mlir.transforms.kernel_to_ktdp.slices import SliceForm
from spyre_mlir.transforms.kernel_to_ktdp.tiles import TiledKernel, kernel_in_tiles
from tests.unit.transforms.kernel_to_ktdp.kernels import kernels, lines, matrix, result, whole, written
from tests.unit.transforms.levels import ops, passed

T = matrix(8, 256)


def tensor(*shape: int, element: AnyFloat = f16) -> SSAValue:
    return Code({}).empty(element, shape)


def divided(loops: str) -> TiledKernel:
    body = f'spyre.kernel.compute "neg" [{loops}] ins(%a[m, n] : {T}) outs(%out[m, n] : {T})'
    (op,) = ops(passed(kernels({"a": T}, body, T)), KernelOp)
    return kernel_in_tiles(op)


@pytest.mark.parametrize(
    ("form", "element"), [("SEN169_FP16", f16), ("IEEE_FP32", f32), ("SENUINT32", i32), ("IEEE_INT32", i32)]
)
def test_formats_have_element_types(form: str, element: object) -> None:
    assert element_type(form) == element


def test_other_formats_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="elements of format BFLOAT16") as refused:
        element_type("BFLOAT16")
    assert refused.value.hint == "KTIR programs have SEN169_FP16, IEEE_FP32, SENUINT32, IEEE_INT32"


def test_shapes_and_elements_of_tensors() -> None:
    assert shape_of(tensor(2, 3)) == (2, 3)
    assert element_of(tensor(2, element=f32)) == f32


def test_constants_stand_once_before_all_loops() -> None:
    code = Code({})
    assert code.index(3) is code.index(3) and code.index(3) is not code.index(4)
    assert code.number(1.0, f16) is code.number(1.0, f16) and code.number(1.0, f16) is not code.number(1.0, f32)
    assert code.full(1.0, f16, [2]) is code.full(1.0, f16, [2]) and code.full(1.0, f16, [2]) is not code.full(
        0.0, f16, [2]
    )
    assert code.ops == [] and len(code.heads) == 6
    assert code.index(3).name_hint == "c3"


@pytest.mark.parametrize(
    ("value", "element", "held"),
    [
        (65504.0, f16, 65504.0),
        (65505.0, f16, inf),
        (-65505.0, f16, -inf),
        (65505.0, f32, 65505.0),
        (float(np.finfo(np.float32).max), f32, float(np.finfo(np.float32).max)),
        (1e39, f32, inf),
    ],
)
def test_numbers_beyond_their_type_are_infinite(value: float, element: AnyFloat, held: float) -> None:
    code = Code({})
    code.number(value, element)
    code.full(value, element, [2, 3])
    number, numbers = code.heads
    assert isinstance(number, arith.ConstantOp) and isinstance(number.value, FloatAttr)
    assert number.value.value.data == held
    assert isinstance(numbers, arith.ConstantOp) and isinstance(numbers.value, DenseIntOrFPElementsAttr)
    assert numbers.value.get_values()[0] == held and numbers.results[0].type == TensorType(element, [2, 3])


def test_the_number_of_the_core_comes_first() -> None:
    code = Code({})
    code.index(1)
    assert code.core is code.core and code.core.name_hint == "core"
    assert isinstance(code.heads[0], GetComputeTileIdOp) and len(code.heads) == 2


def texts(code: Code) -> list[str]:
    return [op.name for op in code.heads if not isinstance(op, arith.ConstantOp)]


def test_slices_of_a_divided_loop() -> None:
    """Loops over cores are counted by divisions and remainders: core / cores below % slices."""
    one = divided("m = 8 over 4, n = 256")
    code = Code({})
    assert code.slice_of(one, "m") is code.core
    both = divided("m = 8 over 4, n = 256 over 2")
    (fast, (_, low)), (slow, (apart, high)) = sorted(both.places.items(), key=lambda item: item[1][0])
    code = Code({})
    lower = code.slice_of(both, fast)
    assert texts(code) == ["ktdp.get_compute_tile_id", "arith.remui"] and lower.owner.operands[1] is code.index(low)
    upper = code.slice_of(both, slow)
    assert texts(code)[2:] == ["arith.divui"] and upper.owner.operands[1] is code.index(apart)
    assert apart == low and apart * high == 8


def test_first_steps_of_cores() -> None:
    kernel = divided("m = 8 over 4, n = 256 over 4")
    code = Code({})
    first = code.first_step(kernel, "m")  # two rows each
    assert isinstance(first.owner, arith.MuliOp) and first.owner.operands[1] is code.index(2)
    assert code.first_step(kernel, "n") is code.slice_of(kernel, "n")  # one stick each
    assert code.first_step(divided("m = 8, n = 256"), "m") is code.index(0)


def test_nothing_is_added_to_zero() -> None:
    code = Code({})
    zero, one, core = code.index(0), code.index(1), code.core
    assert code.plus(zero, core) is core and code.plus(core, zero) is core and code.ops == []
    total = code.plus(one, core)
    assert tuple(total.owner.operands) == (one, core) and code.ops == [total.owner]


def test_loops_carry_values_and_what_is_held() -> None:
    code, form = Code({}), SliceForm(0, ((1, 4),))
    start, held = tensor(2), tensor(4)
    code.held["buffer"] = Held(held, form)
    with code.loop(12, 3, [start], first=6, held=["buffer"]) as loop:
        inside = code.held["buffer"]
        assert inside.value is not held and inside.form is form
        made = code.add(arith.NegfOp(loop.carried[0]))
        changed = code.add(arith.NegfOp(inside.value))
        loop.results = [made]
        code.held["buffer"] = Held(changed, form)
        code.held["other"] = Held(changed, form)
    (op,) = code.ops
    assert isinstance(op, scf.ForOp)
    assert (op.lb, op.ub, op.step) == (code.index(6), code.index(12), code.index(3))
    assert tuple(op.iter_args) == (start, held)
    assert loop.results == [op.results[0]] and code.held["buffer"].value is op.results[1]
    assert "other" not in code.held  # it was of the trip
    last = op.body.block.last_op
    assert last is not None and tuple(last.operands) == (made, changed)
    op.verify()


def test_branches_hold_what_is_done_there_only() -> None:
    code = Code({})
    condition = arith.CmpiOp(code.core, code.index(0), "eq").results[0]
    with code.branch(condition):
        code.put(TestOp())
    (op,) = code.ops
    assert isinstance(op, scf.IfOp) and op.cond is condition
    assert [o.name for o in op.true_region.block.ops] == ["test.op", "scf.yield"]


def test_what_stands_at_entry_comes_before_the_kernel() -> None:
    code, names = Code({}), list[str]()
    code.put(TestOp())
    with code.kernel():
        inside, entry = TestOp(), TestOp()
        code.put(inside)
        with code.at_entry():
            code.put(entry)
        code.put(last := TestOp())
    assert code.ops[1:] == [entry, inside, last] and names == []
    with code.kernel():
        code.put(more := TestOp())
    assert code.ops[4:] == [more]
    code.index(0)
    assert code.block_ops() == [*code.heads, *code.ops]


def test_ops_take_the_location_of_the_kernel_at_hand() -> None:
    op = divided("m = 8, n = 256").op
    code = Code({}, current=op)
    code.put(made := TestOp())
    assert made.location == op.location and str(made.location) != "loc(unknown)"


def test_broadcasts() -> None:
    code, value = Code({}), tensor(3, element=f32)
    assert code.broadcast(value, [0], [3]) is value and code.ops == []
    wide = code.broadcast(value, [1], [2, 3, 4])
    assert isinstance(wide.owner, linalg.BroadcastOp) and list(wide.owner.dimensions.get_values()) == [0, 2]
    assert wide.type == TensorType(f32, [2, 3, 4])
    single = code.broadcast(tensor(1), [], [2, 3])
    assert isinstance(single.owner, linalg.FillOp) and isinstance(single.owner.inputs[0].owner, ExtractOp)
    assert single.type == TensorType(f16, [2, 3])


def test_widening_and_narrowing() -> None:
    code, half, single = Code({}), tensor(2), tensor(2, element=f32)
    assert code.widened(single) is single and code.narrowed(half, f16) is half and code.ops == []
    assert code.widened(half).type == single.type and code.narrowed(single, f16).type == half.type
    assert [op.name for op in code.ops] == ["arith.extf", "arith.truncf"]


def test_views_and_tiles_of_cores() -> None:
    """Rows 2 to 7 of eight, on two cores: an offset of 128 elements, views once, and a tile at the core's rows."""
    part = matrix(6, 256)
    body = f'spyre.kernel.compute "neg" [m = 6 over 2, n = 256] ins(%a[m + 2, n] : {T}) outs(%out[m, n] : {part})'
    text = kernels({"a": T}, body, part)
    program = written(text)
    assert "sizes: [4, 6, 64], strides: [512, 64, 1]" in program.text
    assert "sizes: [4, 6, 64], strides: [384, 64, 1]" in program.text
    assert "%ha, %c128" in program.text
    a = whole(8, 256)
    assert np.array_equal(program.run([a])[0], -a[2:])
    assert np.array_equal(result(text, a, tile=64), -a[2:])


def test_tiles_that_a_loop_moves() -> None:
    tile = T.replace("[8, 256]", "[2, 256]").replace("stick 1", "stick 1, extents [8, 256]")
    body = "".join(f"%c{n} = arith.constant {n} : index\n" for n in (0, 1, 4))
    body += f"""scf.for %i = %c0 to %c4 step %c1 {{
      %x = spyre.kernel.tile %a dim 0 at %i * 2 : {T} to {tile}
      %y = spyre.kernel.tile %out dim 0 at %i * 2 : {T} to {tile}
      spyre.kernel.compute "neg" [m = 2, n = 256] ins(%x[m, n] : {tile}) outs(%y[m, n] : {tile})
    }}"""
    program = written(kernels({"a": T}, body, T))
    assert lines(program, "%c128", "arith.muli", "scf.for")[1:] == [2, 1]
    a = whole(8, 256)
    assert np.array_equal(program.run([a])[0], -a)

"""The loop level on the machine, on hand-written nests, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from spyre_mlir.dialects.spyre.loop import NestOp, body_function
from spyre_mlir.errors import MachineFault, UnsupportedError
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.ops import ATEN
from tests.unit.machine.modules import Array, close, float32, main, numbers, parse, run

PRODUCT = "{ ^bb0(%x: f32, %y: f32): %z = arith.mulf %x, %y : f32 spyre.loop.yield %z : f32 }"
SUM = "{ ^bb0(%x: f32, %y: f32): %z = arith.addf %x, %y : f32 spyre.loop.yield %z : f32 }"
COPY = "{ ^bb0(%x: f32): spyre.loop.yield %x : f32 }"


def same(got: Array, wanted: Array) -> None:
    """Equal to eager's float32 numbers: what numpy has in double precision, rounded once, as the result is."""
    close(got, float32(wanted))


def test_matmul() -> None:
    body = f"""%out = spyre.loop.nest [m = 4, n = 6, k = 8] ins(%a[m, k] : tensor<4x8xf32>, %b[k, n] : tensor<8x6xf32>)
        -> [m, n] : tensor<4x6xf32> reduce "arith.addf" {PRODUCT}"""
    a, b = numbers(4, 8), numbers(8, 6, seed=1)
    same(run(main("%a: tensor<4x8xf32>, %b: tensor<8x6xf32>", body, "tensor<4x6xf32>"), a, b), a @ b)


def test_matmul_over_split_features_and_transposed_result() -> None:
    body = f"""%out = spyre.loop.nest [b = 2, h = 3, s = 5, t = 7, k = 4]
        ins(%q[b, s, h * 4 + k] : tensor<2x5x12xf32>, %k[b, t, h * 4 + k] : tensor<2x7x12xf32>)
        -> [b, t, h, s] : tensor<2x7x3x5xf32> reduce "arith.addf" {PRODUCT}"""
    q, k = numbers(2, 5, 12), numbers(2, 7, 12, seed=1)
    got = run(main("%q: tensor<2x5x12xf32>, %k: tensor<2x7x12xf32>", body, "tensor<2x7x3x5xf32>"), q, k)
    same(got, np.einsum("bshk,bthk->bths", q.reshape(2, 5, 3, 4), k.reshape(2, 7, 3, 4)))


def test_matmul_with_broadcast_batch() -> None:
    body = f"""%out = spyre.loop.nest [b = 2, m = 3, n = 4, k = 5]
        ins(%a[b, m, k] : tensor<2x3x5xf32>, %b[k, n] : tensor<5x4xf32>)
        -> [b, m, n] : tensor<2x3x4xf32> reduce "arith.addf" {PRODUCT}"""
    a, b = numbers(2, 3, 5), numbers(5, 4, seed=1)
    same(run(main("%a: tensor<2x3x5xf32>, %b: tensor<5x4xf32>", body, "tensor<2x3x4xf32>"), a, b), a @ b)


def test_sum_of_products_with_a_dimension_of_one_operand_alone() -> None:
    body = f"""%out = spyre.loop.nest [m = 3, k = 4, j = 5] ins(%a[m, k] : tensor<3x4xf32>, %b[m, j] : tensor<3x5xf32>)
        -> [m] : tensor<3xf32> reduce "arith.addf" {PRODUCT}"""
    a, b = numbers(3, 4), numbers(3, 5, seed=1)
    same(run(main("%a: tensor<3x4xf32>, %b: tensor<3x5xf32>", body, "tensor<3xf32>"), a, b), a.sum(1) * b.sum(1))


def test_slice_with_step_and_offset() -> None:
    body = f"""%out = spyre.loop.nest [i = 3, j = 4] ins(%a[i * 2 + 1, j + 2] : tensor<7x8xf32>)
        -> [i, j] : tensor<3x4xf32> {COPY}"""
    a = numbers(7, 8)
    same(run(main("%a: tensor<7x8xf32>", body, "tensor<3x4xf32>"), a), a[1:7:2, 2:6])


def test_backwards_read() -> None:
    body = f"%out = spyre.loop.nest [i = 5] ins(%a[4 - i] : tensor<5xf32>) -> [i] : tensor<5xf32> {COPY}"
    a = numbers(5)
    same(run(main("%a: tensor<5xf32>", body, "tensor<5xf32>"), a), a[::-1])


def test_transposed_and_broadcast_reads() -> None:
    body = f"""%out = spyre.loop.nest [m = 3, n = 4] ins(%a[n, m] : tensor<4x3xf32>, %b[n] : tensor<4xf32>)
        -> [m, n] : tensor<3x4xf32> {SUM}"""
    a, b = numbers(4, 3), numbers(4, seed=1)
    same(run(main("%a: tensor<4x3xf32>, %b: tensor<4xf32>", body, "tensor<3x4xf32>"), a, b), a.T + b)


def test_overlapping_windows() -> None:
    body = f"""%out = spyre.loop.nest [i = 6, w = 3] ins(%a[i + w] : tensor<8xf32>, %f[w] : tensor<3xf32>)
        -> [i] : tensor<6xf32> reduce "arith.addf" {PRODUCT}"""
    a, f = numbers(8), numbers(3, seed=1)
    same(run(main("%a: tensor<8xf32>, %f: tensor<3xf32>", body, "tensor<6xf32>"), a, f), np.correlate(a, f))


def test_cat_into() -> None:
    body = f"""%e = spyre.loop.empty : tensor<3x7xf32>
        %p = spyre.loop.nest [i = 3, j = 5] ins(%a[i, j] : tensor<3x5xf32>) into %e -> [i, j] : tensor<3x7xf32> {COPY}
        %out = spyre.loop.nest [i = 3, j = 2]
        ins(%b[i, j] : tensor<3x2xf32>) into %p -> [i, j + 5] : tensor<3x7xf32> {COPY}"""
    a, b = numbers(3, 5), numbers(3, 2, seed=1)
    same(
        run(main("%a: tensor<3x5xf32>, %b: tensor<3x2xf32>", body, "tensor<3x7xf32>"), a, b), np.concatenate([a, b], 1)
    )


def test_update_leaves_its_destination_alone() -> None:
    body = f"""%u = spyre.loop.nest [i = 2] ins(%b[i] : tensor<2xf32>) into %a -> [i * 2] : tensor<4xf32> {COPY}
        %out = spyre.loop.nest [i = 4] ins(%u[i] : tensor<4xf32>, %a[i] : tensor<4xf32>) -> [i] : tensor<4xf32> {SUM}"""
    a, b = numbers(4), numbers(2, seed=1)
    wanted = 2 * a
    wanted[::2] = b + a[::2]
    same(run(main("%a: tensor<4xf32>, %b: tensor<2xf32>", body, "tensor<4xf32>"), a, b), wanted)


HALF_FILLED = f"""%e = spyre.loop.empty : tensor<4xf32>
    %p = spyre.loop.nest [i = 2] ins(%a[i] : tensor<2xf32>) into %e -> [i + 2] : tensor<4xf32> {COPY}
    """


def test_read_of_an_element_nobody_wrote() -> None:
    body = f"{HALF_FILLED} %out = spyre.loop.nest [i = 3] ins(%p[i + 1] : tensor<4xf32>) -> [i] : tensor<3xf32> {COPY}"
    with pytest.raises(MachineFault, match=r"uninitialised-read: input 0: element \[0\]") as caught:
        run(main("%a: tensor<2xf32>", body, "tensor<3xf32>"), numbers(2))
    assert caught.value.kind == "uninitialised-read"
    assert caught.value.where is not None
    assert caught.value.where.startswith("spyre.loop.nest")


def test_read_of_the_written_part_alone() -> None:
    body = f"{HALF_FILLED} %out = spyre.loop.nest [i = 2] ins(%p[i + 2] : tensor<4xf32>) -> [i] : tensor<2xf32> {COPY}"
    a = numbers(2)
    same(run(main("%a: tensor<2xf32>", body, "tensor<2xf32>"), a), a)


def test_points_a_fresh_result_misses_are_undefined() -> None:
    body = f"%out = spyre.loop.nest [i = 2] ins(%a[i] : tensor<2xf32>) -> [i * 2] : tensor<4xf32> {COPY}"
    with pytest.raises(MachineFault, match=r"result 0: element \[1\] has no value \(2 such"):
        run(main("%a: tensor<2xf32>", body, "tensor<4xf32>"), numbers(2))


@pytest.mark.parametrize(("combine", "function"), [("addf", np.sum), ("maximumf", np.max), ("minimumf", np.min)])
def test_reductions(combine: str, function: object) -> None:
    assert callable(function)
    body = f"""%out = spyre.loop.nest [i = 3, j = 4, k = 5] ins(%a[i, j, k] : tensor<3x4x5xf32>)
        -> [j] : tensor<4xf32> reduce "arith.{combine}" {COPY}"""
    a = numbers(3, 4, 5)
    same(run(main("%a: tensor<3x4x5xf32>", body, "tensor<4xf32>"), a), function(a, axis=(0, 2)))


def test_reduction_to_a_scalar() -> None:
    body = (
        f"""%out = spyre.loop.nest [i = 3] ins(%a[i] : tensor<3xf32>) -> [] : tensor<f32> reduce "arith.addf" {COPY}"""
    )
    a = numbers(3)
    same(run(main("%a: tensor<3xf32>", body, "tensor<f32>"), a), np.asarray(a.sum()))


def test_nest_over_one_point() -> None:
    body = f"%out = spyre.loop.nest [] ins(%a[] : tensor<f32>, %a[] : tensor<f32>) -> [] : tensor<f32> {SUM}"
    same(run(main("%a: tensor<f32>", body, "tensor<f32>"), np.array(1.5)), np.array(3.0))


# Operations of integers have tests of their own.
SCALARS = [(e.scalar, e.name) for e in ATEN if e.scalar not in (None, "arith.floordivsi", "arith.addi")]


@pytest.mark.parametrize(("spelling", "name"), SCALARS, ids=[s for s, _ in SCALARS])
def test_every_scalar_operation_of_the_table(spelling: str, name: str) -> None:
    reference = {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.divide,
        "maximum": np.maximum,
        "minimum": np.minimum,
        "eq": np.equal,
        "ne": np.not_equal,
        "ge": np.greater_equal,
        "le": np.less_equal,
        "gt": np.greater,
        "lt": np.less,
        "neg": np.negative,
        "abs": np.abs,
        "exp": np.exp,
        "log": np.log,
        "sqrt": np.sqrt,
        "rsqrt": lambda x: x**-0.5,
        "tanh": np.tanh,
        "floor": np.floor,
    }[name]
    op, _, predicate = spelling.partition(" ")
    binary = op in (
        "arith.addf",
        "arith.subf",
        "arith.mulf",
        "arith.divf",
        "arith.maximumf",
        "arith.minimumf",
        "arith.cmpf",
    )
    result = "i1" if predicate else "f32"
    arguments = "%x: f32, %y: f32" if binary else "%x: f32"
    operands = f"{predicate}{',' if predicate else ''} %x{', %y' if binary else ''}"
    inputs = "%a[i] : tensor<4xf32>" + (", %b[i] : tensor<4xf32>" if binary else "")
    body = f"""%out = spyre.loop.nest [i = 4] ins({inputs}) -> [i] : tensor<4x{result}>
        {{ ^bb0({arguments}): %z = {op} {operands} : f32 spyre.loop.yield %z : {result} }}"""
    a, b = np.array([0.5, 1.25, 2.0, 3.0]), np.array([0.75, 1.25, 1.0, 2.0])
    module = parse(main("%a: tensor<4xf32>, %b: tensor<4xf32>", body, f"tensor<4x{result}>"))
    (got,) = run_function(module, [a, b])
    same(got.astype(float), reference(*((a, b) if binary else (a,))).astype(float))
    assert function_in(module) == name


def function_in(module: ModuleOp) -> str:
    """The table's name of what the only body of a module says."""
    (caller,) = [o for o in module.ops if isinstance(o, FuncOp)]
    (nest,) = [o for o in caller.body.block.ops if isinstance(o, NestOp)]
    function = body_function(nest.body.block)
    assert function is not None
    return function.name


def test_the_floor_division_of_integers() -> None:
    body = """%out = spyre.loop.nest [i = 4] ins(%a[i] : tensor<4xi64>, %b[i] : tensor<4xi64>) -> [i] : tensor<4xi64>
        { ^bb0(%x: i64, %y: i64): %z = arith.floordivsi %x, %y : i64 spyre.loop.yield %z : i64 }"""
    module = parse(main("%a: tensor<4xi64>, %b: tensor<4xi64>", body, "tensor<4xi64>"))
    (got,) = run_function(module, [np.array([-7, 7, 7, -7]), np.array([2, 2, -2, -2])])
    assert got.tolist() == [-4, 3, -4, 3]
    assert function_in(module) == "floor_divide_integers"


def test_the_sum_of_words() -> None:
    body = """%out = spyre.loop.nest [i = 3] ins(%a[i] : tensor<3xi32>, %b[i] : tensor<3xi32>) -> [i] : tensor<3xi32>
        { ^bb0(%x: i32, %y: i32): %z = arith.addi %x, %y : i32 spyre.loop.yield %z : i32 }"""
    module = parse(main("%a: tensor<3xi32>, %b: tensor<3xi32>", body, "tensor<3xi32>"))
    (got,) = run_function(module, [np.array([-7, 1 << 30, 7]), np.array([2, 1 << 29, -7])])
    assert got.tolist() == [-5, (1 << 30) + (1 << 29), 0]


def test_apply_goes_through_the_op_table() -> None:
    body = """%out = spyre.loop.nest [i = 4] ins(%a[i] : tensor<4xf32>) -> [i] : tensor<4xf32>
        { ^bb0(%x: f32): %z = spyre.loop.apply "silu"(%x) : (f32) -> f32 spyre.loop.yield %z : f32 }"""
    a = numbers(4)
    same(run(main("%a: tensor<4xf32>", body, "tensor<4xf32>"), a), a / (1 + np.exp(-a)))


def test_selection() -> None:
    body = """%out = spyre.loop.nest [i = 3]
        ins(%c[i] : tensor<3xi1>, %a[i] : tensor<3xf32>, %z[] : tensor<f32>) -> [i] : tensor<3xf32>
        { ^bb0(%x: i1, %y: f32, %w: f32): %v = spyre.loop.apply "where"(%x, %y, %w) : (i1, f32, f32) -> f32
          spyre.loop.yield %v : f32 }"""
    got = run(
        main("%c: tensor<3xi1>, %a: tensor<3xf32>, %z: tensor<f32>", body, "tensor<3xf32>"),
        np.array([True, False, True]),
        np.array([1.0, 2.0, 3.0]),
        np.array(-7.0),
    )
    same(got, np.array([1.0, -7.0, 3.0]))


def test_copy_of_booleans_to_numbers() -> None:
    body = """%out = spyre.loop.nest [i = 2] ins(%c[i] : tensor<2xi1>) -> [i] : tensor<2xf32>
        { ^bb0(%x: i1): spyre.loop.yield %x : i1 }"""
    got = run(main("%c: tensor<2xi1>", body, "tensor<2xf32>"), np.array([True, False]))
    assert got.dtype == np.float64
    assert got.tolist() == [1.0, 0.0]


def test_constants() -> None:
    body = f"""%c = spyre.loop.constant 2.5 : f32 : tensor<3x4xf32>
        %i = spyre.loop.constant #spyre.iota<1.0, 0.5> : tensor<3x4xf32>
        %out = spyre.loop.nest [i = 3, j = 4] ins(%c[i, j] : tensor<3x4xf32>, %i[i, j] : tensor<3x4xf32>)
          -> [i, j] : tensor<3x4xf32> {SUM}"""
    same(run(main("", body, "tensor<3x4xf32>")), np.tile([3.5, 4.0, 4.5, 5.0], (3, 1)))


GATHER = """%out = spyre.loop.gather [b = 2, s = 3, h = 4] rows(%ids[b, s] : tensor<2x3xi64>) of axis 0
    in %table[0, h + 1] : tensor<5x6xf32> -> [h, b, s] : tensor<4x2x3xf32>"""
GATHER_ARGUMENTS = "%ids: tensor<2x3xi64>, %table: tensor<5x6xf32>"


def test_gather() -> None:
    ids, table = np.array([[0, 4, 2], [1, 1, 3]]), numbers(5, 6)
    got = run(main(GATHER_ARGUMENTS, GATHER, "tensor<4x2x3xf32>"), ids, table)
    same(got, table[ids][:, :, 1:5].transpose(2, 0, 1))


def test_gather_of_columns() -> None:
    body = """%out = spyre.loop.gather [s = 3, h = 5] rows(%ids[s] : tensor<3xi64>) of axis 1
        in %table[h, 0] : tensor<5x6xf32> -> [h, s] : tensor<5x3xf32>"""
    ids, table = np.array([5, 0, 2]), numbers(5, 6)
    same(run(main("%ids: tensor<3xi64>, %table: tensor<5x6xf32>", body, "tensor<5x3xf32>"), ids, table), table[:, ids])


@pytest.mark.parametrize("index", [-1, 5])
def test_gather_out_of_range_names_index_place_and_extent(index: int) -> None:
    ids = np.array([[0, 4, 2], [1, index, 3]])
    with pytest.raises(MachineFault, match=rf"index {index} at position \[1, 1\] .* 5 rows") as caught:
        run(main(GATHER_ARGUMENTS, GATHER, "tensor<4x2x3xf32>"), ids, numbers(5, 6))
    assert caught.value.kind == "index-out-of-range"


def test_gather_from_an_undefined_table() -> None:
    body = """%e = spyre.loop.empty : tensor<5x6xf32>
        %out = spyre.loop.gather [s = 3, h = 6] rows(%ids[s] : tensor<3xi64>) of axis 0 in %e[0, h] : tensor<5x6xf32>
        -> [s, h] : tensor<3x6xf32>"""
    with pytest.raises(MachineFault, match="uninitialised-read: the table"):
        run(main("%ids: tensor<3xi64>", body, "tensor<3x6xf32>"), np.array([0, 1, 2]))


def test_arithmetic_outside_of_a_nest_is_refused() -> None:
    body = "%out = arith.addf %a, %a : tensor<3xf32>"
    with pytest.raises(UnsupportedError, match=r"arith\.addf on whole tensors"):
        run(main("%a: tensor<3xf32>", body, "tensor<3xf32>"), numbers(3))

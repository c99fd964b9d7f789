"""The linalg and tensor ops of KTIR on arrays with elements that have no value, against numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.linalg.ops import IndexOp
from xdsl.ir import Operation, Region

from spyre_mlir.errors import FaultKind, MachineFault, UnsupportedError
from spyre_mlir.machine.ktdp.arithmetic import elementwise
from spyre_mlir.machine.ktdp.structured import compute, destinations, numbers
from spyre_mlir.machine.ktdp.values import Data
from tests.unit.machine.ktdp.ktir_programs import halves, read

Array = NDArray[Any]
M = halves(3, 8, 12)
SOME = np.asarray([True, False, True])


def op_of(text: str, *arguments: str) -> Operation:
    """The op of a function that takes %a, %b and so on; `text` is what makes it."""
    listed = ", ".join(f"%{name}: {type_}" for name, type_ in zip("abcdef", arguments, strict=False))
    (function,) = read(f"func.func @f({listed}) attributes {{grid = [1]}} {{\n{text}\nreturn\n}}").ops
    block = function.regions[0].block
    return next(op for op in block.ops if op.dialect_name() in ("linalg", "tensor") and op.name != "tensor.empty")


def on_scalars(region: Region, arguments: Sequence[Data], given: Mapping[Operation, Data]) -> list[Data]:
    """Runs a region of element-wise ops."""
    block = region.block
    values = dict(zip(block.args, arguments, strict=True))
    for op in block.ops:
        if op is block.last_op:
            return [values[operand] for operand in op.operands]
        operands = [values[operand] for operand in op.operands]
        values[op.results[0]] = given[op] if isinstance(op, IndexOp) else elementwise(op, operands)
    return []


def data(values: Any, defined: Any = None, kind: Any = np.float16) -> Data:
    return Data(np.asarray(values, kind), None if defined is None else np.asarray(defined))


def made(op: Operation, *inputs: Data) -> Data:
    (found,) = compute(op, list(inputs), on_scalars)
    return found


def same(found: Data, values: Any, defined: Any = None) -> None:
    """The elements that have a value, and which have."""
    wanted = np.asarray(values)
    assert found.values.shape == wanted.shape
    if defined is None:
        assert found.defined is None
        assert np.array_equal(found.values, wanted)
        return
    assert found.defined is not None
    assert np.array_equal(found.defined, np.asarray(defined))
    assert np.array_equal(found.values[found.defined], wanted[found.defined])


def unwritten(op: Operation, says: str, *inputs: Data) -> None:
    with pytest.raises(MachineFault, match=says) as caught:
        compute(op, list(inputs), on_scalars)
    assert caught.value.kind == FaultKind.UNINITIALISED_READ


BLANK = data(np.zeros(3), np.zeros(3, bool))


def test_fill_puts_one_scalar_everywhere() -> None:
    op = op_of("%r = linalg.fill ins(%a : f16) outs(%b : tensor<3xf16>) -> tensor<3xf16>", "f16", "tensor<3xf16>")
    same(made(op, data(2.5), BLANK), [2.5, 2.5, 2.5])
    assert made(op, data(2.5), BLANK).values.dtype == np.float16
    same(made(op, data(2.5, False), BLANK), np.zeros(3), [False] * 3)


def test_broadcast_repeats_along_new_dimensions() -> None:
    op = op_of(
        "%r = linalg.broadcast ins(%a : tensor<3xf16>) outs(%b : tensor<2x3x4xf16>) dimensions = [0, 2]",
        "tensor<3xf16>",
        "tensor<2x3x4xf16>",
    )
    wanted = np.broadcast_to(np.asarray([1, 2, 3])[:, None], (2, 3, 4))
    same(made(op, data([1, 2, 3]), BLANK), wanted)
    same(made(op, data([1, 2, 3], SOME), BLANK), wanted, np.broadcast_to(SOME[:, None], (2, 3, 4)))


def test_transpose_puts_dimensions_in_another_order() -> None:
    op = op_of(
        "%r = linalg.transpose ins(%a : tensor<2x3x4xf16>) outs(%b : tensor<4x2x3xf16>) permutation = [2, 0, 1]",
        "tensor<2x3x4xf16>",
        "tensor<4x2x3xf16>",
    )
    x = halves(1, 2, 3, 4)
    found = made(op, data(x), BLANK)
    same(found, x.transpose(2, 0, 1))
    assert found.values.flags.c_contiguous
    same(made(op, data(x, x > 0), BLANK), x.transpose(2, 0, 1), (x > 0).transpose(2, 0, 1))


def product(a: str, b: str, c: str) -> Operation:
    a, b, c = f"tensor<{a}>", f"tensor<{b}>", f"tensor<{c}>"
    return op_of(f"%r = linalg.matmul ins(%a, %b : {a}, {b}) outs(%c : {c}) -> {c}", a, b, c)


def test_a_product_adds_to_what_was_there() -> None:
    op = product("2x3xi32", "3x2xi32", "2x2xi32")
    a, b = data([[1, 2, 3], [4, 5, 6]], kind=np.int32), data([[1, 0], [0, 1], [1, 1]], kind=np.int32)
    found = made(op, a, b, data([[10, 20], [30, 40]], kind=np.int32))
    same(found, [[14, 25], [40, 51]])
    assert found.values.dtype == np.int32


def test_a_product_starts_from_nothing_where_nothing_was_written() -> None:
    op = product("1x2xf16", "2x1xf16", "1x1xf16")
    a, b = data([[3, 4]]), data([[5], [6]])
    same(made(op, a, b, data([[99]], [[False]])), [[39]])
    two = product("1x2xf16", "2x2xf16", "1x2xf16")
    unwritten(two, "operand 2: 1 of 2", a, data([[5, 5], [6, 6]]), data([[0, 0]], [[True, False]]))
    unwritten(op, "operand 0: 1 of 2", data([[3, 4]], [[True, False]]), b, data([[0]]))
    unwritten(op, "operand 1: 1 of 2", a, data([[5], [6]], [[True], [False]]), data([[0]]))


def test_a_product_of_halves_is_summed_in_more_than_halves() -> None:
    """2048 + 1 + 1: halves would lose each 1, a wider sum keeps both."""
    op = product("1x3xf16", "3x1xf16", "1x1xf16")
    same(made(op, data([[2048, 1, 1]]), data([[1], [1], [1]]), data([[0]])), [[2050]])


def reduction(along: list[int], shape: str, result: str, name: str = "addf") -> Operation:
    return op_of(
        f"""%r = linalg.reduce ins(%a : tensor<{shape}xf32>) outs(%b : tensor<{result}f32>) dimensions = {along}
        (%p: f32, %q: f32) {{
          %m = arith.{name} %p, %q : f32
          linalg.yield %m : f32
        }}""",
        f"tensor<{shape}xf32>",
        f"tensor<{result}f32>",
    )


@pytest.mark.parametrize(("along", "result"), [([0], "12x"), ([1], "8x"), ([0, 1], "")])
def test_a_reduction_combines_all_and_what_was_there(along: list[int], result: str) -> None:
    whole = np.arange(96.0).reshape(8, 12)
    wanted = whole.sum(axis=tuple(along))
    start = data(np.full(wanted.shape, 1000), kind=np.float32)
    op = reduction(along, "8x12", result)
    same(made(op, data(whole, kind=np.float32), start), wanted + 1000)
    nothing = data(np.full(wanted.shape, 1000), np.zeros(wanted.shape, bool), kind=np.float32)
    same(made(op, data(whole, kind=np.float32), nothing), wanted)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7])
def test_a_reduction_of_any_number_combines_each_once(count: int) -> None:
    values = 2.0 ** np.arange(count)
    op = reduction([0], f"{count}", "")
    same(made(op, data(values, kind=np.float32), data(0.0, kind=np.float32)), 2.0**count - 1)


def test_a_reduction_of_nothing_is_what_was_there() -> None:
    op = reduction([0], "0x2", "2x")
    same(made(op, data(np.zeros((0, 2)), kind=np.float32), data([3, 4], kind=np.float32)), [3, 4])


def test_a_reduction_reads_only_what_has_a_value() -> None:
    op = reduction([0], "3", "")
    unwritten(op, "the input: 1 of 3", data([1, 2, 3], SOME, np.float32), data(0.0, kind=np.float32))
    part = reduction([0], "3x2", "2x")
    three = data(np.ones((3, 2)), kind=np.float32)
    unwritten(part, "the start: 1 of 2", three, data([0, 0], [True, False], np.float32))


def generic(maps: list[str], kinds: list[str], body: str, *types: str, element: str = "f32") -> Operation:
    """The last type is the result's."""
    listed = ", ".join(f"affine_map<{one}>" for one in maps)
    names = ", ".join(f"%{letter}" for letter in "abc"[: len(types) - 1])
    ins = f"ins({names} : {', '.join(types[:-1])}) " if names else ""
    scalars = ", ".join(f"%{letter}: {element}" for letter in "pqr"[: len(types) - 1])
    out = "abcd"[len(types) - 1]
    return op_of(
        f"""%x = linalg.generic {{indexing_maps = [{listed}], iterator_types = {str(kinds).replace("'", '"')}}}
        {ins}outs(%{out} : {types[-1]}) {{
        ^bb0({scalars}{", " if scalars else ""}%o: {element}):
          {body}
          linalg.yield %y : {element}
        }} -> {types[-1]}""",
        *types,
    )


def test_a_generic_op_broadcasts_and_transposes() -> None:
    """x[i, j] + y[j], written to z[j, i]."""
    op = generic(
        ["(i, j) -> (i, j)", "(i, j) -> (j)", "(i, j) -> (j, i)"],
        ["parallel", "parallel"],
        "%y = arith.addf %p, %q : f32",
        "tensor<2x3xf32>",
        "tensor<3xf32>",
        "tensor<3x2xf32>",
    )
    x, y = np.arange(6.0).reshape(2, 3), np.asarray([10.0, 20.0, 30.0])
    out = data(np.zeros((3, 2)), np.zeros((3, 2), bool), np.float32)
    same(made(op, data(x, kind=np.float32), data(y, kind=np.float32), out), (x + y).T)
    assert out.defined is not None
    assert not out.defined.any()  # the operand stays as it was
    found = made(op, data(x, kind=np.float32), data(y, SOME, np.float32), out)
    same(found, (x + y).T, np.broadcast_to(SOME[:, None], (3, 2)))
    defined = data(np.zeros((3, 2)), kind=np.float32)
    same(made(op, data(x, kind=np.float32), data(y, SOME, np.float32), defined), (x + y).T, found.defined)


def test_a_generic_op_sums_point_by_point() -> None:
    """z[i] = z[i] + x[j, i] * y[j]."""
    op = generic(
        ["(i, j) -> (j, i)", "(i, j) -> (j)", "(i, j) -> (i)"],
        ["parallel", "reduction"],
        "%m = arith.mulf %p, %q : f32\n%y = arith.addf %o, %m : f32",
        "tensor<3x2xf32>",
        "tensor<3xf32>",
        "tensor<2xf32>",
    )
    x, y = np.arange(6.0).reshape(3, 2), np.asarray([1.0, 10.0, 100.0])
    start = data([1000, 2000], kind=np.float32)
    same(made(op, data(x, kind=np.float32), data(y, kind=np.float32), start), x.T @ y + [1000, 2000])
    assert start.values.tolist() == [1000, 2000]


def test_a_generic_op_knows_where_it_is() -> None:
    """z[i, j] = 10 i + j, and a sum of the places of a summed dimension."""
    body = "%i = linalg.index 0 : index\n%j = linalg.index 1 : index\n"
    body += "%t = arith.muli %i, %o : index\n%y = arith.addi %t, %j : index"
    op = generic(["(i, j) -> (i, j)"], ["parallel", "parallel"], body, "tensor<2x3xindex>", element="index")
    same(made(op, data(np.full((2, 3), 10), kind=np.int64)), [[0, 1, 2], [10, 11, 12]])
    body = "%j = linalg.index 1 : index\n%t = arith.addi %j, %p : index\n%y = arith.addi %t, %o : index"
    maps = ["(i, j) -> (i, j)", "(i, j) -> (i)"]
    op = generic(maps, ["parallel", "reduction"], body, "tensor<2x3xindex>", "tensor<2xindex>", element="index")
    x = data(np.arange(6).reshape(2, 3), kind=np.int64)
    same(made(op, x, data([100, 200], kind=np.int64)), [100 + 3 + 3, 200 + 3 + 12])


@pytest.mark.parametrize("map_", ["(i) -> (i + 1)", "(i) -> (0)"])
def test_a_generic_op_takes_projections_only(map_: str) -> None:
    op = generic([map_, "(i) -> (i)"], ["parallel"], "%y = arith.negf %p : f32", "tensor<4xf32>", "tensor<3xf32>")
    with pytest.raises(UnsupportedError, match=r"linalg\.generic with the map") as caught:
        compute(op, [data([1, 2, 3], kind=np.float32), data([0, 0, 0], kind=np.float32)], on_scalars)
    assert caught.value.hint == "use projections"


def test_a_diagonal_is_no_projection() -> None:
    op = generic(
        ["(i) -> (i, i)", "(i) -> (i)"], ["parallel"], "%y = arith.negf %p : f32", "tensor<3x3xf32>", "tensor<3xf32>"
    )
    with pytest.raises(UnsupportedError, match=r"linalg\.generic with the map"):
        compute(op, [data(np.eye(3), kind=np.float32), data([0, 0, 0], kind=np.float32)], on_scalars)


@pytest.mark.parametrize(
    "text",
    [
        "%r = tensor.collapse_shape %a [[0, 1]] : tensor<2x3xf16> into tensor<6xf16>",
        "%r = tensor.expand_shape %a [[0], [1, 2]] output_shape [2, 3, 1] : tensor<2x3xf16> into tensor<2x3x1xf16>",
    ],
)
def test_a_tensor_of_another_shape(text: str) -> None:
    x = np.arange(6).reshape(2, 3)
    shape = (6,) if "collapse" in text else (2, 3, 1)
    op = op_of(text, "tensor<2x3xf16>")
    same(made(op, data(x)), x.reshape(shape))
    same(made(op, data(x, x > 2)), x.reshape(shape), (x > 2).reshape(shape))


SLICE = "%a[%b, 2] [2, 3] [1, 3] : tensor<4x12xf16>"


def test_a_slice_is_taken() -> None:
    op = op_of(f"%r = tensor.extract_slice {SLICE} to tensor<2x3xf16>", "tensor<4x12xf16>", "index")
    x = np.arange(48).reshape(4, 12)
    same(made(op, data(x), data(2, kind=np.int64)), x[2:4, 2:9:3])
    same(made(op, data(x, x > 30), data(2, kind=np.int64)), x[2:4, 2:9:3], (x > 30)[2:4, 2:9:3])
    for start in (3, -1):
        says = f"elements {start} to {start + 1} along d0 of a tensor of 4"
        with pytest.raises(MachineFault, match=says) as caught:
            made(op, data(x), data(start, kind=np.int64))
        assert caught.value.kind == FaultKind.OUT_OF_BOUNDS


def test_a_slice_that_drops_a_dimension() -> None:
    op = op_of("%r = tensor.extract_slice %a[1, 0] [1, 4] [1, 1] : tensor<2x4xf16> to tensor<4xf16>", "tensor<2x4xf16>")
    same(made(op, data([[1, 2, 3, 4], [5, 6, 7, 8]])), [5, 6, 7, 8])


def test_a_slice_is_put_in() -> None:
    text = "%r = tensor.insert_slice %a into %b[0, %c] [2, 2] [1, 2] : tensor<2x2xf16> into tensor<2x5xf16>"
    op = op_of(text, "tensor<2x2xf16>", "tensor<2x5xf16>", "index")
    part, into, at = np.asarray([[1, 2], [3, 4]]), data(np.zeros((2, 5))), data(1, kind=np.int64)
    wanted = np.asarray([[0, 1, 0, 2, 0], [0, 3, 0, 4, 0]])
    same(made(op, data(part), into, at), wanted)
    assert not into.values.any()
    mask = np.asarray([[True, False], [True, True]])
    whole = np.asarray([[True, True, True, False, True], [True] * 5])
    same(made(op, data(part, mask), into, at), wanted, whole)
    nothing = data(np.zeros((2, 5)), np.zeros((2, 5), bool))
    same(made(op, data(part), nothing, at), wanted, wanted > 0)
    same(made(op, data(part, mask), nothing, at), wanted, (wanted > 0) & (wanted != 2))
    almost = data(np.zeros((2, 5)), wanted == 0)
    same(made(op, data(part), almost, at), wanted)
    with pytest.raises(MachineFault, match="elements 3 to 5 along d1 of a tensor of 5"):
        made(op, data(part), into, data(3, kind=np.int64))


def test_one_element_is_taken() -> None:
    op = op_of("%r = tensor.extract %a[%b, %c] : tensor<2x3xf16>", "tensor<2x3xf16>", "index", "index")
    x = np.arange(6).reshape(2, 3)
    one, two, three = (data(n, kind=np.int64) for n in (1, 2, 3))
    same(made(op, data(x), one, two), 5)
    same(made(op, data(x, x > 4), one, one), 4, False)
    with pytest.raises(MachineFault, match="elements 3 to 3 along d1 of a tensor of 3"):
        made(op, data(x), one, three)


def test_one_scalar_is_spread() -> None:
    op = op_of("%r = tensor.splat %a : tensor<2x2xf16>", "f16")
    same(made(op, data(7)), [[7, 7], [7, 7]])
    same(made(op, data(7, False)), np.zeros((2, 2)), np.zeros((2, 2), bool))


def test_scalars_are_put_in_a_row() -> None:
    op = op_of("%r = tensor.from_elements %a, %b : tensor<2x1xf16>", "f16", "f16")
    found = made(op, data(3), data(4))
    same(found, [[3], [4]])
    assert found.values.dtype == np.float16
    unwritten(op, "element 1: 1 of 1", data(3), data(4, False))


def test_an_empty_tensor_has_no_value() -> None:
    (function,) = read("func.func @f() attributes {grid = [1]} {\n%r = tensor.empty() : tensor<3xf16>\nreturn\n}").ops
    op = function.regions[0].block.first_op
    assert op is not None
    same(made(op), np.zeros(3), [False] * 3)
    assert destinations(op) == ()


def test_an_element_wise_op_reads_its_inputs_only() -> None:
    text = "%r = linalg.sub ins(%a, %b : tensor<3xf16>, tensor<3xf16>) outs(%c : tensor<3xf16>) -> tensor<3xf16>"
    op = op_of(text, *["tensor<3xf16>"] * 3)
    same(made(op, data([5, 6, 7]), data([1, 2, 3]), BLANK), [4, 4, 4])
    same(made(op, data([5, 6, 7], SOME), data([1, 2, 3]), BLANK), [4, 4, 4], SOME)
    assert list(destinations(op)) == [op.operands[2]]


def test_an_op_without_a_rule_is_refused() -> None:
    op = op_of("%r = tensor.dim %a, %b : tensor<3xf16>", "tensor<3xf16>", "index")
    with pytest.raises(UnsupportedError, match=r"tensor\.dim does not run in KTIR programs here"):
        compute(op, [BLANK, data(0, kind=np.int64)], on_scalars)


def test_scalar_ops_have_no_destination() -> None:
    (function,) = read("func.func @f(%a: f16) attributes {grid = [1]} {\n%r = arith.addf %a, %a : f16\nreturn\n}").ops
    op = function.regions[0].block.first_op
    assert op is not None
    same(made(op, data(2), data(2)), 4)
    assert destinations(op) == ()


def test_a_list_of_whole_numbers() -> None:
    op = op_of(
        "%r = linalg.transpose ins(%a : tensor<2x3xf16>) outs(%b : tensor<3x2xf16>) permutation = [1, 0]",
        "tensor<2x3xf16>",
        "tensor<3x2xf16>",
    )
    assert numbers(op.properties["permutation"]) == [1, 0]

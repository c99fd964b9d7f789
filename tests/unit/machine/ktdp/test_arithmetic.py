"""Ops of KTIR programs, one by one: expected values come from numpy in double precision, or by hand."""

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from spyre_mlir.machine.ktdp.arithmetic import _defined
from spyre_mlir.machine.ktdp.values import Data
from tests.unit.machine.ktdp.ktir_programs import (
    Array,
    box,
    copy,
    function,
    halves,
    load,
    run,
    store,
    tile,
    view,
)


def computed(body: str, result: str, element: str, shape: tuple[int, ...] = (16,), **inputs: Array) -> Array:
    """What a program makes of inputs that it loads whole."""
    kinds = {"float16": "f16", "float32": "f32", "int32": "i32", "int64": "i64", "bool": "i1"}
    given = ""
    for name, array in inputs.items():
        kind, extents = kinds[array.dtype.name], array.shape
        given += view(f"{name}v", f"{name}p", extents, kind)
        given += tile(f"{name}t", f"{name}v", ["c0"] * array.ndim, extents, extents, kind)
        given += load(name, f"{name}t", extents, kind)
    out = view("ov", "op", shape, element) + tile("ot", "ov", ["c0"] * len(shape), shape, shape, element)
    out += store(result, "ot", shape, element)
    names = ", ".join(f"%{name}p: index" for name in [*inputs, "o"])
    numpy_kind = next(name for name, text in kinds.items() if text == element)
    module = function(names, given, body, out)
    arrays = {f"{name}p": array for name, array in inputs.items()}
    return run(module, blank=("op",), **arrays, op=np.zeros(shape, numpy_kind))["op"]


A, B = halves(1, 16).astype(np.float32), halves(2, 16).astype(np.float32)
POSITIVE = np.abs(A) + np.float32(0.5)

FLOATS: dict[str, tuple[Callable[..., Any], int]] = {
    "arith.addf": (np.add, 2),
    "arith.subf": (np.subtract, 2),
    "arith.mulf": (np.multiply, 2),
    "arith.divf": (np.divide, 2),
    "arith.maximumf": (np.maximum, 2),
    "arith.minnumf": (np.minimum, 2),
    "arith.negf": (np.negative, 1),
    "math.absf": (np.abs, 1),
    "math.ceil": (np.ceil, 1),
    "math.cos": (np.cos, 1),
    "math.erf": (np.vectorize(math.erf), 1),
    "math.exp": (np.exp, 1),
    "math.exp2": (np.exp2, 1),
    "math.floor": (np.floor, 1),
    "math.log": (np.log, 1),
    "math.log1p": (np.log1p, 1),
    "math.log2": (np.log2, 1),
    "math.powf": (np.power, 2),
    "math.rsqrt": (lambda a: a**-0.5, 1),
    "math.sin": (np.sin, 1),
    "math.sqrt": (np.sqrt, 1),
    "math.tanh": (np.tanh, 1),
    "math.fma": (lambda a, b, c: a * b + c, 3),
}


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("element", ["f32", "f16"])
def test_floats(name: str, element: str) -> None:
    meaning, count = FLOATS[name]
    kind = np.float32 if element == "f32" else np.float16
    inputs = [array.astype(kind) for array in (POSITIVE, B, A)][:count]
    operands = ", ".join("%" + letter for letter in "abc"[:count])
    found = computed(
        f"%r = {name} {operands} : tensor<16x{element}>\n", "r", element, **dict(zip("abc", inputs, strict=False))
    )
    assert found.dtype == kind
    expected = meaning(*(array.astype(np.float64) for array in inputs))
    np.testing.assert_allclose(found, expected, rtol=2 * np.finfo(kind).eps, atol=2 * np.finfo(kind).tiny)


def test_nan_and_maximum() -> None:
    """`maximumf` gives NaN when an operand is NaN, `maxnumf` the other operand."""
    a, b = np.array([np.nan, 1, np.nan], np.float32), np.array([2, np.nan, np.nan], np.float32)
    for op, expected in (("maximumf", [np.nan] * 3), ("maxnumf", [2, 1, np.nan])):
        found = computed(f"%r = arith.{op} %a, %b : tensor<3xf32>\n", "r", "f32", (3,), a=a, b=b)
        np.testing.assert_array_equal(found, np.array(expected, np.float32))


def pointwise(op: str, source: str, target: str, count: int) -> str:
    """Scalar ops `%r = ... %p, %q` on each element; xDSL's casts take no tensors."""
    same = "affine_map<(i) -> (i)>"
    return f"""
      %empty = tensor.empty() : tensor<{count}x{target}>
      %out = linalg.generic {{indexing_maps = [{same}, {same}, {same}], iterator_types = ["parallel"]}}
          ins(%a, %b : tensor<{count}x{source}>, tensor<{count}x{source}>) outs(%empty : tensor<{count}x{target}>) {{
      ^bb0(%p: {source}, %q: {source}, %o: {target}):
        {op}
        linalg.yield %r : {target}
      }} -> tensor<{count}x{target}>
    """


P, Q = np.array([7, -7, 7, -7, -8, 1], np.int32), np.array([2, 2, -2, -2, 4, 3], np.int32)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("divsi", [3, -3, -3, 3, -2, 0]),
        ("floordivsi", [3, -4, -4, 3, -2, 0]),
        ("ceildivsi", [4, -3, -3, 4, -2, 1]),
        ("remsi", [1, -1, 1, -1, 0, 1]),
        ("divui", [3, (2**32 - 7) // 2, 0, 0, (2**32 - 8) // 4, 0]),
        ("minui", [2, 2, 7, -7, 4, 1]),
        ("maxsi", [7, 2, 7, -2, 4, 3]),
        ("addi", [9, -5, 5, -9, -4, 4]),
        ("muli", [14, -14, -14, 14, -32, 3]),
        ("xori", [5, -5, -7, 7, -4, 2]),
    ],
)
def test_integers(name: str, expected: list[int]) -> None:
    found = computed(f"%r = arith.{name} %a, %b : tensor<6xi32>\n", "r", "i32", (6,), a=P, b=Q)
    assert found.astype(np.int64).tolist() == [one if one < 2**31 else one - 2**32 for one in expected]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("slt", [0, 1, 0, 1, 1, 1]), ("ult", [0, 0, 1, 1, 0, 1]), ("ne", [1] * 6), ("sge", [1, 0, 1, 0, 0, 0])],
)
def test_comparison(name: str, expected: list[int]) -> None:
    body = pointwise(f"%m = arith.cmpi {name}, %p, %q : i32\n%r = arith.extui %m : i1 to i32", "i32", "i32", 6)
    assert computed(body, "out", "i32", (6,), a=P, b=Q).tolist() == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("olt", [1, 0, 0]), ("ult", [1, 0, 1]), ("oge", [0, 1, 0]), ("une", [1, 0, 1]), ("uno", [0, 0, 1])],
)
def test_comparison_of_floats(name: str, expected: list[int]) -> None:
    a, b = np.array([1, 2, np.nan], np.float32), np.array([2, 2, 2], np.float32)
    body = pointwise(f"%m = arith.cmpf {name}, %p, %q : f32\n%r = arith.extui %m : i1 to i32", "f32", "i32", 3)
    assert computed(body, "out", "i32", (3,), a=a, b=b).tolist() == expected


def test_conversions() -> None:
    values = np.array([1.75, -1.75, 65519.0, 1e-8], np.float32)
    body = "%h = arith.truncf %a : tensor<4xf32> to tensor<4xf16>\n"
    np.testing.assert_array_equal(computed(body, "h", "f16", (4,), a=values), values.astype(np.float16))
    body = "%b = arith.bitcast %a : tensor<4xf32> to tensor<4xi32>\n"
    assert computed(body, "b", "i32", (4,), a=values).tolist() == values.view(np.int32).tolist()
    body = pointwise("%r = arith.fptosi %p : f32 to i32", "f32", "i32", 4)
    assert computed(body, "out", "i32", (4,), a=values, b=values).tolist() == [1, -1, 65519, 0]
    body = pointwise("%r = arith.sitofp %p : i32 to f16", "i32", "f16", 6)
    assert computed(body, "out", "f16", (6,), a=P, b=Q).tolist() == P.tolist()
    body = pointwise("%m = arith.cmpi slt, %p, %q : i32\n%r = arith.extsi %m : i1 to i32", "i32", "i32", 6)
    assert computed(body, "out", "i32", (6,), a=P, b=Q).tolist() == [0, -1, 0, -1, -1, -1]
    body = pointwise("%m = arith.cmpi slt, %p, %q : i32\n%r = arith.select %m, %p, %q : i32", "i32", "i32", 6)
    assert computed(body, "out", "i32", (6,), a=P, b=Q).tolist() == np.minimum(P, Q).tolist()


M = halves(3, 8, 12)


def test_a_product_is_rounded_once() -> None:
    """The sum of 2049 ones and 1 is a half; the sum alone is none and would lose the 1."""
    one, many = np.ones((1, 2049), np.float16), np.ones((2049, 1), np.float16)
    body = """
      %z = arith.constant dense<1.0> : tensor<1x1xf16>
      %r = linalg.matmul ins(%a, %b : tensor<1x2049xf16>, tensor<2049x1xf16>)
                         outs(%z : tensor<1x1xf16>) -> tensor<1x1xf16>
    """
    assert computed(body, "r", "f16", (1, 1), a=one, b=many).item() == 2050


@pytest.mark.parametrize(("along", "shape"), [([1], (8,)), ([0], (12,)), ([0, 1], ())])
def test_reduction_with_a_region(along: list[int], shape: tuple[int, ...]) -> None:
    """The maximum of all, and of what was there."""
    dims = "x".join([*map(str, shape), "f32"])
    body = f"""
      %one = arith.constant dense<1.0> : tensor<{dims}>
      %r = linalg.reduce ins(%a : tensor<8x12xf32>) outs(%one : tensor<{dims}>) dimensions = {along}
        (%p: f32, %q: f32) {{
          %m = arith.maximumf %p, %q : f32
          linalg.yield %m : f32
        }}
    """
    if not shape:
        body += "%n = tensor.extract %r[] : tensor<f32>\n%e = tensor.splat %n : tensor<1xf32>\n"
    found = computed(body, "r" if shape else "e", "f32", shape or (1,), a=M.astype(np.float32))
    np.testing.assert_array_equal(found.reshape(shape), np.maximum(M.astype(np.float32).max(axis=tuple(along)), 1))


def test_generic() -> None:
    """A broadcast sum; and a product with a row of weights, summed."""
    head = "linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> "
    row = halves(4, 12)
    body = (
        "%d = tensor.empty() : tensor<8x12xf16>\n%r = "
        + head
        + '(i, j)>], iterator_types = ["parallel", "parallel"]} ins(%a, %b : tensor<8x12xf16>, tensor<12xf16>) outs(%d : tensor<8x12xf16>) {\n'
        "^bb0(%p: f16, %q: f16, %o: f16):\n  %s = arith.addf %p, %q : f16\n  linalg.yield %s : f16\n} -> tensor<8x12xf16>\n"
    )
    np.testing.assert_array_equal(computed(body, "r", "f16", (8, 12), a=M, b=row), M + row)
    wide, weights = M.astype(np.float32), row.astype(np.float32)
    body = (
        "%d = arith.constant dense<0.0> : tensor<8xf32>\n%r = "
        + head
        + '(i)>], iterator_types = ["parallel", "reduction"]} ins(%a, %b : tensor<8x12xf32>, tensor<12xf32>) outs(%d : tensor<8xf32>) {\n'
        "^bb0(%p: f32, %q: f32, %o: f32):\n  %m = arith.mulf %p, %q : f32\n  %s = arith.addf %o, %m : f32\n"
        "  linalg.yield %s : f32\n} -> tensor<8xf32>\n"
    )
    found = computed(body, "r", "f32", (8,), a=wide, b=weights)
    np.testing.assert_allclose(found, wide.astype(np.float64) @ weights.astype(np.float64), rtol=1e-5, atol=1e-6)


def test_shapes() -> None:
    body = """
      %t0 = tensor.empty() : tensor<12x8xf16>
      %t = linalg.transpose ins(%a : tensor<8x12xf16>) outs(%t0 : tensor<12x8xf16>) permutation = [1, 0]
      %c = tensor.collapse_shape %t [[0, 1]] : tensor<12x8xf16> into tensor<96xf16>
      %e = tensor.expand_shape %c [[0, 1]] output_shape [4, 24] : tensor<96xf16> into tensor<4x24xf16>
      %s = tensor.extract_slice %e[1, 2] [2, 6] [1, 3] : tensor<4x24xf16> to tensor<2x6xf16>
    """
    expected = M.T.reshape(4, 24)[1:3, 2:18:3]
    np.testing.assert_array_equal(computed(body, "s", "f16", (2, 6), a=M), expected)
    body += "%z = arith.constant dense<0.0> : tensor<4x24xf16>\n"
    body += "%i = tensor.insert_slice %s into %z[0, 0] [2, 6] [1, 1] : tensor<2x6xf16> into tensor<4x24xf16>\n"
    found = computed(body, "i", "f16", (4, 24), a=M)
    np.testing.assert_array_equal(found[:2, :6], expected)
    assert np.count_nonzero(found) == np.count_nonzero(expected)


def test_a_tile_in_another_order() -> None:
    """An order that swaps the dimensions transposes at the load, and back at the store."""
    x = halves(5, 4, 8)
    views = view("v", "x", (4, 8)) + view("w", "y", (8, 4)) + view("u", "z", (4, 8))
    body = tile("s", "v", ["c0", "c0"], (4, 8), (4, 8), order=[1, 0]) + tile("t", "w", ["c0", "c0"], (8, 4), (8, 4))
    body += copy("s", "t", (8, 4)) + tile("back", "u", ["c0", "c0"], (4, 8), (4, 8), order=[1, 0])
    body += store("data", "back", (8, 4))
    module = function("%x: index, %y: index, %z: index", views, body)
    found = run(module, blank=("y", "z"), x=x, y=np.zeros((8, 4), np.float16), z=np.zeros((4, 8), np.float16))
    np.testing.assert_array_equal(found["y"], x.T)
    np.testing.assert_array_equal(found["z"], x)


def test_a_view_with_strides() -> None:
    """Every second column of the upper rows."""
    x = halves(6, 8, 8)
    views = view("v", "x", (4, 4), strides=[8, 2]) + view("w", "y", (4, 4))
    body = (
        tile("s", "v", ["c0", "c0"], (4, 4), (4, 4))
        + tile("t", "w", ["c0", "c0"], (4, 4), (4, 4))
        + copy("s", "t", (4, 4))
    )
    found = run(function("%x: index, %y: index", views, body), x=x, y=np.zeros((4, 4), np.float16))["y"]
    np.testing.assert_array_equal(found, x[:4, ::2])


def test_one_tensor_of_two_parts() -> None:
    """A tile that lies in both parts, of two arrays."""
    left, right = halves(7, 8, 4), halves(8, 8, 4)
    shifted = "affine_set<(d0, d1) : (d0 >= 0, -d0 + 7 >= 0, d1 - 4 >= 0, -d1 + 7 >= 0)>"
    views = view("a", "x", (8, 4)) + view("b", "y", (8, 4), domain=shifted) + view("w", "z", (8, 4))
    both = "%d = ktdp.construct_distributed_memory_view (%a, %b : memref<8x4xf16>, memref<8x4xf16>) : memref<8x8xf16>\n"
    body = (
        tile("s", "d", ["c0", "c2"], (8, 4), (8, 8))
        + tile("t", "w", ["c0", "c0"], (8, 4), (8, 4))
        + copy("s", "t", (8, 4))
    )
    module = function("%x: index, %y: index, %z: index", views, both, body)
    found = run(module, x=left, y=right, z=np.zeros((8, 4), np.float16))["z"]
    np.testing.assert_array_equal(found, np.concatenate([left, right], axis=1)[:, 2:6])


def test_a_gather_of_pages() -> None:
    """Rows of a table of pages: the page is looked up, the row in it is not."""
    table, pages = halves(9, 6, 4, 8), np.array([5, 0, 3], np.int32)
    views = view("v", "x", (6, 4, 8)) + view("k", "p", (3,), "i32") + view("w", "y", (12, 8))
    gather = (
        "%s = ktdp.construct_indirect_access_tile intermediate_variables(%r, %c) %v[ind(%k[%r floordiv 4]), (%r mod 4), (%c)] "
        f"{{variables_space_set = {box(12, 8)}, variables_space_order = affine_map<(d0, d1) -> (d0, d1)>}} "
        ": memref<6x4x8xf16>, memref<3xi32> -> !ktdp.access_tile<12x8xindex>\n"
    )
    body = gather + tile("t", "w", ["c0", "c0"], (12, 8), (12, 8)) + copy("s", "t", (12, 8))
    module = function("%x: index, %p: index, %y: index", views, body)
    found = run(module, x=table, p=pages, y=np.zeros((12, 8), np.float16))["y"]
    np.testing.assert_array_equal(found, table[pages].reshape(12, 8))


def test_groups_of_cores() -> None:
    """Eight cores in two groups; in each, the first two get the sum of the four."""
    x = np.arange(8, dtype=np.float16).reshape(8, 1)
    body = (
        view("v", "x", (8, 1))
        + view("w", "y", (8, 1))
        + tile("s", "v", ["core", "c0"], (1, 1), (8, 1))
        + tile("t", "w", ["core", "c0"], (1, 1), (8, 1))
        + load("d", "s", (1, 1))
    )
    four = "affine_set<(i)[g] : (i - 4 * g >= 0, -i + 4 * g + 3 >= 0)>"
    two = "affine_set<(i)[g] : (i - 4 * g >= 0, -i + 4 * g + 1 >= 0)>"
    future = "!ktdp.tile_future<tensor<1x1xf16>, groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>>"
    body += f"""
      %zero = arith.constant dense<0.0> : tensor<1x1xf16>
      %f = ktdp.inter_tile_produce producer_tiles_per_group = {four} : tensor<1x1xf16> -> {future} {{
      ^bb0(%g: index):
        ktdp.yield_partial %d : tensor<1x1xf16>
      }}
      %sum = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = {two}, identity(%zero : tensor<1x1xf16>) : {future} -> tensor<1x1xf16> {{
      ^bb0(%l: tensor<1x1xf16>, %r: tensor<1x1xf16>):
        %s2 = arith.addf %l, %r : tensor<1x1xf16>
        ktdp.yield_reduced %s2 : tensor<1x1xf16>
      }}
      %place = arith.remui %core, %c4 : index
      %gets = arith.cmpi ult, %place, %c2 : index
      scf.if %gets {{
        ktdp.store %sum, %t : tensor<1x1xf16>, !ktdp.access_tile<1x1xindex>
      }}
    """
    module = function("%x: index, %y: index", body, grid="[8]")
    found = run(module, x=x, y=np.full((8, 1), -1, np.float16))["y"]
    assert found.reshape(-1).tolist() == [6, 6, -1, -1, 22, 22, -1, -1]


def test_the_first_grid_dimension_is_fastest() -> None:
    body = "%i, %j = ktdp.get_compute_tile_id : index, index\n%n = ktdp.coreid %i, %j : index\n"
    body += view("w", "y", (2, 4), "i32") + tile("t", "w", ["i", "j"], (1, 1), (2, 4), "i32")
    body += "%m = arith.index_cast %n : index to i32\n%d = tensor.splat %m : tensor<1x1xi32>\n" + store(
        "d", "t", (1, 1), "i32"
    )
    found = run(function("%y: index", body, grid="[2, 4]"), y=np.zeros((2, 4), np.int32))["y"]
    assert found.tolist() == [[0, 2, 4, 6], [1, 3, 5, 7]]


def test_a_result_has_a_value_where_all_operands_have_one() -> None:
    """Of eight elements three operands lack some each; a choice lacks those of what it picks, and of the condition."""
    numbers = np.arange(8)
    known = [(numbers >> bit & 1).astype(bool) for bit in range(3)]
    chosen = numbers < 4
    inputs = [Data(chosen, known[0]), Data(numbers, known[1]), Data(numbers, known[2])]
    assert _defined(named("math.fma"), inputs).tolist() == [n == 7 for n in range(8)]
    assert _defined(named("arith.select"), inputs).tolist() == [n in (3, 5, 7) for n in range(8)]
    assert _defined(named("math.fma"), [Data(numbers, None)] * 3) is None
    assert _defined(named("arith.addi"), [Data(numbers, None), Data(numbers, known[0])]).tolist() == [0, 1] * 4


def named(name: str) -> Any:
    return SimpleNamespace(name=name)

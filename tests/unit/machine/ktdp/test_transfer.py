"""Views, tiles, loads and stores of one core: what moves, what is masked out, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import AffineMapAttr, AffineSetAttr

from spyre_mlir.errors import FaultKind, MachineFault, UnsupportedError
from spyre_mlir.machine.ktdp.transfer import points_of
from tests.unit.machine.ktdp.ktir_programs import (
    Array,
    attribute,
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

TRIANGLE = "affine_set<(d0, d1) : (d0 >= 0, -d0 + 3 >= 0, d1 >= 0, -d1 + 3 >= 0, d0 - d1 >= 0)>"
LOWER = np.tri(4, dtype=bool)
X = halves(0, 4, 8)
BOTH = "%x: index, %y: index"


def moved(*body: str, shape: tuple[int, ...] = (4, 8), fill: float = -1.0, grid: str = "[1]", **more: Any) -> Array:
    """What a program makes of y; x is (4, 8)."""
    given = {"x": X, "y": np.full(shape, fill, np.float16), **more}
    names = ", ".join(f"%{name}: index" for name in given)
    return run(function(names, *body, grid=grid), **given)["y"]


def refused(kind: FaultKind, says: str, *body: str, **more: Any) -> MachineFault:
    with pytest.raises(MachineFault, match=says) as caught:
        moved(*body, **more)
    assert caught.value.kind == kind
    return caught.value


V, W = view("v", "x", (4, 8)), view("w", "y", (4, 8))


def test_the_points_of_a_set() -> None:
    points = points_of(attribute(TRIANGLE), attribute("affine_map<(d0, d1) -> (d1, d0)>"))
    assert (points.extents, points.order) == ((4, 4), (1, 0))
    assert points.mask is not None
    assert np.array_equal(points.mask, LOWER)
    assert points_of(attribute(box(2, 3)), attribute("affine_map<(d0, d1) -> (d0, d1)>")).mask is None


@pytest.mark.parametrize("order", ["(d0, d0)", "(d0 + 1, d1)"])
def test_an_order_lists_each_dimension_once(order: str) -> None:
    points, map_ = attribute(box(2, 3)), attribute(f"affine_map<(d0, d1) -> {order}>")
    assert isinstance(points, AffineSetAttr)
    assert isinstance(map_, AffineMapAttr)
    with pytest.raises(UnsupportedError, match="is no permutation"):
        points_of(points, map_)


def test_a_box_is_moved() -> None:
    both = tile("s", "v", ["c1", "c2"], (2, 4), (4, 8)) + tile("t", "w", ["c2", "c4"], (2, 4), (4, 8))
    wanted = np.full((4, 8), -1, np.float16)
    wanted[2:4, 4:8] = X[1:3, 2:6]
    assert np.array_equal(moved(V, W, both, copy("s", "t", (2, 4))), wanted)


def test_a_box_beyond_a_view_is_refused() -> None:
    beyond = tile("s", "v", ["c2", "c0"], (4, 8), (4, 8)) + load("data", "s", (4, 8))
    met = refused(FaultKind.OUT_OF_BOUNDS, "coordinates 2 to 5 along d0, the view has 0 to 3", V, beyond)
    assert met.place.core == 0


def test_a_start_goes_through_a_map() -> None:
    """The tile starts at (2, 1 + 3), computed from %c1 and %c2."""
    plain = tile("s", "v", ["c1", "c2"], (2, 4), (4, 8))
    mapped = plain.replace("access_tile_order", "base_map = affine_map<(i, j) -> (j, i + 3)>, access_tile_order")
    into = tile("t", "w", ["c0", "c0"], (2, 4), (4, 8))
    assert np.array_equal(moved(V, W, mapped, into, copy("s", "t", (2, 4)))[:2, :4], X[2:4, 4:8])


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 2, 0]])
def test_an_order_turns_what_is_loaded_and_turns_it_back_when_stored(order: list[int]) -> None:
    x = halves(2, 2, 3, 4)
    turned = tuple((2, 3, 4)[n] for n in order)
    views = view("v", "a", (2, 3, 4)) + view("w", "b", turned) + view("u", "c", (2, 3, 4))
    tiles = tile("s", "v", ["c0"] * 3, (2, 3, 4), (2, 3, 4), order=order)
    tiles += tile("t", "w", ["c0"] * 3, turned, turned) + tile("r", "u", ["c0"] * 3, (2, 3, 4), (2, 3, 4), order=order)
    body = copy("s", "t", turned) + store("data", "r", turned)
    program = function("%a: index, %b: index, %c: index", views, tiles, body)
    found = run(program, a=x, b=np.zeros(turned, np.float16), c=np.zeros_like(x))
    assert np.array_equal(found["b"], x.transpose(order))
    assert np.array_equal(found["c"], x)


def test_points_outside_of_a_set_are_neither_loaded_nor_stored() -> None:
    both = tile("s", "v", ["c0", "c2"], (4, 4), (4, 8), points=TRIANGLE)
    same = tile("t", "w", ["c0", "c4"], (4, 4), (4, 8), points=TRIANGLE)
    wanted = np.full((4, 8), -1, np.float16)
    wanted[:, 4:][LOWER] = X[:, 2:6][LOWER]
    assert np.array_equal(moved(V, W, both, same, copy("s", "t", (4, 4))), wanted)


def test_a_set_is_turned_with_its_tile() -> None:
    """What was loaded of the lower triangle, turned, is an upper one."""
    upper = TRIANGLE.replace("d0 - d1", "d1 - d0")
    both = tile("s", "v", ["c0", "c0"], (4, 4), (4, 8), points=TRIANGLE, order=[1, 0])
    into = tile("t", "w", ["c0", "c0"], (4, 4), (4, 8), points=upper)
    found = moved(V, W, both, into, copy("s", "t", (4, 4)))[:, :4]
    assert np.array_equal(found, np.where(LOWER.T, X[:, :4].T, -1))


def test_a_stored_element_needs_a_value() -> None:
    both = tile("s", "v", ["c0", "c0"], (4, 4), (4, 8), points=TRIANGLE)
    into = tile("t", "w", ["c0", "c0"], (4, 4), (4, 8))
    met = refused(
        FaultKind.UNINITIALISED_READ, "6 of 16 elements that are stored", V, W, both, into, copy("s", "t", (4, 4))
    )
    assert met.place.core == 0
    upper = tile("t", "w", ["c0", "c0"], (4, 4), (4, 8), points=TRIANGLE, order=[1, 0])
    refused(FaultKind.UNINITIALISED_READ, "6 of 16 elements", V, W, both, upper, copy("s", "t", (4, 4)))


# --- sizes that only the run knows

UNKNOWN = view(
    "v", "x", (4, 8), domain="affine_set<(d0, d1)[s0, s1] : (d0 >= 0, -d0 + s0 - 1 >= 0, d1 >= 0, -d1 + s1 - 1 >= 0)>"
)
UNKNOWN = UNKNOWN.replace("sizes: [4, 8]", "sizes: [%a, %b]").replace("memref<4x8x", "memref<?x?x")


def sized(rows: int, columns: int, extents: tuple[int, int], start: tuple[str, str] = ("c0", "c0")) -> Array:
    """What a tile covers of a view of x whose sizes are given by numbers; -1 where nothing is."""
    numbers = f"%a = arith.constant {rows} : index\n%b = arith.constant {columns} : index\n"
    source = tile("s", "v", [*start], extents, (4, 8)).replace("memref<4x8x", "memref<?x?x")
    into = tile("t", "u", [*start], extents, (4, 8)).replace("memref<4x8x", "memref<?x?x")
    other = UNKNOWN.replace("%v =", "%u =").replace("%x,", "%y,")
    return moved(numbers, UNKNOWN, other, source, into, copy("s", "t", extents))


def test_a_tile_beyond_a_size_that_the_run_knows_covers_what_is_there() -> None:
    wanted = np.where((np.arange(4)[:, None] < 3) & (np.arange(8) < 6), X, -1)
    assert np.array_equal(sized(3, 6, (4, 8)), wanted)
    assert np.array_equal(sized(4, 8, (4, 8)), X)
    part = np.full((4, 8), -1, np.float16)
    part[2, 4:6] = X[2, 4:6]
    assert np.array_equal(sized(3, 6, (2, 4), ("c2", "c4")), part)
    assert np.array_equal(sized(3, 6, (2, 4), ("c4", "c0")), np.full((4, 8), -1))


@pytest.mark.parametrize(("size", "wanted"), [(0, "not at least 1"), (-1, "not at least 1")])
def test_a_size_that_the_run_knows_is_positive(size: int, wanted: str) -> None:
    body = UNKNOWN.replace("[%a, %b]", "[%b, %b]").replace("%b]", "%n]").replace("[%b", "[%c1")
    refused(FaultKind.OUT_OF_BOUNDS, f"size 1 is {size}, {wanted}", f"%n = arith.constant {size} : index\n", body)


def test_a_size_is_the_one_of_the_type() -> None:
    wrong = V.replace("sizes: [4, 8]", "sizes: [4, %c4]")
    met = refused(FaultKind.OUT_OF_BOUNDS, "size 1 is 4, not 8", wrong, grid="[2]")
    assert met.place.core == 0
    right = V.replace("sizes: [4, 8]", "sizes: [4, %c8]").replace("strides: [8, 1]", "strides: [%c8, 1]")
    both = tile("s", "v", ["c0", "c0"], (4, 8), (4, 8)) + tile("t", "w", ["c0", "c0"], (4, 8), (4, 8))
    assert np.array_equal(moved(right, W, both, copy("s", "t", (4, 8))), X)


def test_a_view_in_steps_and_behind_the_start() -> None:
    """Every second column of rows 1 and 3."""
    start = "%p = arith.addi %x, %c8 : index\n"
    source = view("v", "p", (2, 4), strides=[16, 2]) + tile("s", "v", ["c0", "c0"], (2, 4), (2, 4))
    into = tile("t", "w", ["c0", "c0"], (2, 4), (4, 8))
    assert np.array_equal(moved(start, source, W, into, copy("s", "t", (2, 4)))[:2, :4], X[1::2, ::2])


# --- scratchpads


def local(of: str, space: str = "ct_local") -> str:
    return view("l", of, (2, 8), "f16", space) + tile("k", "l", ["c0", "c0"], (2, 8), (2, 8))


MINE = "%row = arith.muli %core, %c2 : index\n"
ROWS = tile("s", "v", ["row", "c0"], (2, 8), (4, 8)) + tile("t", "w", ["row", "c0"], (2, 8), (4, 8))


def test_each_core_has_a_scratchpad() -> None:
    keep = copy("s", "k", (2, 8)) + load("back", "k", (2, 8)) + store("back", "t", (2, 8))
    assert np.array_equal(moved(MINE, V, W, ROWS, local("c64"), keep, grid="[2]"), X)
    read = load("back", "k", (2, 8)) + store("back", "t", (2, 8))
    refused(FaultKind.UNINITIALISED_READ, "LX of core 0", MINE, V, W, ROWS, local("c64"), read, grid="[2]")


def test_a_core_may_look_into_another_s_scratchpad() -> None:
    only = "%one = arith.cmpi eq, %core, %c1 : index\nscf.if %one {\n"
    far = local("c64", "ct_local, ct_id = 0") + copy("s", "k", (2, 8)) + load("back", "k", (2, 8))
    found = moved(MINE, V, W, ROWS, only, far, store("back", "t", (2, 8)), "}\n", grid="[2]")
    assert np.array_equal(found, np.concatenate([np.full((2, 8), -1), X[2:]]))
    beyond = local("c64", "ct_local, ct_id = 2")
    met = refused(FaultKind.OUT_OF_BOUNDS, "core 2 is not in the grid", MINE, V, W, ROWS, beyond, grid="[2]")
    assert met.place.core == 0


def test_a_view_keeps_its_bytes_of_the_scratchpad() -> None:
    last = 2 * 1024 * 1024 // 2 - 16
    moved(f"%p = arith.constant {last} : index\n", local("p"))
    refused(FaultKind.OUT_OF_BOUNDS, "leave the scratchpad", f"%p = arith.constant {last + 1} : index\n", local("p"))


# --- parts


def parts(second: str = "affine_set<(d0) : (d0 - 32 >= 0, -d0 + 63 >= 0)>", type_: str = "64") -> str:
    one = view("a", "x", (32,)) + view("b", "z", (32,), domain=second)
    return one + (
        f"%d = ktdp.construct_distributed_memory_view (%a, %b : memref<32xf16>, memref<32xf16>) : memref<{type_}xf16>\n"
    )


def test_one_tensor_of_two_arrays() -> None:
    z, into = halves(5, 32), tile("t", "w", ["c0"], (8,), (32,))
    start = "%n = arith.constant 28 : index\n"
    body = tile("s", "d", ["n"], (8,), (64,)) + into + copy("s", "t", (8,))
    found = moved(start, parts(), view("w", "y", (32,)), body, z=z)
    assert np.array_equal(found.reshape(-1)[:8], np.concatenate([X.reshape(-1)[28:], z[:4]]))


def test_parts_of_parts_and_a_size_that_the_parts_tell() -> None:
    z = halves(5, 32)
    nested = parts() + view("e", "y", (32,), domain="affine_set<(d0) : (d0 - 64 >= 0, -d0 + 95 >= 0)>")
    nested += "%h = ktdp.construct_distributed_memory_view (%d, %e : memref<64xf16>, memref<32xf16>) : memref<?xf16>\n"
    body = tile("s", "h", ["n"], (2,), (64,)).replace("memref<64x", "memref<?x")
    into = tile("t", "h", ["m"], (2,), (64,)).replace("memref<64x", "memref<?x")
    place = "%n = arith.constant 31 : index\n%m = arith.constant {} : index\n"
    found = moved(place.format(94), nested, body, into, copy("s", "t", (2,)), z=z)
    assert found.reshape(-1)[30:].tolist() == [X[3, 7], z[0]]
    says = "coordinates 95 to 96 along d0, the view has 0 to 95"
    refused(FaultKind.OUT_OF_BOUNDS, says, place.format(95), nested, body, into, copy("s", "t", (2,)), z=z)


# --- indices


def gather(subscripts: str, extents: tuple[int, int] = (3, 8), points: str = "", of: str = "4x8") -> str:
    return (
        f"%s = ktdp.construct_indirect_access_tile intermediate_variables(%i, %j) %v[{subscripts}] "
        f"{{variables_space_set = {points or box(*extents)}, "
        "variables_space_order = affine_map<(d0, d1) -> (d0, d1)>} "
        f": memref<{of}xf16>, memref<4xi32> -> !ktdp.access_tile<{extents[0]}x{extents[1]}xindex>\n"
    )


K = view("k", "z", (4,), "i32")
INDICES = np.asarray([3, 1, 1, 0], np.int32)
PICKED = tile("t", "w", ["c0", "c0"], (3, 8), (4, 8)) + copy("s", "t", (3, 8))


def test_rows_are_gathered() -> None:
    found = moved(V, K, W, gather("ind(%k[%i]), (%j)"), PICKED, z=INDICES)
    assert np.array_equal(found[:3], X[[3, 1, 1]])
    found = moved(V, K, W, gather("ind(%k[%i + %c1]), (%j)"), PICKED, z=INDICES)
    assert np.array_equal(found[:3], X[[1, 1, 0]])


def test_columns_are_gathered_and_rows_computed() -> None:
    body = gather("(%i), ind(%k[%j])", (4, 4)) + tile("t", "w", ["c0", "c0"], (4, 4), (4, 8)) + copy("s", "t", (4, 4))
    assert np.array_equal(moved(V, K, W, body, z=INDICES)[:, :4], X[:, [3, 1, 1, 0]])


@pytest.mark.parametrize("wrong", [4, -1])
def test_an_index_that_is_none_is_refused(wrong: int) -> None:
    indices = np.asarray([3, wrong, 1, 0], np.int32)
    says = f"index {wrong} of dimension 0, which has 4"
    met = refused(FaultKind.INDEX_OUT_OF_RANGE, says, V, K, W, gather("ind(%k[%i]), (%j)"), PICKED, z=indices)
    assert met.place.core == 0


@pytest.mark.parametrize(("subscript", "index"), [("%j + 1", 8), ("%j - 1", -1)])
def test_a_computed_coordinate_beyond_the_view_is_refused(subscript: str, index: int) -> None:
    says = f"index {index} of dimension 1, which has 8"
    body = gather(f"ind(%k[%i]), ({subscript})")
    refused(FaultKind.INDEX_OUT_OF_RANGE, says, V, K, W, body, PICKED, z=INDICES)


def test_only_points_that_count_need_an_index() -> None:
    """The last row's index is none, and the set leaves it out."""
    points = box(3, 8).replace(")>", ", -8 * d0 - d1 + 15 >= 0)>")
    indices = np.asarray([3, 1, 9, 0], np.int32)
    same = (
        gather("(%i), (%j)", points=points).replace("%s =", "%t =").replace("%v[", "%w[").replace(", memref<4xi32>", "")
    )
    body = gather("ind(%k[%i]), (%j)", points=points) + same + copy("s", "t", (3, 8))
    found = moved(V, K, W, body, z=indices)
    assert np.array_equal(found[:2], X[[3, 1]])
    assert (found[2:] == -1).all()


@pytest.mark.parametrize(("subscript", "span"), [("%i + 2", "2 to 4"), ("%i - 1", "-1 to 1")])
def test_an_index_view_is_not_left(subscript: str, span: str) -> None:
    says = f"index view: coordinates {span} along d0 of 4"
    met = refused(FaultKind.OUT_OF_BOUNDS, says, V, K, W, gather(f"ind(%k[{subscript}]), (%j)"), PICKED, z=INDICES)
    assert met.place.core == 0


def test_tensors_of_parts_are_not_gathered_from() -> None:
    whole = parts() + view("v2", "y", (8,))
    text = (
        "%s = ktdp.construct_indirect_access_tile intermediate_variables(%i) %d[ind(%k[%i])] "
        f"{{variables_space_set = {box(4)}, variables_space_order = affine_map<(d0) -> (d0)>}} "
        ": memref<64xf16>, memref<4xi32> -> !ktdp.access_tile<4xindex>\n"
    )
    index = view("k", "y", (4,), "i32")
    with pytest.raises(UnsupportedError, match="indirect tile of a distributed view") as caught:
        run(function("%x: index, %z: index, %y: index", whole, index, text), x=X, z=halves(1, 32), y=INDICES)
    assert caught.value.hint == "gather from each part"


def test_indices_do_not_lie_in_parts() -> None:
    index = parts().replace("xf16", "xi32")
    text = (
        "%s = ktdp.construct_indirect_access_tile intermediate_variables(%i) %w[ind(%d[%i])] "
        f"{{variables_space_set = {box(4)}, variables_space_order = affine_map<(d0) -> (d0)>}} "
        ": memref<4xf16>, memref<64xi32> -> !ktdp.access_tile<4xindex>\n"
    )
    program = function("%x: index, %z: index, %y: index", index, view("w", "y", (4,)), text)
    with pytest.raises(UnsupportedError, match="a distributed index view does not run"):
        run(program, x=np.zeros(32, np.int32), z=np.zeros(32, np.int32), y=halves(0, 4))

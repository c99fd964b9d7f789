"""Arguments of KTIR functions: which are pointers, to what, and whether they are read or written."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import IndexType, ModuleOp, f16, i32
from xdsl.dialects.func import FuncOp

from spyre_mlir.errors import InputError
from spyre_mlir.machine.ktdp.arguments import (
    KtirArgument,
    argument_names,
    arguments,
    find_kernel,
    kernels,
    only_stored_through,
)
from tests.unit.machine.ktdp.ktir_programs import box, copy, function, load, read, store, tile, view

BOTH = "%x: index, %y: index"


def functions(*names: str) -> ModuleOp:
    """A module with empty functions, a declaration, and another module."""
    made = "".join(f"func.func @{name}() attributes {{grid = [1]}} {{\nreturn\n}}\n" for name in names)
    return read("module {\n}\n" + made + "func.func private @elsewhere()\n")


def described(*body: str, of: str = BOTH) -> dict[str, KtirArgument]:
    return {one.name: one for one in arguments(find_kernel(function(of, *body)))}


@pytest.mark.parametrize(
    ("names", "run"),
    [
        (["main_0", "main_1", "main_2"], ["main_0", "main_1", "main_2"]),
        (["main_0"], ["main_0"]),
        (["softmax"], ["softmax"]),
        (["helper", "main"], ["main"]),
        (["main", "main_1"], ["main"]),
    ],
)
def test_functions_run_in_the_order_of_their_numbers(names: list[str], run: list[str]) -> None:
    assert [one.sym_name.data for one in kernels(functions(*names))] == run


@pytest.mark.parametrize("names", [["a", "b"], [], ["main_0", "main_2"]])
def test_it_must_be_known_what_to_run(names: list[str]) -> None:
    with pytest.raises(InputError, match="there is no function 'main'") as caught:
        kernels(functions(*names))
    assert caught.value.hint == f"there are: {', '.join(names) or 'none'}"


def test_a_function_is_found_by_its_name() -> None:
    module = functions("main", "other")
    assert find_kernel(module, "other").sym_name.data == "other"
    assert find_kernel(module).sym_name.data == "main"
    assert find_kernel(functions("other")).sym_name.data == "other"
    with pytest.raises(InputError, match="there is no function 'elsewhere'"):
        find_kernel(module, "elsewhere")


def test_arguments_without_a_name_of_their_own_are_numbered() -> None:
    (kernel,) = (op for op in function("%x: index, %0: index, %n: i32").walk() if isinstance(op, FuncOp))
    assert argument_names(kernel) == ["x", "arg1", "n"]
    kernel.args[2].name_hint = "x"
    assert argument_names(kernel) == ["arg0", "arg1", "arg2"]


def test_what_is_loaded_is_read_and_what_is_stored_is_written() -> None:
    views = view("v", "x", (2, 4)) + view("w", "y", (4,), "i32")
    body = tile("s", "v", ["c0", "c0"], (2, 4), (2, 4)) + tile("t", "w", ["c0"], (4,), (4,), "i32")
    values = load("a", "s", (2, 4)) + "%b = arith.constant dense<1> : tensor<4xi32>\n" + store("b", "t", (4,), "i32")
    found = described(views, body, values, of="%x: index, %y: index, %n: index")
    assert found["x"] == KtirArgument("x", (2, 4), f16, pointer=True, read=True, written=False)
    assert found["y"] == KtirArgument("y", (4,), i32, pointer=True, read=False, written=True)
    assert found["n"] == KtirArgument("n", None, IndexType(), pointer=False, read=False, written=False)


def test_what_is_loaded_and_stored_is_both() -> None:
    body = tile("s", "v", ["c0"], (4,), (4,)) + copy("s", "s", (4,))
    found = described(view("v", "x", (4,)), body)["x"]
    assert (found.read, found.written) == (True, True)
    unused = described(view("v", "x", (4,)))["x"]
    assert (unused.pointer, unused.read, unused.written) == (True, False, False)


def test_the_largest_view_tells_the_shape() -> None:
    assert described(view("v", "x", (2, 4)), view("w", "x", (4, 4)), view("u", "x", (3,)))["x"].shape == (4, 4)


@pytest.mark.parametrize(
    ("shape", "strides", "extents"),
    [
        ((2, 4), [4, 1], (2, 4)),
        ((2, 4), [8, 1], (12,)),  # the last element is 8 + 3
        ((2, 4), [1, 2], (8,)),  # 1 + 6
        ((5,), [1], (5,)),
    ],
)
def test_a_view_in_another_order_tells_how_far_it_reaches(
    shape: tuple[int, ...], strides: list[int], extents: tuple[int, ...]
) -> None:
    assert described(view("v", "x", shape, strides=strides))["x"].shape == extents


def test_a_view_behind_the_start_counts_what_is_before_it() -> None:
    """Elements 6 to 13 of x: something before them stays as it was, so the array is read."""
    behind = "%two = arith.constant 2 : index\n%p = arith.addi %x, %c4 : index\n%q = arith.addi %two, %p : index\n"
    body = view("v", "q", (2, 4)) + tile("t", "v", ["c0", "c0"], (2, 4), (2, 4))
    write = "%b = arith.constant dense<1.0> : tensor<2x4xf16>\n" + store("b", "t", (2, 4))
    found = described(behind, body, write)["x"]
    assert (found.shape, found.pointer, found.read, found.written) == ((14,), True, True, True)
    with_start = described(behind, view("u", "x", (4,)), body, write)["x"]
    assert (with_start.shape, with_start.read, with_start.written) == ((14,), False, True)


def test_a_start_that_is_computed_tells_nothing() -> None:
    moved = "%p = arith.addi %x, %y : index\n%q = arith.muli %y, %c2 : index\n" + view("v", "p", (4,))
    found = described(moved)
    assert not found["x"].pointer
    assert not found["y"].pointer


def test_a_size_that_only_the_run_knows_tells_no_shape() -> None:
    unknown = view("v", "x", (4,)).replace("sizes: [4]", "sizes: [%y]").replace("memref<4x", "memref<?x")
    found = described(unknown)
    assert (found["x"].pointer, found["x"].shape) == (True, None)
    assert not found["y"].pointer
    assert described(unknown, view("w", "x", (6,)))["x"].shape == (6,)
    stride = view("v", "x", (2, 4)).replace("strides: [4, 1]", "strides: [%y, 1]")
    assert described(stride)["x"].shape is None


DISTRIBUTED = (
    view("a", "x", (4,))
    + view("b", "y", (4,), domain="affine_set<(d0) : (d0 - 4 >= 0, -d0 + 7 >= 0)>")
    + "%d = ktdp.construct_distributed_memory_view (%a, %b : memref<4xf16>, memref<4xf16>) : memref<8xf16>\n"
    + tile("t", "d", ["c0"], (8,), (8,))
)
ONES = "%ones = arith.constant dense<1.0> : tensor<8xf16>\n"


def test_parts_of_a_tensor_are_used_as_it_is() -> None:
    loaded = described(DISTRIBUTED, load("e", "t", (8,)))
    assert [(one.read, one.written) for one in loaded.values()] == [(True, False), (True, False)]
    stored = described(DISTRIBUTED, ONES, store("ones", "t", (8,)))
    assert [(one.read, one.written) for one in stored.values()] == [(False, True), (False, True)]


SCATTER = (
    view("v", "x", (16,))
    + view("k", "y", (4,), "i32")
    + "%s = ktdp.construct_indirect_access_tile intermediate_variables(%i) %v[ind(%k[%i])] {variables_space_set = "
    + box(4)
    + ", variables_space_order = affine_map<(d0) -> (d0)>} : memref<16xf16>, memref<4xi32> -> !ktdp.access_tile<4xindex>\n"
    + "%f = arith.constant dense<1.0> : tensor<4xf16>\n"
    + store("f", "s", (4,))
)


def test_indices_are_read_where_something_is_stored_through_them() -> None:
    found = described(SCATTER)
    assert (found["x"].read, found["x"].written) == (False, True)
    assert (found["y"].read, found["y"].written) == (True, False)


def stored_through(*body: str) -> set[str] | None:
    return only_stored_through(find_kernel(function(BOTH, *body)))


def test_the_arguments_that_stores_go_through() -> None:
    views = view("v", "x", (8,)) + view("w", "y", (8,))
    into = tile("s", "v", ["c0"], (8,), (8,)) + tile("t", "w", ["c0"], (8,), (8,))
    assert stored_through(views, into, copy("s", "t", (8,))) == {"y"}
    assert stored_through(views, into, load("e", "t", (8,))) == set()
    assert stored_through(SCATTER) == {"x"}
    assert stored_through(DISTRIBUTED, ONES, store("ones", "t", (8,))) == {"x", "y"}


def test_a_scratchpad_is_no_argument() -> None:
    local = view("v", "c0", (8,), "f16", "ct_local") + tile("t", "v", ["c0"], (8,), (8,))
    assert stored_through(local, ONES, store("ones", "t", (8,))) == set()


def test_a_store_to_a_computed_address_may_go_anywhere() -> None:
    moved = "%p = arith.addi %x, %c4 : index\n" + view("v", "p", (8,)) + tile("t", "v", ["c0"], (8,), (8,))
    assert stored_through(moved, ONES, store("ones", "t", (8,))) is None
    inside = view("v", "i", (8,)) + tile("t", "v", ["c0"], (8,), (8,)) + store("ones", "t", (8,))
    assert stored_through(ONES, "scf.for %i = %c0 to %c4 step %c1 {\n" + inside + "}\n") is None

"""Programs that looser interpreters run and that the machine refuses, each beside one that is right."""

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.errors import InputError, MachineFault, UnsupportedError
from spyre_mlir.machine.ktdp import run_ktir
from tests.end_to_end.ktir.fault_programs import BARRIER, BOTH, V, W, copy_program, fails, starts
from tests.unit.machine.ktdp.ktir_programs import box, copy, function, halves, load, run, store, tile, view

HALF = np.float16


def test_a_right_copy() -> None:
    x = halves(0, 16)
    found = run(copy_program(V, W, starts("c8", "c0")), x=x, y=np.zeros(16, HALF))["y"]
    assert np.array_equal(found, np.concatenate([x[8:], np.zeros(8, HALF)]))


@pytest.mark.parametrize(("p", "q"), [("c16", "c0"), ("c0", "c16"), ("c64", "c0")])
def test_beyond_the_view(p: str, q: str) -> None:
    program = copy_program(V, W, starts(p, q))
    fails(program, "out-of-bounds", "the view has 0 to 15", x=np.zeros(128, HALF), y=np.zeros(128, HALF))


def test_a_size_that_is_not_the_type_s() -> None:
    """A value decides a size that the type already knows."""
    wrong = V.replace("sizes: [16]", "sizes: [%c8]")
    arrays = {"x": np.zeros(16, HALF), "y": np.zeros(16, HALF)}
    fails(copy_program(wrong, W, starts("c0", "c0")), "out-of-bounds", "size 0 is 8, not 16", **arrays)
    run(copy_program(V.replace("sizes: [16]", "sizes: [%c16]"), W, starts("c0", "c0")), **arrays)


def test_coordinates_that_the_view_leaves_out() -> None:
    triangle = "affine_set<(d0, d1) : (d0 >= 0, -d0 + 3 >= 0, d1 >= 0, -d1 + 3 >= 0, d0 - d1 >= 0)>"
    views = view("v", "x", (4, 4), domain=triangle) + view("w", "y", (4, 4))
    into = tile("t", "w", ["c0", "c0"], (2, 1), (4, 4))
    arrays = {"x": halves(0, 4, 4), "y": np.zeros((4, 4), HALF)}
    lower = tile("s", "v", ["c2", "c1"], (2, 1), (4, 4))
    run(function("%x: index, %y: index", views, lower, into, copy("s", "t", (2, 1))), **arrays)
    upper = tile("s", "v", ["c0", "c1"], (2, 1), (4, 4))
    program = function("%x: index, %y: index", views, upper, into, copy("s", "t", (2, 1)))
    fails(program, "out-of-bounds", "the view's set leaves out", **arrays)


@pytest.mark.parametrize(
    ("symbol", "says"), [("c8", None), ("c4", "two parts hold"), ("c16", "4 coordinates are in no part")]
)
def test_parts_that_are_not_one_tensor(symbol: str, says: str | None) -> None:
    """The second part begins where a value says, which only the run can know."""
    moved = "affine_set<(d0)[s0] : (d0 - s0 >= 0, -d0 + s0 + 7 >= 0)>"
    first, second = view("a", "x", (8,)), view("b", "y", (8,), domain=moved).replace("[8]", f"[%{symbol}]", 1)
    second = second.replace("memref<8xf16>", "memref<?xf16>")
    both = "%d = ktdp.construct_distributed_memory_view (%a, %b : memref<8xf16>, memref<?xf16>) : memref<16xf16>\n"
    body = tile("s", "d", ["c4"], (8,), (16,)) + load("data", "s", (8,))
    program = function("%x: index, %y: index", first, second, both, body)
    arrays = {"x": halves(0, 8), "y": halves(1, 16)}
    if says is None:
        run(program, **arrays)
    else:
        fails(program, "out-of-bounds", says, **arrays)


def test_a_view_beyond_its_array() -> None:
    fails(
        copy_program(V, W, starts("c8", "c0")), "out-of-bounds", "leave x", x=np.zeros(12, HALF), y=np.zeros(16, HALF)
    )
    fails(
        copy_program(V, W, starts("c0", "c8")), "out-of-bounds", "leave y", x=np.zeros(16, HALF), y=np.zeros(12, HALF)
    )


def test_an_address_of_nothing() -> None:
    program = copy_program(view("v", "c4", (16,)), W, starts("c0", "c0"))
    fails(program, "out-of-bounds", "are in no array", x=np.zeros(16, HALF), y=np.zeros(16, HALF))


def test_an_array_of_other_numbers() -> None:
    program = copy_program(V, W, starts("c0", "c0"))
    with pytest.raises(InputError, match="elements of float16, got float32"):
        run(program, x=np.zeros(16, np.float32), y=np.zeros(16, HALF))


def test_one_array_seen_as_two_types() -> None:
    program = function(
        "%x: index, %y: index",
        "%half = arith.divui %x, %c2 : index\n",
        V,
        view("w", "half", (4,), "f32"),
        tile("t", "w", ["c0"], (4,), (4,), "f32"),
        load("d", "t", (4,), "f32"),
    )
    fails(
        program,
        "wrong-format",
        "x hold float16|elements of 2 bytes|hold float16, not float32",
        x=np.zeros(16, HALF),
        y=np.zeros(16, HALF),
    )


def test_contents_that_nobody_wrote() -> None:
    program = copy_program(V, W, starts("c0", "c0"))
    with pytest.raises(MachineFault, match=r"16 bytes of x.*never written") as caught:
        run(program, blank=("x",), x=np.zeros(16, HALF), y=np.zeros(16, HALF))
    assert caught.value.kind == "uninitialised-read"


def test_tensor_empty_is_no_data() -> None:
    empty = "%data = tensor.empty() : tensor<8xf16>\n"
    into = tile("t", "w", ["c0"], (8,), (16,))
    arrays = {"x": np.zeros(16, HALF), "y": np.zeros(16, HALF)}
    program = function("%x: index, %y: index", W, empty, into, store("data", "t", (8,)))
    fails(program, "uninitialised-read", "8 of 8 elements that are stored", **arrays)
    summed = "%data2 = arith.addf %data, %data : tensor<8xf16>\n"
    program = function("%x: index, %y: index", W, empty, summed, into, store("data2", "t", (8,)))
    fails(program, "uninitialised-read", "8 of 8 elements that are stored", **arrays)


def test_points_that_the_set_leaves_out() -> None:
    """Elements outside of a set are not read, and have no value."""
    triangle = "affine_set<(d0, d1) : (d0 >= 0, -d0 + 3 >= 0, d1 >= 0, -d1 + 3 >= 0, d0 - d1 >= 0)>"
    views = view("v", "x", (4, 4)) + view("w", "y", (4, 4))
    part = tile("s", "v", ["c0", "c0"], (4, 4), (4, 4), points=triangle)
    same, all_ = (tile("t", "w", ["c0", "c0"], (4, 4), (4, 4), **more) for more in ({"points": triangle}, {}))
    x = halves(0, 4, 4)
    arrays = {"x": x, "y": np.full((4, 4), 9, HALF)}
    found = run(function("%x: index, %y: index", views, part, same, copy("s", "t", (4, 4))), **arrays)["y"]
    assert np.array_equal(found, np.where(np.tri(4, dtype=bool), x, HALF(9)))
    program = function("%x: index, %y: index", views, part, all_, copy("s", "t", (4, 4)))
    fails(program, "uninitialised-read", "6 of 16 elements that are stored", **arrays)


# --- cores --------------------------------------------------------------------------------------------------------


# --- scratchpads --------------------------------------------------------------------------------------------------


def test_tensors_that_do_not_fit() -> None:
    big = "%z = arith.constant 0.0 : f32\n" + "".join(
        f"%e{n} = tensor.empty() : tensor<512x512xf32>\n"
        f"%b{n} = linalg.fill ins(%z : f32) outs(%e{n} : tensor<512x512xf32>) -> tensor<512x512xf32>\n"
        for n in range(3)
    )
    use = "%s = arith.addf %b0, %b1 : tensor<512x512xf32>\n"
    fails(function("%x: index", big, use), "lx-overflow", "do not fit 2097152 bytes", x=np.zeros(1, HALF))
    # Each dies before the next one is made.
    run(function("%x: index", big), x=np.zeros(1, HALF))


LX = view("w", "place", (64,), "f16", "ct_local")


def in_lx(place: int, *body: str, grid: str = "[1]") -> ModuleOp:
    return function(
        "%x: index", f"%place = arith.constant {place} : index\n", view("v", "x", (64,)), LX, *body, grid=grid
    )


KEEP = tile("s", "v", ["c0"], (64,), (64,)) + tile("t", "w", ["c0"], (64,), (64,))


def test_a_view_in_the_scratchpad() -> None:
    last = (2 * 1024 * 1024 - 128) // 2
    run(in_lx(last, KEEP, copy("s", "t", (64,)), load("back", "t", (64,))), x=halves(0, 64))
    fails(in_lx(last + 1, KEEP, copy("s", "t", (64,))), "out-of-bounds", "leave the scratchpad", x=halves(0, 64))
    fails(
        in_lx(0, KEEP, load("back", "t", (64,))), "uninitialised-read", "LX of core 0.*never written", x=halves(0, 64)
    )


def test_a_view_read_as_other_numbers() -> None:
    other = view("u", "c0", (32,), "f32", "ct_local") + tile("a", "u", ["c0"], (32,), (32,), "f32")
    program = in_lx(0, KEEP, copy("s", "t", (64,)), other, load("back", "a", (32,), "f32"))
    fails(program, "wrong-format", "hold float16, not float32", x=halves(0, 64))


def test_a_view_of_another_core() -> None:
    far = LX.replace("ct_local", "ct_local, ct_id = 0")
    body = KEEP + "%first = arith.cmpi eq, %core, %c0 : index\nscf.if %first {\n" + copy("s", "t", (64,)) + "}\n"
    late = far.replace("%w", "%far") + tile("o", "far", ["c0"], (64,), (64,)) + load("theirs", "o", (64,))
    run(in_lx(0, body, BARRIER.replace("TEAM", BOTH), late, grid="[2]"), x=halves(0, 64))
    fails(in_lx(0, body, late, grid="[2]"), "read-write-race", "LX of core 0 that core 0 writes", x=halves(0, 64))
    beyond = late.replace("ct_id = 0", "ct_id = 5")
    fails(in_lx(0, beyond, grid="[2]"), "out-of-bounds", "core 5 is not in the grid", x=halves(0, 64))


# --- indices, loops, numbers --------------------------------------------------------------------------------------

GATHER = (
    "%s = ktdp.construct_indirect_access_tile intermediate_variables(%i) %v[ind(%ids[%i])] {variables_space_set = "
    + box(4)
    + ", variables_space_order = affine_map<(d0) -> (d0)>} : memref<16xf16>, memref<4xi32> -> !ktdp.access_tile<4xindex>\n"
)


def gather(*body: str) -> ModuleOp:
    return function("%x: index, %k: index", V, view("ids", "k", (4,), "i32"), GATHER, *body)


def test_indices() -> None:
    x = halves(0, 16)
    ids = np.array([3, 1, 1, 15], np.int32)
    run(gather(load("d", "s", (4,))), x=x, k=ids)
    for wrong in (16, -1):
        bad = np.array([0, wrong, 1, 2], np.int32)
        fails(
            gather(load("d", "s", (4,))),
            "index-out-of-range",
            f"index {wrong} of dimension 0, which has 16",
            x=x,
            k=bad,
        )


def test_a_scatter_to_one_place() -> None:
    into = "%data = arith.constant dense<1.0> : tensor<4xf16>\n" + store("data", "s", (4,))
    x = np.zeros(16, HALF)
    found = run(gather(into), x=x, k=np.array([3, 1, 2, 15], np.int32))["x"]
    assert np.flatnonzero(found).tolist() == [1, 2, 3, 15]
    fails(gather(into), "double-write", "two elements of one store", x=x, k=np.array([3, 1, 1, 15], np.int32))


@pytest.mark.parametrize("step", [0, -1])
def test_a_loop_without_end(step: int) -> None:
    loop = f"%step = arith.constant {step} : index\nscf.for %i = %c0 to %c4 step %step {{\n}}\n"
    fails(function("%x: index", loop), "loop-step", f"step {step}", x=np.zeros(1, HALF))


def test_a_division_by_zero() -> None:
    fails(function("%x: index", "%q = arith.divui %c4, %c0 : index\n"), "division-by-zero", "zero", x=np.zeros(1, HALF))


def test_arguments() -> None:
    program = copy_program(V, W, starts("c0", "c0"))
    with pytest.raises(InputError, match="argument 'y' has no value"):
        run(program, x=np.zeros(16, HALF))
    with pytest.raises(InputError, match="'y' points to an array"):
        run(program, x=np.zeros(16, HALF), y=3)
    with pytest.raises(InputError, match="no argument 'z'"):
        run(program, x=np.zeros(16, HALF), y=np.zeros(16, HALF), z=np.zeros(16, HALF))
    with pytest.raises(InputError, match="there is no function 'g'"):
        run_ktir(program, "g", {})


def test_an_op_without_a_rule() -> None:
    with pytest.raises(UnsupportedError, match=r"math\.cbrt does not run"):
        run(function("%x: index", "%a = arith.constant 1.0 : f16\n%b = math.cbrt %a : f16\n"), x=np.zeros(1, HALF))


FILL = """
  %h = arith.constant dense<1.0> : tensor<4x4xf16>
  %s = arith.constant dense<1.0> : tensor<4x4xf32>
  %v = arith.constant dense<1.0> : tensor<1x4xf16>
"""


@pytest.mark.parametrize(
    "op",
    [
        "linalg.add ins(%h, %s : tensor<4x4xf16>, tensor<4x4xf32>) outs(%s : tensor<4x4xf32>)",
        "linalg.add ins(%h, %v : tensor<4x4xf16>, tensor<1x4xf16>) outs(%h : tensor<4x4xf16>)",
        "linalg.matmul ins(%h, %s : tensor<4x4xf16>, tensor<4x4xf32>) outs(%s : tensor<4x4xf32>)",
        "linalg.matmul ins(%h, %v : tensor<4x4xf16>, tensor<1x4xf16>) outs(%h : tensor<4x4xf16>)",
    ],
)
def test_operands_that_do_not_fit_are_no_program(op: str) -> None:
    """The verifier sees it; numpy would make them fit."""
    with pytest.raises(VerifyException):
        function("%x: index", FILL, f"%r = {op} -> {op.rpartition(' : ')[2].removesuffix(')')}\n")


def test_a_type_that_is_not_the_result_s() -> None:
    shape = "%r = tensor.collapse_shape %h [[0, 1]] : tensor<4x4xf16> into tensor<16xf16>\n"
    run(function("%x: index", FILL, shape), x=np.zeros(1, HALF))
    wrong = "%r = tensor.extract_slice %h[0, 0] [2, 2] [1, 1] : tensor<4x4xf16> to tensor<4xf32>\n"
    fails(function("%x: index", FILL, wrong), "wrong-format", "its type says", x=np.zeros(1, HALF))


def test_arrays_at_places_that_the_program_knows() -> None:
    """Addresses are constants, in elements of the view: 4096 halves are byte 8192."""
    base = "%a = arith.constant 4096 : index\n%b = arith.constant 8192 : index\n"
    body = view("v", "a", (16,)) + view("w", "b", (16,)) + starts("c0", "c0") + copy("s", "t", (8,))
    x, places = halves(0, 16), {"in": 8192, "out": 16384}
    arrays = {"in": x, "out": np.zeros(16, HALF)}
    found = run_ktir(function("", base, body), None, arrays, places=places)["out"]
    assert np.array_equal(found[:8], x[:8])
    with pytest.raises(InputError, match="overlap"):
        run_ktir(function("", base, body), None, arrays, places={"in": 8192, "out": 8200})
    with pytest.raises(MachineFault, match="are in no array"):
        run_ktir(function("", base, body), None, {"in": x}, places={"in": 8192})

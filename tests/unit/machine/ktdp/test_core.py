"""One core of a KTIR run: its place in the grid, loops and conditions, the room its tensors take, and waiting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, TensorType, f16
from xdsl.dialects.func import FuncOp
from xdsl.dialects.test import TestOp
from xdsl.ir import Block, SSAValue

from spyre_mlir.errors import FaultKind, MachineFault, UnsupportedError
from spyre_mlir.machine.ktdp.core import Core
from spyre_mlir.machine.ktdp.groups import Exchange
from spyre_mlir.machine.ktdp.liveness import Liveness
from spyre_mlir.machine.ktdp.memory import KtirMemory, Scratchpad
from spyre_mlir.machine.ktdp.state import Machine
from spyre_mlir.machine.ktdp.values import Data
from tests.unit.machine.ktdp.ktir_programs import Array, function, load, read, run, store, tile, view

LX = 2 * 1024 * 1024
INDEX = IndexType()


def machine(*grid: int, root: Any = None, lx: int = LX) -> Machine:
    cores = int(np.prod(grid))
    pads = [Scratchpad(number, lx, shared=False) for number in range(cores)]
    return Machine(grid, KtirMemory({}, (), {}), pads, Exchange(cores), Liveness(root or TestOp()))


def results(body: str, *, grid: str = "[1]", cells: int = 1) -> list[int]:
    """What a program puts into the cells of y: `%n` is the cell and `%r` the number."""
    text = view("w", "y", (cells,), "i32") + tile("t", "w", ["n"], (1,), (cells,), "i32")
    text += "%q = arith.index_cast %r : index to i32\n%d = tensor.splat %q : tensor<1xi32>\n"
    module = function("%y: index", body, text, store("d", "t", (1,), "i32"), grid=grid)
    return run(module, y=np.full(cells, -1, np.int32))["y"].tolist()


HERE = "%n = arith.constant 0 : index\n"


def test_the_first_dimension_of_a_grid_is_fastest() -> None:
    shared = machine(2, 3, 4)
    assert shared.cores == 24
    assert [Core(number, shared).place for number in (0, 1, 2, 5, 6, 23)] == [
        (0, 0, 0),
        (1, 0, 0),
        (0, 1, 0),
        (1, 2, 0),
        (0, 0, 1),
        (1, 2, 3),
    ]


def test_a_core_begins_at_its_own_time_one() -> None:
    assert Core(2, machine(4)).clocks.tolist() == [0, 0, 1, 0]


def test_coordinates_and_numbers_of_cores() -> None:
    body = "%i, %j = ktdp.get_compute_tile_id : index, index\n%n = ktdp.coreid %i, %j : index\n"
    body += "%ten = arith.constant 10 : index\n%k = arith.muli %i, %ten : index\n%r = arith.addi %k, %j : index\n"
    assert results(body, grid="[2, 3]", cells=6) == [0, 10, 1, 11, 2, 12]


@pytest.mark.parametrize(
    ("low", "high", "step", "total"), [(0, 4, 1, 106), (1, 8, 2, 116), (4, 4, 1, 100), (8, 2, 1, 100), (2, 3, 8, 102)]
)
def test_a_loop_carries_a_value(low: int, high: int, step: int, total: int) -> None:
    """100 plus the indices from `low` to before `high`."""
    numbers = "".join(
        f"%{name} = arith.constant {number} : index\n"
        for name, number in (("lo", low), ("hi", high), ("by", step), ("start", 100))
    )
    loop = """%r = scf.for %i = %lo to %hi step %by iter_args(%s = %start) -> (index) {
      %more = arith.addi %s, %i : index
      scf.yield %more : index
    }
    """
    assert results(HERE + numbers + loop) == [total]


@pytest.mark.parametrize("step", [0, -2])
def test_a_loop_without_end_is_refused(step: int) -> None:
    loop = f"%by = arith.constant {step} : index\nscf.for %i = %c0 to %c4 step %by {{\n}}\n"
    with pytest.raises(MachineFault, match=f"a loop with step {step} has no end") as caught:
        run(function("", loop))
    assert (caught.value.kind, caught.value.place.core) == (FaultKind.LOOP_STEP, 0)


def test_a_condition_chooses_for_each_core() -> None:
    choice = """%n = arith.addi %core, %c0 : index
    %late = arith.cmpi ugt, %core, %c0 : index
    %r = scf.if %late -> (index) {
      scf.yield %c8 : index
    } else {
      scf.yield %c2 : index
    }
    """
    assert results(choice, grid="[3]", cells=3) == [2, 8, 8]
    without = function(
        "", "%no = arith.cmpi ult, %c1, %c0 : index\nscf.if %no {\n%z = arith.divui %c1, %c0 : index\n}\n"
    )
    run(without)


def test_an_op_of_another_dialect_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"memref\.alloc does not run in KTIR programs here"):
        run(function("", "%m = memref.alloc() : memref<4xf16>\n"))


# --- values


def bound(value: SSAValue, data: Data) -> Core:
    core = Core(0, machine(1))
    core.values[value] = data
    return core


def test_an_index_has_a_value() -> None:
    made = TestOp(result_types=[INDEX]).results[0]
    assert bound(made, Data(np.asarray(7))).whole(made) == 7
    assert bound(made, Data(np.asarray(7), np.asarray(True))).whole(made) == 7
    nothing = Data(np.asarray(7), np.asarray(False))
    for value in (made, Block([TestOp()], arg_types=[INDEX]).args[0]):
        with pytest.raises(MachineFault, match="an index: 1 of 1 elements have no value") as caught:
            bound(value, nothing).whole(value)
        assert caught.value.kind == FaultKind.UNINITIALISED_READ
    empty = Block(arg_types=[INDEX]).args[0]
    with pytest.raises(UnsupportedError, match="a block without ops"):
        bound(empty, nothing).whole(empty)


def test_a_result_is_of_the_type_that_the_text_gives_it() -> None:
    """The identity of the sum has no axis more, so that two partial results fit it, and one row of three does not."""
    wrong = arith.AddfOp.create(
        operands=TestOp(result_types=[TensorType(f16, [3])] * 2).results, result_types=[TensorType(f16, [2])]
    )
    core = Core(0, machine(1))
    for operand in wrong.operands:
        core.values[operand] = Data(np.zeros(3, np.float16))
    with pytest.raises(
        MachineFault, match=r"the result is \(3,\) of float16, its type says \(2,\) of float16"
    ) as caught:
        list(core.block(Block([wrong, TestOp()])))
    assert caught.value.kind == FaultKind.WRONG_FORMAT


# --- room: a tensor of 512 KiB is a quarter of a scratchpad


def tensor(name: str) -> str:
    made = "%e_NAME = tensor.empty() : tensor<512x512xf16>\n"
    made += "%NAME = linalg.fill ins(%one : f16) outs(%e_NAME : tensor<512x512xf16>) -> tensor<512x512xf16>\n"
    return made.replace("NAME", name)


ONE = "%one = arith.constant 1.0 : f16\n"


def use(*names: str) -> str:
    """An op whose result is one number of each."""
    return "".join(f"%u_{n} = tensor.extract %{n}[%c0, %c0] : tensor<512x512xf16>\n" for n in names)


def overflows(*body: str) -> None:
    with pytest.raises(MachineFault, match="do not fit 2097152 bytes") as caught:
        run(function("", ONE, *body))
    assert (caught.value.kind, caught.value.place.core) == (FaultKind.LX_OVERFLOW, 0)


def test_tensors_take_room_from_their_making_to_their_last_use() -> None:
    run(function("", ONE, *map(tensor, "abcd"), use(*"abcd")))
    overflows(*map(tensor, "abcde"), use(*"abcde"))
    run(function("", ONE, *map(tensor, "abcd"), use("a"), tensor("e"), use(*"bcde")))
    run(function("", ONE, *map(tensor, "abcdefgh")))


def test_a_result_needs_room_before_its_operands_give_theirs_up() -> None:
    last = "%s = arith.addf %a, %b : tensor<512x512xf16>\n"
    run(function("", ONE, *map(tensor, "abc"), last, use("s", "c")))
    overflows(*map(tensor, "abcd"), last, use(*"scd"))


def test_a_result_takes_over_the_room_of_its_destination() -> None:
    text = "%s = linalg.add ins(%a, %b : T, T) outs(%d : T) -> T\n".replace("T", "tensor<512x512xf16>")
    run(function("", ONE, *map(tensor, "abcd"), text, use(*"sabc")))
    overflows(*map(tensor, "abcd"), text, use(*"sabcd"))


LOOP = """%r = scf.for %i = %c0 to %c4 step %c1 iter_args(%s = %a) -> (tensor<512x512xf16>) {
  BODY
  scf.yield %m : tensor<512x512xf16>
}
"""


def test_what_a_loop_carries_takes_the_room_of_one() -> None:
    """In the loop are the carried tensor, the new one, and what lives around it."""
    body = LOOP.replace("BODY", "%m = arith.addf %s, %s : tensor<512x512xf16>")
    run(function("", ONE, *map(tensor, "abc"), body, use(*"rbc")))
    overflows(*map(tensor, "abcd"), body, use(*"rbcd"))
    overflows(*map(tensor, "abc"), body, use(*"rabc"))  # the first one is needed after the loop
    kept = LOOP.replace("BODY", "%m = arith.addf %s, %a : tensor<512x512xf16>")  # and here inside of it
    run(function("", ONE, *map(tensor, "ab"), kept, use(*"rb")))
    overflows(*map(tensor, "abc"), kept, use(*"rbc"))


def test_nothing_of_a_loop_takes_room_behind_it() -> None:
    body = LOOP.replace("BODY", "%m = arith.addf %s, %s : tensor<512x512xf16>")
    run(function("", ONE, tensor("a"), body, use("r"), *map(tensor, "bcde"), use(*"bcde")))


def test_a_loop_runs_its_body_on_new_values() -> None:
    doubled = LOOP.replace("BODY", "%m = arith.addf %s, %s : tensor<512x512xf16>").replace("512x512", "1")
    text = "%a = tensor.splat %one : tensor<1xf16>\n" + doubled
    text += view("w", "y", (1,)) + tile("t", "w", ["c0"], (1,), (1,)) + store("r", "t", (1,))
    assert run(function("%y: index", ONE, text), y=np.zeros(1, np.float16))["y"].tolist() == [16]


def test_a_condition_s_result_takes_room_once() -> None:
    choice = """%yes = arith.cmpi eq, %c0, %c0 : index
    %r = scf.if %yes -> (tensor<512x512xf16>) {
      scf.yield %a : tensor<512x512xf16>
    } else {
      scf.yield %b : tensor<512x512xf16>
    }
    """
    run(function("", ONE, *map(tensor, "abcd"), choice, use(*"rabcd")))


def test_a_region_of_scalars_takes_no_room() -> None:
    body = """%s = linalg.generic {indexing_maps = [M, M], iterator_types = ["parallel", "parallel"]}
      ins(%a : T) outs(%b : T) {
    ^bb0(%p: f16, %o: f16):
      %x = arith.addf %p, %p : f16
      %z = arith.mulf %x, %p : f16
      linalg.yield %z : f16
    } -> T
    """
    text = body.replace("M,", "affine_map<(i, j) -> (i, j)>,").replace("M]", "affine_map<(i, j) -> (i, j)>]")
    run(function("", ONE, *map(tensor, "abcd"), text.replace("T", "tensor<512x512xf16>"), use(*"sacd")))


# --- giving and waiting

FOUR = "affine_set<(i)[g] : (i - 4 * g >= 0, -i + 4 * g + 3 >= 0)>"
LATER = "affine_set<(i)[g] : (i - 4 * g - 1 >= 0, -i + 4 * g + 3 >= 0)>"


def exchange(producers: str = FOUR, consumers: str = FOUR, start: str = "0.0", partial: str = "d") -> str:
    """`%sum` is what a core receives of `%d` of all producers."""
    future = "!ktdp.tile_future<tensor<1xf16>, groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>>"
    return f"""
      %start = arith.constant dense<{start}> : tensor<1xf16>
      %f = ktdp.inter_tile_produce producer_tiles_per_group = {producers} : tensor<1xf16> -> {future} {{
      ^bb0(%g: index):
        ktdp.yield_partial %{partial} : tensor<1xf16>
      }}
      %sum = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = {consumers}, identity(%start : tensor<1xf16>) : {future} -> tensor<1xf16> {{
      ^bb0(%l: tensor<1xf16>, %r: tensor<1xf16>):
        %two = arith.addf %l, %l : tensor<1xf16>
        %s2 = arith.addf %two, %r : tensor<1xf16>
        ktdp.yield_reduced %s2 : tensor<1xf16>
      }}
    """


X = np.arange(1, 9, dtype=np.float16)
TILES = (
    view("v", "x", (8,))
    + view("w", "y", (8,))
    + tile("s", "v", ["core"], (1,), (8,))
    + tile("t", "w", ["core"], (1,), (8,))
)


def received(*body: str) -> Array:
    program = function("%x: index, %y: index", TILES, load("d", "s", (1,)), *body, grid="[8]")
    return run(program, x=X, y=np.full(8, -1, np.float16))["y"]


def test_partial_results_are_combined_in_the_order_of_cores() -> None:
    """Twice what there is plus the next: with a start of 1, 16 + 8a + 4b + 2c + d."""
    found = received(exchange(start="1.0"), store("sum", "t", (1,)))
    assert found.tolist() == [16 + 8 + 8 + 6 + 4] * 4 + [16 + 40 + 24 + 14 + 8] * 4


def test_producers_are_not_all_cores() -> None:
    """Cores 1, 2 and 3 of each group give something."""
    found = received(exchange(producers=LATER), store("sum", "t", (1,)))
    assert found.tolist() == [4 * 2 + 2 * 3 + 4] * 4 + [4 * 6 + 2 * 7 + 8] * 4


def test_a_producer_knows_its_group() -> None:
    """Each of four cores gives the number of its group: twice what there is plus 1, four times over, is 15."""
    number = "%n = arith.index_cast %g : index to i32\n%h = arith.sitofp %n : i32 to f16\n"
    number += "%p = tensor.splat %h : tensor<1xf16>\n"
    given = exchange(partial="p").replace("ktdp.yield_partial", number + "ktdp.yield_partial")
    assert received(given, store("sum", "t", (1,))).tolist() == [0] * 4 + [15] * 4


def test_who_receives_nothing_has_no_value() -> None:
    guarded = "%p = arith.remui %core, %c4 : index\n%gets = arith.cmpi ne, %p, %c0 : index\n"
    guarded += "scf.if %gets {\n" + store("sum", "t", (1,)) + "}\n"
    assert received(exchange(consumers=LATER), guarded).tolist() == [-1, 26, 26, 26, -1, 86, 86, 86]
    with pytest.raises(MachineFault, match="1 of 1 elements that are stored have no value"):
        received(exchange(consumers=LATER), store("sum", "t", (1,)))


def test_a_partial_result_has_a_value() -> None:
    empty = "%nothing = tensor.empty() : tensor<1xf16>\n"
    with pytest.raises(MachineFault, match="the partial result: 1 of 1") as caught:
        received(empty, exchange(partial="nothing"))
    assert caught.value.kind == FaultKind.UNINITIALISED_READ


def test_an_exchange_in_a_loop_is_a_new_one_each_time() -> None:
    loop = "%total = scf.for %i = %c0 to %c2 step %c1 iter_args(%d2 = %d) -> (tensor<1xf16>) {\n"
    loop += exchange(partial="d2") + "scf.yield %sum : tensor<1xf16>\n}\n"
    first, second = 8 + 8 + 6 + 4, 40 + 24 + 14 + 8
    found = received(loop, store("total", "t", (1,)))
    assert found.tolist() == [15 * first] * 4 + [15 * second] * 4


def test_after_receiving_a_core_may_touch_what_the_producers_had_written() -> None:
    """Each core writes its cell; after the exchange it reads its neighbour's."""
    across = "%three = arith.constant 3 : index\n%o = arith.xori %core, %three : index\n" + tile(
        "n", "w", ["o"], (1,), (8,)
    )
    after = load("theirs", "n", (1,))
    wrote = store("d", "t", (1,))
    assert received(wrote, exchange(), across, after).tolist() == X.tolist()
    with pytest.raises(MachineFault) as caught:
        received(wrote, across, after)
    assert caught.value.kind == FaultKind.READ_WRITE_RACE
    with pytest.raises(MachineFault) as caught:  # what is written after it was given is not known
        received(exchange(), wrote, across, after)
    assert caught.value.kind == FaultKind.READ_WRITE_RACE


def test_a_function_without_a_body_does_nothing() -> None:
    (declared,) = read("func.func private @elsewhere()").ops
    assert isinstance(declared, FuncOp)
    with pytest.raises(StopIteration) as caught:
        next(Core(0, machine(1)).run(declared))
    assert caught.value.value == []

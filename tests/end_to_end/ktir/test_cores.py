"""Cores of a program that write one place, race, or wait for one another, each beside a program that is right."""

import numpy as np
import pytest

from tests.end_to_end.ktir.fault_programs import BARRIER, BOTH, ZERO, V, W, copy_program, fails, starts
from tests.unit.machine.ktdp.ktir_programs import copy, function, halves, load, run, store, tile, view

HALF = np.float16
EIGHTH = "%mine = arith.muli %core, %c8 : index\n"


def test_two_cores_write_one_place() -> None:
    arrays = {"x": np.zeros(16, HALF), "y": np.zeros(16, HALF)}
    run(copy_program(V, W, EIGHTH, starts("mine", "mine"), grid="[2]"), **arrays)
    program = copy_program(V, W, EIGHTH, starts("mine", "c0"), grid="[2]")
    fails(program, "double-write", "core 1 writes 8 elements of y that core 0 writes", **arrays)


@pytest.mark.parametrize("reader", [0, 1])
def test_a_core_reads_what_another_writes(reader: int) -> None:
    """In either order: nothing makes one wait for the other."""
    x = halves(0, 16)
    program = function(
        "%x: index, %y: index",
        V,
        W,
        tile("s", "v", ["c0"], (8,), (16,)) + tile("t", "w", ["c0"], (8,), (16,)) + load("d", "s", (8,)),
        f"%reads = arith.cmpi eq, %core, %c{reader} : index\n%writes = arith.cmpi ne, %core, %c{reader} : index\n",
        "scf.if %writes {\n" + store("d", "t", (8,)) + "}\n",
        "scf.if %reads {\n" + load("e", "t", (8,)) + "}\n",
        grid="[2]",
    )
    fails(program, "read-write-race", "elements of y that core", x=x, y=np.zeros(16, HALF))


def test_a_reduction_makes_cores_wait() -> None:
    """Each core writes its half, and after the barrier reads the other's."""
    x = halves(0, 16)
    other = "%other = arith.subi %c8, %mine : index\n"
    body = [
        V,
        W,
        EIGHTH,
        other,
        starts("mine", "mine"),
        copy("s", "t", (8,)),
        BARRIER.replace("TEAM", BOTH),
        tile("u", "w", ["other"], (8,), (16,)) + load("e", "u", (8,)),
    ]
    run(function("%x: index, %y: index", *body, grid="[2]"), x=x, y=np.zeros(16, HALF))
    del body[6]
    fails(
        function("%x: index, %y: index", *body, grid="[2]"),
        "read-write-race",
        "elements of y",
        x=x,
        y=np.zeros(16, HALF),
    )


@pytest.mark.parametrize("consumers", ["- 2 * g >= 0, -i + 2 * g + 1 >= 0", "- 2 * g - 1 == 0"])
def test_a_barrier_orders_only_what_came_before(consumers: str) -> None:
    """Core 0 writes again after it; core 1 may or may not see that. Core 0 need not receive anything."""
    barrier = BARRIER.replace("TEAM", BOTH, 1).replace("TEAM", f"affine_set<(i)[g] : (i {consumers})>")
    x = halves(0, 16)
    again = "%first = arith.cmpi eq, %core, %c0 : index\nscf.if %first {\n" + store("data", "t", (8,)) + "}\n"
    late = "%second = arith.cmpi eq, %core, %c1 : index\nscf.if %second {\n" + load("e", "u", (8,)) + "}\n"
    body = [
        V,
        W,
        EIGHTH,
        starts("mine", "mine"),
        copy("s", "t", (8,)),
        barrier,
        tile("u", "w", ["c0"], (8,), (16,)),
    ]
    run(function("%x: index, %y: index", *body, late, grid="[2]"), x=x, y=np.zeros(16, HALF))
    program = function("%x: index, %y: index", *body, again, late, grid="[2]")
    fails(program, "read-write-race", "elements of y that core (0 writes|1 reads)", x=x, y=np.zeros(16, HALF))


def test_overwriting_after_a_barrier_what_another_has_read() -> None:
    x = halves(0, 16)
    other = "%other = arith.subi %c8, %mine : index\n"
    after = tile("u", "v", ["other"], (8,), (16,)) + store("data", "u", (8,))
    body = [
        V,
        EIGHTH,
        other,
        tile("s", "v", ["mine"], (8,), (16,)),
        load("data", "s", (8,)),
        BARRIER.replace("TEAM", BOTH),
        after,
    ]
    found = run(function("%x: index", *body, grid="[2]"), x=x)["x"]
    assert np.array_equal(found, np.concatenate([x[8:], x[:8]]))
    del body[5]
    fails(
        function("%x: index", *body, grid="[2]"),
        "read-write-race",
        "core 1 writes elements of x that core 0 reads|core 1 reads",
        x=x,
    )


def test_a_partial_result_that_nobody_sends() -> None:
    """Core 1 never reaches the op that produces: it is inside of a condition."""
    guarded = "%first = arith.cmpi eq, %core, %c0 : index\nscf.if %first {\n" + BARRIER.replace("TEAM", BOTH) + "}\n"
    fails(
        function("%x: index", guarded, grid="[2]"), "deadlock", "cores 0 wait for partial results", x=np.zeros(1, HALF)
    )
    run(function("%x: index", BARRIER.replace("TEAM", ZERO), grid="[2]"), x=np.zeros(1, HALF))


def test_who_is_no_consumer_gets_nothing() -> None:
    uses = view("w", "y", (2,)) + tile("t", "w", ["core"], (1,), (2,)) + store("done", "t", (1,))
    program = function("%y: index", BARRIER.replace("TEAM", ZERO), uses, grid="[2]")
    fails(program, "uninitialised-read", "1 of 1 elements that are stored have no value.*", y=np.zeros(2, HALF))

"""Loops that hints ask for, around kernels of a text: followed, or refused with what is possible."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.scf import ForOp

from spyre_mlir.dialects.spyre.hints import HintError
from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.dialects.spyre.static_loop import enclosing_loops, loop_bounds
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.transforms.plan import PlanPass
from spyre_mlir.universe import make_context
from tests.unit.transforms.levels import ops, passed
from tests.unit.transforms.test_place_lx import softmax
from tests.unit.transforms.test_plan import chain, numpy_softmax

LOWERED = ("plan", "materialize-plan", "divide-work", "place-lx", "assign-pool")


def hinted(text: str, *said: tuple[str, str]) -> str:
    """A text with a tile at the kernel of each function."""
    lines = text.splitlines()
    for function, tile in said:
        number = next(n for n, line in enumerate(lines) if f'compute "{function}"' in line)
        lines[number] += f" attributes {{spyre.hint = {{tile = {{{tile}}}}}}}"
    return "\n".join(lines)


def trips(module: ModuleOp) -> dict[str, list[int]]:
    """Trips of the loops around each kernel, outermost first, by function."""
    return {
        op.function_name: [loop_bounds(loop).trips for loop in enclosing_loops(op)][::-1]
        for op in ops(module, KernelOp)
        if op.function_name != "identity"
    }


def test_a_kernel_runs_in_the_trips_that_its_hint_names_and_gives_the_same_numbers() -> None:
    """All of it fits the scratchpads, so the planner by itself has no loop."""
    x = np.random.default_rng(0).uniform(-1, 1, (64, 128))
    assert trips(passed(softmax(64, 128), *LOWERED)) == {key: [] for key in ("max", "sub", "exp", "sum", "realdiv")}
    module = passed(
        hinted(softmax(64, 128), *((f, "m = 8") for f in ("max", "sub", "exp", "sum", "realdiv"))), *LOWERED
    )
    assert trips(module) == {key: [8] for key in ("max", "sub", "exp", "sum", "realdiv")}
    assert len(ops(module, ForOp)) == 1
    (got,) = run_function(module, [x])
    np.testing.assert_allclose(got, numpy_softmax(x), rtol=1e-12)


def test_kernels_that_ask_for_other_trips_have_loops_of_their_own() -> None:
    text = hinted(softmax(64, 128), ("max", "m = 8"), ("sub", "m = 4"), ("exp", "m = 4"), ("sum", "m = 1"))
    module = passed(text, *LOWERED)
    found = trips(module)
    assert (found["max"], found["sub"], found["exp"], found["sum"]) == ([8], [4], [4], [])
    assert len(ops(module, ForOp)) == 2
    x = np.random.default_rng(1).uniform(-1, 1, (64, 128))
    np.testing.assert_allclose(run_function(module, [x])[0], numpy_softmax(x), rtol=1e-12)


def test_the_time_of_hinted_loops_counts_in_that_of_a_function() -> None:
    """Where all fits the scratchpads, loops only begin kernels more often."""
    asked = [(f, "m = 8") for f in ("max", "sub", "exp", "sum", "realdiv")]
    texts = softmax(64, 128), hinted(softmax(64, 128), *asked)
    (alone,), (looped,) = (PlanPass().recorded(make_context(), passed(text)).us for text in texts)
    assert alone is not None and looped is not None and looped > alone > 0


@pytest.mark.parametrize("said", ["b = 2, m = 8", "m = 8, b = 2"])
def test_two_loops_lie_inside_each_other(said: str) -> None:
    shape = (4, 64, 128)
    module = passed(hinted(chain(shape), ("exp", said), ("mul", said), ("add", said)), *LOWERED)
    assert {tuple(sorted(found)) for found in trips(module).values()} == {(2, 8)}
    assert len(ops(module, ForOp)) == 2
    x, c = np.random.default_rng(3).uniform(-1, 1, shape), np.arange(128.0)
    np.testing.assert_allclose(run_function(module, [x, c])[0], np.exp(x) * x + c, rtol=1e-12)


def test_kernels_behind_join_a_loop_where_that_is_quicker() -> None:
    """65,536 rows do not fit: what the maximum reads for some rows the others read, too."""
    module = passed(hinted(softmax(65_536, 1024), ("max", "m = 8")), "plan", "materialize-plan")
    assert trips(module) == {key: [8] for key in ("max", "sub", "exp", "sum", "realdiv")}


def test_one_trip_is_no_loop_where_the_planner_would_have_one() -> None:
    free = trips(passed(softmax(65_536, 1024), "plan", "materialize-plan"))
    assert all(free.values())
    kept = trips(passed(hinted(softmax(65_536, 1024), ("sub", "m = 1")), "plan", "materialize-plan"))
    assert kept["sub"] == []


@pytest.mark.parametrize(
    ("said", "message", "possible"),
    [
        ("m = 7", "7 trips over m: equal blocks of its 64 elements are needed", "m: 1, 2, 4, 8, 16, 32, 64; n: 1, 2"),
        ("n = 4", "4 trips over n: equal blocks of its 2 pieces, whole sticks are needed", "n: 1, 2; 1 is no loop"),
    ],
)
def test_trips_that_cannot_be_are_refused_with_the_possible_ones(said: str, message: str, possible: str) -> None:
    text = hinted(softmax(64, 128), ("sub", said), ("exp", said))
    with pytest.raises(HintError, match=message) as refused:
        passed(text, "plan")
    assert refused.value.hint is not None and possible in refused.value.hint
    assert refused.value.where is not None and refused.value.where.startswith("sub at ")


def test_a_loop_that_a_kernel_reduces_cannot_be_tiled() -> None:
    with pytest.raises(HintError, match="2 trips over n: n stays whole: the kernel sums it, or reduces it") as refused:
        passed(hinted(softmax(64, 128), ("max", "n = 2")), "plan")
    assert refused.value.hint == "possible trips are m: 1, 2, 4, 8, 16, 32, 64; 1 is no loop"


def test_more_than_two_loops_are_refused() -> None:
    with pytest.raises(HintError, match="at most 2 loops are around a kernel"):
        passed(hinted(chain((4, 64, 128)), ("exp", "b = 2, m = 2, n = 2")), "plan")


def test_a_division_of_the_whole_contradicts_trips() -> None:
    text = hinted(softmax(64, 128), ("exp", "m = 4")).replace('"exp" [m = 64', '"exp" [m = 64 over 8')
    with pytest.raises(HintError, match="the program divides it, which holds for the whole"):
        passed(text, "plan")


def test_a_division_that_no_trip_has_is_refused() -> None:
    """A trip has 64 / 32 = 2 rows."""
    text = hinted(softmax(64, 128), ("exp", "m = 32")).replace("{tile =", "{division = {m = 4}, tile =")
    with pytest.raises(HintError, match="a hint divides m over 4: equal slices of its 2 elements"):
        passed(text, "plan")


@pytest.mark.parametrize("options", [{"loops": False}, {"together": False}])
def test_without_loops_a_hint_for_one_is_refused(options: dict[str, bool]) -> None:
    with pytest.raises(HintError, match="4 trips over m, and the kernel is in no loop") as refused:
        passed(hinted(softmax(64, 128), ("exp", "m = 4")), "plan", **options)
    assert refused.value.hint is not None and "loops=unroll" in refused.value.hint


def test_divide_work_alone_makes_no_loops_and_says_so() -> None:
    with pytest.raises(HintError, match="the kernel is in no loop") as refused:
        passed(hinted(softmax(64, 128), ("exp", "m = 4")), "divide-work")
    assert refused.value.hint == "the pass plan makes loops; run it before"


def test_a_loop_that_says_something_else_than_the_hint_inside_is_refused() -> None:
    planned = str(passed(hinted(softmax(64, 128), ("exp", "m = 8"), ("sub", "m = 8")), "plan", "materialize-plan"))
    assert "m = 8 : i64" in planned
    with pytest.raises(HintError, match="a hint asks for 4 trips, and the program has loops of 8 trips"):
        passed(planned.replace("m = 8 : i64", "m = 4 : i64"), "divide-work")

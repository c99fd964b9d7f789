"""Loops that notes ask for: followed after a change by hand, or refused with the reason."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.scf import ForOp

from spyre_mlir.dialects.spyre.kernel import KernelOp, device_tensor
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.transforms.plan_notes.notes import PlanError
from spyre_mlir.transforms.planned_loops import noted_loops
from tests.unit.transforms.kernel_loops.test_hinted_loops import trips
from tests.unit.transforms.kernel_loops.test_running_sums import products
from tests.unit.transforms.levels import ops, passed
from tests.unit.transforms.plan_notes.texts import noted
from tests.unit.transforms.test_place_lx import softmax
from tests.unit.transforms.test_plan import chain, numpy_softmax

ALL = ("max", "sub", "exp", "sum", "realdiv")
OVER = 'loop = 0, over = ["m"]'
LOWERED = ("materialize-plan", "divide-work", "place-lx", "assign-pool")


def test_kernels_run_in_the_trips_that_are_noted_and_give_the_same_numbers() -> None:
    text = noted(softmax(64, 128), "{trips = [8]}", *((function, OVER) for function in ALL))
    module = passed(text, *LOWERED)
    assert trips(module) == {function: [8] for function in ALL} and len(ops(module, ForOp)) == 1
    x = np.random.default_rng(0).uniform(-1, 1, (64, 128))
    np.testing.assert_allclose(run_function(module, [x])[0], numpy_softmax(x), rtol=1e-12)


def test_runs_say_how_a_kernel_is_divided_in_a_trip_and_where_its_buffer_is() -> None:
    runs = f'{OVER}, runs = [{{division = #spyre.division<n over 2, m over 4>, place = "lx"}}]'
    said = ("sub", runs), ("exp", runs.replace(', place = "lx"', "")), ("max", OVER)
    module = passed(noted(softmax(64, 128), "{trips = [8]}", *said), "materialize-plan")
    found = {op.function_name: op for op in ops(module, KernelOp)}
    for name in ("sub", "exp"):
        assert [(d.name, d.extent, d.split) for d in found[name].space.data] == [("n", 128, 2), ("m", 8, 4)]
    assert found["max"].space_splits() == {"m": 1, "n": 1}  # `divide-work` divides it
    assert [device_tensor(found[name].output).space for name in ("max", "sub", "exp")] == ["hbm", "lx", "hbm"]


def test_blocks_may_be_unequal() -> None:
    """Two trips of 24 rows, and one of the other 16."""
    loops = "{blocks = [[2, 24], [1, 16]]}"
    module = passed(noted(softmax(64, 128), loops, *((function, OVER) for function in ALL)), *LOWERED)
    assert [op.space.extents["m"] for op in ops(module, KernelOp) if op.function_name == "exp"] == [24, 16]
    x = np.random.default_rng(0).uniform(-1, 1, (64, 128))
    np.testing.assert_allclose(run_function(module, [x])[0], numpy_softmax(x), rtol=1e-12)


@pytest.mark.parametrize("over", ['["b", "m"]', '["m", "b"]'])
def test_two_loops_lie_inside_each_other_in_the_order_that_is_said(over: str) -> None:
    shape, said = (4, 64, 128), f"loop = 0, over = {over}"
    module = passed(noted(chain(shape), "{trips = [2, 4]}", *((f, said) for f in ("exp", "mul", "add"))), *LOWERED)
    assert set(map(tuple, trips(module).values())) == {(2, 4)}
    extents = next(op.space.extents for op in ops(module, KernelOp) if op.function_name == "exp")
    assert (extents["b"], extents["m"]) == ((2, 16) if over.startswith('["b') else (1, 32))
    x, c = np.random.default_rng(3).uniform(-1, 1, shape), np.arange(128.0)
    np.testing.assert_allclose(run_function(module, [x, c])[0], np.exp(x) * x + c, rtol=1e-12)


@pytest.mark.parametrize(
    ("loops", "said", "why"),
    [
        ("{trips = [3]}", {"exp": OVER}, "exp cannot be in loop 0: 3 trips are no equal blocks of whole sticks"),
        ("{trips = [2]}", {"exp": 'loop = 0, over = ["k"]'}, "it has no loop k that trips can go over"),
        ("{trips = [2]}", {"exp": 'loop = 0, over = ["m", "n"]'}, "over n as well, and the function notes no trips"),
        ("{trips = [2]}", {"exp": "loop = 0, over = []"}, "over one loop of the kernel, or over two"),
        ("{trips = [2, 2]}", {"sub": OVER, "exp": OVER}, "share no loop inside of it"),
        ("{trips = [2, 3]}", {"exp": 'loop = 0, over = ["m", "n"]'}, "3 trips are no equal blocks"),
        ("{trips = [2]}", {"sub": OVER, "exp": 'loop = 0, over = ["n"]'}, "over n it does not go row by row"),
        ("{trips = [2]}", {"max": OVER, "exp": OVER}, "sub stands between its kernels and depends on some"),
        ("{blocks = [[3, 7]]}", {"exp": OVER}, "its blocks have 21 pieces, and the kernels 64"),
        ("{blocks = [[1, 32], [1, 32, 2]]}", {"exp": OVER}, "2 cores cannot share the rows of its weights"),
        ("{trips = [2]}", {"exp": 'loop = 1, over = ["m"]'}, "exp notes loop 1, and the function has 1"),
        ("{trips = [2]}", {}, "no kernel notes loop 0"),
        ("{trips = [2]}", {"exp": f"{OVER}, runs = []"}, "0 runs, and these kernels stand for it .* m = 32, n = 128"),
        (
            "{trips = [2]}",
            {"exp": f"{OVER}, runs = [{{division = #spyre.division<m>}}]"},
            "a run of exp divides m, and the kernel has m, n",
        ),
        (
            "{trips = [2]}",
            {"realdiv": f'{OVER}, runs = [{{division = #spyre.division<m, n>, place = "lx"}}]'},
            "says lx for its result, which is a part of a larger buffer",
        ),
    ],
)
def test_notes_that_cannot_be_followed_are_refused(loops: str, said: dict[str, str], why: str) -> None:
    with pytest.raises(PlanError, match=why):
        passed(noted(softmax(64, 128), loops, *said.items()), "materialize-plan")


def test_each_block_has_copies_that_share_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noted_loops, "shared_rows", lambda *_: 8)
    with pytest.raises(PlanError, match="3 cores cannot share the rows of its weights, possible are 1, 2, 4, 8"):
        passed(noted(softmax(64, 128), "{blocks = [[1, 32, 3], [1, 32, 8]]}", ("exp", OVER)), "materialize-plan")


def test_a_divided_kernel_is_in_no_loop() -> None:
    text = noted(softmax(64, 128), "{trips = [2]}", ("exp", OVER))
    lines = [x.replace("m = 64", "m = 64 over 2") if '"exp"' in x else x for x in text.splitlines()]
    with pytest.raises(PlanError, match="the program divides the kernel, which holds for the whole: say it in runs"):
        passed("\n".join(lines), "materialize-plan")


def test_a_sum_grows_in_few_trips() -> None:
    """Each trip rounds the total."""
    said = [(f, f'loop = 0, over = ["{over}"]') for f, over in (("batchmatmul", "e"), ("exp", "a"), ("sum", "r"))]
    text = products(64).replace("\n        ins", " ins")
    looped = passed(noted(text, "{trips = [16]}", *said), "materialize-plan")
    assert [op.function_name for op in ops(ops(looped, ForOp)[0], KernelOp)] == ["batchmatmul", "exp", "sum", "add"]
    with pytest.raises(PlanError, match="its sum would be rounded 32 times, 16 are allowed"):
        passed(noted(text, "{trips = [32]}", *said), "materialize-plan")

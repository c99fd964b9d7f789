"""Sums that a loop adds up from trip to trip: which may, what stands around the loop, and values against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.dialects.scf import ForOp

from spyre_mlir.backend.directory import split_module
from spyre_mlir.dialects.aten_arguments import TERMS
from spyre_mlir.dialects.spyre.kernel import ComputeOp, KernelOp, device_tensor
from spyre_mlir.dialects.superdsc.codec.describe import describe
from spyre_mlir.machine.bundle.host_program import DeviceProgram, run_program
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.machine.options import MachineOptions
from spyre_mlir.planning.trips import TripSpan
from spyre_mlir.text.render import verify_module
from spyre_mlir.transforms import get_all_passes
from spyre_mlir.transforms.kernel_loops.row_groups import RowGroup, grow
from spyre_mlir.transforms.kernel_loops.running_sums import MOST_TRIPS, may_grow, most_trips, summed_rows
from spyre_mlir.transforms.kernel_loops.tiled_body import TiledBody, install
from spyre_mlir.transforms.plan import PlanPass
from spyre_mlir.universe import make_context
from tests.unit.transforms.levels import ops, passed

Array = NDArray[Any]
PLACED = ("plan", "materialize-plan", "divide-work", "place-lx", "assign-pool")
LAST = "convert-spyre-kernel-to-superdsc"


def products(
    count: int = 8, sizes: tuple[int, int, int] = (64, 128, 128), function: str = "sum", more: str = ""
) -> str:
    """The sum of exp of `count` products of [rows, inner] by [inner, columns]."""
    m, k, n = sizes
    x, w, y = (
        f"!spyre.tensor<[{count}, {a}, {b}] x SEN169_FP16, order [1, 2, 0], stick 2, hbm>"
        for a, b in ((m, k), (k, n), (m, n))
    )
    out = f"!spyre.tensor<[{m}, {n}] x SEN169_FP16, order [0, 1], stick 1, hbm>"
    given, weight, result = f"tensor<{count}x{m}x{k}xf16>", f"tensor<{count}x{k}x{n}xf16>", f"tensor<{m}x{n}xf16>"
    loops = f"[a = {count}, b = {m}, c = {n}]"
    return f"""func.func @main(%x: {given}, %w: {weight}) -> {result} {{
      %0 = spyre.kernel.to_device %x : {given} to {x}
      %1 = spyre.kernel.to_device %w : {weight} to {w}
      %2 = spyre.kernel.alloc : {y}
      spyre.kernel.compute "batchmatmul" [e = {count}, m = {m}, n = {n}, k = {k}]
        ins(%0[e, m, k] : {x}, %1[e, k, n] : {w}) outs(%2[e, m, n] : {y})
      %3 = spyre.kernel.alloc : {y}
      spyre.kernel.compute "exp" {loops} ins(%2[a, b, c] : {y}) outs(%3[a, b, c] : {y})
      %4 = spyre.kernel.alloc : {out}
      spyre.kernel.compute "{function}" [r = {count}, b = {m}, c = {n}]
        ins(%3[r, b, c] : {y}) outs(%4[b, c] : {out}) {more}
      %5 = spyre.kernel.from_device %4 : {out} to {result}
      func.return %5 : {result}
    }}"""


def numpy_products(x: Array, w: Array) -> Array:
    return np.exp(x @ w).sum(0)


def numbers(count: int = 8, sizes: tuple[int, int, int] = (64, 128, 128)) -> tuple[Array, Array]:
    rng = np.random.default_rng(count)
    m, k, n = sizes
    return rng.uniform(-1, 1, (count, m, k)), rng.uniform(-1, 1, (count, k, n)) / np.sqrt(k)


def group_of(module: ModuleOp, loop: str = "e") -> RowGroup:
    first, *rest = ops(module, KernelOp)
    return next(group for group in grow(first, rest) if group.loops[0] == loop)


def names(module: ModuleOp) -> list[str]:
    return [op.function_name for op in ops(module, KernelOp)]


@pytest.mark.parametrize(
    ("trips", "body"),
    [
        (8, ["batchmatmul", "exp", "add"]),
        (4, ["batchmatmul", "exp", "sum", "add"]),
        (2, ["batchmatmul", "exp", "sum", "add"]),
    ],
)
def test_a_loop_adds_up_what_its_trips_make(trips: int, body: list[str]) -> None:
    module = passed(products(more="element f16"))
    before, group = str(module), group_of(module)
    assert group.is_summed
    tried = TiledBody(group, TripSpan.of_all(trips))
    assert [op.function_name for op in tried.kernels] == body
    assert tried.sources == [0, 1, 2, 2][: len(body)]
    tried.drop()
    assert str(module) == before
    install([TiledBody(group, TripSpan.of_all(trips))])
    verify_module(module)
    assert names(module) == ["identity", *body, "identity"]
    # Only the result is rounded to the model's type where numbers are exact.
    assert [op.element is not None for op in ops(module, ComputeOp)] == [False] * (len(body) + 1) + [True]
    x, w = numbers()
    (got,) = run_function(module, [x, w])
    np.testing.assert_allclose(got, numpy_products(x, w), rtol=1e-3)


def test_blocks_of_rows_inside_add_to_parts_of_the_total() -> None:
    module = passed(products())
    rows = group_of(module, "m")
    body = TiledBody(group_of(module), TripSpan.of_all(8))
    install([body])
    within = body.within(rows.loops)
    assert within is not None
    install([TiledBody(within, TripSpan.of_all(2))])
    verify_module(module)
    assert len(ops(module, ForOp)) == 2
    x, w = numbers()
    (got,) = run_function(module, [x, w])
    np.testing.assert_allclose(got, numpy_products(x, w), rtol=1e-12)


SIZES = (512, 256, 512)


@pytest.mark.parametrize("loops", ["loop", "unroll"])
def test_a_plan_keeps_the_total_in_the_scratchpads(loops: str) -> None:
    """Of eight products and their exponentials nothing is in device memory but the operands."""
    module = passed(products(sizes=SIZES), *PLACED)
    assert names(module)[-5:] == ["identity", "batchmatmul", "exp", "add", "identity"]
    add = next(op for op in ops(module, KernelOp) if op.function_name == "add")
    assert {device_tensor(v).space for v in add.operands} == {"lx"}
    splits = {
        tuple(op.space_splits().items())
        for op in ops(module, KernelOp)
        if "b" in op.space.extents and "a" not in op.space.extents
    }
    assert len(splits) == 1
    x, w = numbers(sizes=SIZES)
    (got,) = run_function(module, [x, w])
    np.testing.assert_allclose(got, numpy_products(x, w), rtol=1e-12)
    host, bundle, files = split_module(passed(products(sizes=SIZES), *PLACED, LAST, loops=loops))
    (ran,) = run_program(DeviceProgram(host, bundle, lambda name: describe(files[name])), [x, w])
    np.testing.assert_allclose(ran, numpy_products(x, w), rtol=1e-6)


def test_additions_round_and_stay_close() -> None:
    """Each of eight additions is wrong by 2 ** -10 at most, and so is the sum that is computed in one."""
    x, w = numbers(sizes=SIZES)
    host, bundle, files = split_module(passed(products(sizes=SIZES), *PLACED, LAST))
    program = DeviceProgram(host, bundle, lambda name: describe(files[name]))
    (got,) = run_program(program, [x, w], MachineOptions(numerics="device"))
    relative = np.abs(got - numpy_products(x, w)) / numpy_products(x, w)
    assert relative.max() < 9 * 2**-10


def test_sums_of_many_rows_are_tried_in_few_trips() -> None:
    """As many additions round for 64 rows as for 16: a trip sums its rows before it adds them."""
    module = passed(products(64, (512, 512, 1024)))
    tried = PlanPass().recorded(make_context(), module).loops
    summed = [t for t in tried if t.loops[0][0] == "e" and len(t.ops) == 3]
    assert MOST_TRIPS in {t.loops[0][1] for t in summed}
    assert all(t.loops[0][1] <= MOST_TRIPS for t in summed)


@pytest.mark.parametrize(("terms", "trips"), [(None, 16), (16, 1000), (17, 16)])
def test_zeros_may_be_added_in_any_number_of_trips(terms: int | None, trips: int) -> None:
    sum_ = sum_of(passed(products(64)))
    if terms is not None:
        sum_.attributes[TERMS] = IntegerAttr(terms, i64)
    assert most_trips(sum_, 1000) == trips


def test_a_sum_of_few_terms_is_tried_in_many_trips() -> None:
    module = passed(products(64, (512, 512, 1024)))
    sum_of(module).attributes[TERMS] = IntegerAttr(8, i64)
    tried = PlanPass().recorded(make_context(), module).loops
    assert {16, 64} <= {t.loops[0][1] for t in tried if t.loops[0][0] == "e" and len(t.ops) == 3}


def test_sums_of_many_rows_round_as_often_as_there_are_trips() -> None:
    """A unit in the last place for each addition, the sum of a trip and what it sums."""
    module = passed(products(64))
    install([TiledBody(group_of(module), TripSpan.of_all(MOST_TRIPS))])
    for name in (*PLACED[1:], LAST):
        get_all_passes()[name]()().apply(make_context(), module)
    x, w = numbers(64)
    host, bundle, files = split_module(module)
    program = DeviceProgram(host, bundle, lambda name: describe(files[name]))
    (got,) = run_program(program, [x, w], MachineOptions(numerics="device"))
    relative = np.abs(got - numpy_products(x, w)) / numpy_products(x, w)
    assert relative.max() < (MOST_TRIPS + 2) * 2**-10


def sum_of(module: ModuleOp) -> KernelOp:
    return ops(module, KernelOp)[-1]


def test_which_sums_may_grow() -> None:
    assert summed_rows(sum_of(passed(products()))) == ("r", 0)
    assert summed_rows(sum_of(passed(products(128)))) == ("r", 0)
    assert summed_rows(sum_of(passed(products(function="max")))) is None
    # Integers of unknown size are watched where they are summed.
    assert summed_rows(sum_of(passed(products(more="integers")))) is None
    assert summed_rows(ops(passed(products()), KernelOp)[1]) is None


def test_a_sum_of_a_part_stays() -> None:
    text = products().replace("[r = 8, b", "[r = 4, b")
    assert summed_rows(sum_of(passed(text))) is None
    assert not group_of(passed(text)).is_summed


def test_a_sum_along_the_lanes_stays() -> None:
    x = "!spyre.tensor<[64, 16] x SEN169_FP16, order [1, 0], stick 1, hbm>"
    y = "!spyre.tensor<[64] x SEN169_FP16, order [0, unit], stick unit, hbm>"
    text = f"""func.func @main(%x: tensor<64x16xf16>) -> tensor<64xf16> {{
      %0 = spyre.kernel.to_device %x : tensor<64x16xf16> to {x}
      %1 = spyre.kernel.alloc : {y}
      spyre.kernel.compute "sum" [a = 64, r = 16] ins(%0[a, r] : {x}) outs(%1[a] : {y})
      %2 = spyre.kernel.from_device %1 : {y} to tensor<64xf16>
      func.return %2 : tensor<64xf16>
    }}"""
    assert summed_rows(sum_of(passed(text))) is None


def test_a_hint_about_a_sum_is_kept() -> None:
    module = passed(products(more="attributes {spyre.hint = {division = {b = 4 : i64}}}"))
    assert not may_grow(sum_of(module))
    assert not group_of(module).is_summed


def test_a_function_that_others_call_has_no_place_for_a_zero() -> None:
    module = passed(products())
    op = sum_of(module)
    assert may_grow(op)
    block = op.parent_block()
    assert block is not None
    block.insert_arg(op.output.type, 0)
    assert not may_grow(op)

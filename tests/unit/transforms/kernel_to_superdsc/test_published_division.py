"""Divisions of products by torch-spyre's rules: the op in the planner's terms, choices, and what keeps the usual."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest

from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.hw.division import DividedLoop
from spyre_mlir.hw.spec import SPYRE, SpyreSpec
from spyre_mlir.planning.rival import DeviceDim, ProductLoops, RivalOp
from spyre_mlir.transforms.kernel_to_superdsc.published_division import published, rival_op
from spyre_mlir.transforms.utils.kernels.loops import footprints, loops_of
from tests.unit.machine.modules import device
from tests.unit.transforms.levels import ops, passed


def matrix(*shape: int) -> str:
    last = len(shape) - 1
    return device(shape, last, (*range(last - 1), last, last - 1))


def usual(m: int, k: int, n: int, *, batch: str = "") -> KernelOp:
    """A product, divided as usual."""
    shapes = [(m, k), (k, n), (m, n)]
    extra = [int(batch)] if batch else []
    a, b, c = (matrix(*extra, *s) for s in shapes)
    loop, walk = (f"b = {batch}, ", "b, ") if batch else ("", "")
    text = f"""func.func @main() {{
      %0 = spyre.kernel.alloc : {a}
      %1 = spyre.kernel.alloc : {b}
      %2 = spyre.kernel.alloc : {c}
      spyre.kernel.compute "batchmatmul" [{loop}m = {m}, n = {n}, k = {k}]
        ins(%0[{walk}m, k] : {a}, %1[{walk}k, n] : {b}) outs(%2[{walk}m, n] : {c})
      func.return
    }}"""
    (op,) = ops(passed(text, "divide-work"), KernelOp)
    return op


def chosen(op: KernelOp, spec: SpyreSpec = SPYRE) -> dict[str, int]:
    loops = loops_of(op)
    return published(op, loops, footprints(op, loops), spec)


def test_an_op_as_the_planner_sees_it() -> None:
    op = usual(512, 4096, 1024, batch="4")
    b, m, n, k = DeviceDim(4, ("b",)), DeviceDim(512, ("m",)), DeviceDim(16, ("n",)), DeviceDim(64, ("k",))
    loops = [DividedLoop("b", 4, True), DividedLoop("m", 512, True), DividedLoop("n", 16, True)]
    assert rival_op(op, loops_of(op)) == RivalOp(
        (*loops, DividedLoop("k", 64, False)),
        ((b, k, m), (b, n, DeviceDim(4096, ("k",))), (b, n, m)),
        ProductLoops(batch="b", rows="m", columns="n", depth="k", shared=False),
    )


def test_long_and_short_products() -> None:
    """The first two are of the planner's worked choices.

    Its files of 256 x 512 x 128, of an older formula, have 32 slices of rows. 8 rows a core cost 30 us now, and 16 rows
    with two partial sums 2 us.
    """
    assert chosen(usual(512, 4096, 4096)) == {"m": 4, "n": 8, "k": 1}
    assert chosen(usual(512, 12800, 4096)) == {"m": 8, "n": 4, "k": 1}
    assert chosen(usual(256, 512, 128)) == {"m": 16, "n": 1, "k": 2}


def test_a_batch_with_one_weight() -> None:
    left, right, out = device((2, 64, 256), 2, (0, 2, 1)), matrix(256, 512), device((2, 64, 512), 2, (0, 2, 1))
    text = f"""func.func @main() {{
      %0 = spyre.kernel.alloc : {left}
      %1 = spyre.kernel.alloc : {right}
      %2 = spyre.kernel.alloc : {out}
      spyre.kernel.compute "batchmatmul" [h = 2, m = 64, n = 512, k = 256]
        ins(%0[h, m, k] : {left}, %1[k, n] : {right}) outs(%2[h, m, n] : {out})
      func.return
    }}"""
    (op,) = ops(passed(text, "divide-work"), KernelOp)
    roles = rival_op(op, loops_of(op)).product
    assert roles == ProductLoops(batch="h", rows="m", columns="n", depth="k", shared=True)


def test_roles_that_the_score_does_not_cover() -> None:
    """Two loops of columns: the planner has the default division for them."""
    left, right, out = matrix(64, 256), device((2, 256, 512), 2, (0, 2, 1)), device((64, 2, 512), 2, (1, 2, 0))
    text = f"""func.func @main() {{
      %0 = spyre.kernel.alloc : {left}
      %1 = spyre.kernel.alloc : {right}
      %2 = spyre.kernel.alloc : {out}
      spyre.kernel.compute "batchmatmul" [h = 2, m = 64, n = 512, k = 256]
        ins(%0[m, k] : {left}, %1[h, k, n] : {right}) outs(%2[m, h, n] : {out})
      func.return
    }}"""
    (op,) = ops(passed(text, "divide-work"), KernelOp)
    assert rival_op(op, loops_of(op)).product is None
    assert chosen(op) == op.space_splits()


def test_a_batch_is_divided_last() -> None:
    """A divided batch costs 10 us per halving, so the cores go to rows and columns."""
    found = chosen(usual(512, 1024, 1024, batch="4"))
    assert set(found) == {"b", "m", "n", "k"} and found["b"] == 1 and prod(found.values()) == 32
    assert found["k"] == 1


def test_an_operand_within_reach_has_no_floor() -> None:
    """The weight has 32 MiB; without a byte of that its columns are halved, and the rest goes to the rows."""
    op, reach = usual(512, 4096, 4096), 4096 * 4096 * 2
    assert chosen(op, replace(SPYRE, span_bytes=reach)) == {"m": 4, "n": 8, "k": 1}
    assert chosen(op, replace(SPYRE, span_bytes=reach - 1)) == {"m": 16, "n": 2, "k": 1}


def test_a_product_out_of_reach_of_every_core_stays() -> None:
    """On cores that reach a hundredth, the planner's floors ask for more cores than there are."""
    op = usual(512, 4096, 4096)
    small = replace(SPYRE, span_bytes=SPYRE.span_bytes // 1000)
    assert chosen(op, small) == op.space_splits() == {"m": 32, "n": 1, "k": 1}


@pytest.mark.parametrize("cores", [32, 8])
def test_never_fewer_cores(cores: int) -> None:
    op = usual(512, 4096, 4096)
    spec = replace(SPYRE, cores_per_card=cores)
    assert prod(chosen(op, spec).values()) == 32

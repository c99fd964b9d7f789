"""Loops of a bundle function: what is written where, and in which order kernels run."""

from __future__ import annotations

import pytest
from xdsl.dialects import scf
from xdsl.dialects.affine import ApplyOp
from xdsl.dialects.builtin import IndexType
from xdsl.dialects.test import TestOp
from xdsl.ir import Block, Operation, SSAValue

from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.dialects.spyre.static_loop import LoopBounds
from spyre_mlir.transforms.kernel_to_superdsc.bundle_loops import LoopNest, Trip, schedule
from tests.unit.transforms.levels import passed


def values(count: int) -> list[SSAValue]:
    return list(Block(arg_types=[IndexType()] * count).args)


def opened(nest: LoopNest, index: SSAValue) -> list[SSAValue]:
    bounds = values(3)
    nest.open(bounds, index)
    return bounds


def test_ops_go_into_the_innermost_open_loop() -> None:
    nest, ops = LoopNest(), [TestOp() for _ in range(4)]
    outer, inner = values(2)
    nest.append(ops[0])
    bounds = opened(nest, outer)
    nest.append(ops[1])
    opened(nest, inner)
    nest.append(ops[2])
    nest.close()
    nest.close()
    nest.append(ops[3])
    first, loop, last = nest
    assert (first, last) == (ops[0], ops[3]) and isinstance(loop, scf.ForOp)
    assert [loop.lb, loop.ub, loop.step] == bounds
    one, within, end = loop.body.block.ops
    assert one is ops[1] and isinstance(within, scf.ForOp) and isinstance(end, scf.YieldOp)
    assert next(iter(within.body.block.ops)) is ops[2]
    assert (loop.body.block.args[0].name_hint, within.body.block.args[0].name_hint) == ("i0", "i1")


def test_addresses_advance_in_the_innermost_loop_that_moves_them() -> None:
    nest = LoopNest()
    start, outer, inner, strange = values(4)
    assert nest.advance(start, ((outer, 8),)) is start
    opened(nest, outer)
    opened(nest, inner)
    assert nest.advance(start, ()) is start
    assert nest.advance(start, ((outer, 8), (outer, -8))) is start
    assert nest.advance(start, ((strange, 8),)) is start
    once = nest.advance(start, ((outer, 128),))
    assert nest.advance(start, ((outer, 100), (outer, 28))) is once
    both = nest.advance(start, ((inner, 64), (outer, 128)))
    assert nest.advance(start, ((inner, 64), (outer, 256))) is not both
    nest.close()
    nest.close()
    (loop,) = nest
    assert isinstance(loop, scf.ForOp)
    applied, within, _ = loop.body.block.ops
    assert isinstance(applied, ApplyOp) and applied.result is once
    assert tuple(applied.operands) == (loop.body.block.args[0], start)
    assert str(applied.map.data) == "(d0)[s0] -> ((s0 + (d0 * 128)))"
    assert isinstance(within, scf.ForOp)
    second, third, _ = within.body.block.ops
    assert isinstance(second, ApplyOp) and second.result is both and isinstance(third, ApplyOp)
    assert tuple(second.operands) == (loop.body.block.args[0], within.body.block.args[0], start)
    assert str(second.map.data) == "(d0, d1)[s0] -> (((s0 + (d0 * 128)) + (d1 * 64)))"


T = "!spyre.tensor<[4, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>"
NESTED = """scf.for %i = %c0 to %c4 step %c2 {
  KERNEL exp
  scf.for %j = %c1 to %c4 step %c2 {
    KERNEL neg
  }
}
KERNEL abs
"""


@pytest.fixture
def ops() -> list[Operation]:
    lines = list[str]()
    for line in NESTED.splitlines():
        name = line.strip().removeprefix("KERNEL ")
        made = f'spyre.kernel.compute "{name}" [m = 4, n = 64] ins(%a[m, n] : {T}) outs(%a[m, n] : {T})'
        lines.append(made if "KERNEL" in line else line)
    constants = "".join(f"%c{n} = arith.constant {n} : index\n" for n in (0, 1, 2, 4))
    text = f"func.func @main() {{\n{constants}%a = spyre.kernel.alloc : {T}\n" + "\n".join(lines) + "\nfunc.return\n}"
    return list(functions(passed(text))[0].body.block.ops)


def test_unrolled_loops_run_every_trip(ops: list[Operation]) -> None:
    seen = list[tuple[str, list[int]]]()

    def launch(op: KernelOp, trip: Trip) -> None:
        seen.append((op.function_name, list(trip.values())))

    schedule(ops, launch, None)
    trips = [("exp", [0]), ("neg", [0, 1]), ("neg", [0, 3]), ("exp", [2]), ("neg", [2, 1]), ("neg", [2, 3])]
    assert seen == [*trips, ("abs", [])]


def test_loops_that_stay_are_opened_and_closed(ops: list[Operation]) -> None:
    seen, nest = list[object](), LoopNest()

    def loop(bounds: LoopBounds, index: SSAValue) -> LoopNest:
        seen.append(bounds)
        opened(nest, index)
        return nest

    def launch(op: KernelOp, trip: Trip) -> None:
        assert trip == {}
        seen.append(op.function_name)
        nest.append(TestOp())

    schedule(ops, launch, loop)
    assert seen == [LoopBounds(0, 4, 2), "exp", LoopBounds(1, 4, 2), "neg", "abs"]
    assert [type(op) for op in nest] == [scf.ForOp, TestOp]

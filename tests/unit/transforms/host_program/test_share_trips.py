"""Steps of a loop over slices share trips: as few as there can be, each entry once and in order."""

from __future__ import annotations

import pytest
from xdsl.dialects import scf

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.kernel_loop import TileOp
from spyre_mlir.dialects.spyre.static_loop import loop_bounds
from spyre_mlir.transforms.host_program.share_trips import steps_of_trip
from tests.unit.transforms.levels import ops, passed


def steps(trips: int, tile: str, adds: int = 1) -> str:
    t, x = (f"!spyre.tensor<[{n}4, 64] x SEN169_FP16, order [{o}" for n, o in (("", "1, 0"), (f"{trips}, ", "1, 2, 0")))
    t, x, e = f"{t}], stick 1, hbm>", f"{x}], stick 2, hbm>", f"{x}], stick 2, extents [{trips}, 4, 64], hbm>"
    e = e.replace(f"<[{trips},", "<[1,")
    add = f'spyre.kernel.compute "add" [m = 4, n = 64] ins(%h[m, n] : {t}, %3[0, m, n] : {e}) outs(%h[m, n] : {t})\n'
    return f"""
func.func private @steps(%h: {t}, %x: {x}) {{
  %0 = arith.constant 0 : index
  %1 = arith.constant {trips} : index
  %2 = arith.constant 1 : index
  scf.for %i = %0 to %1 step %2 {{
    %3 = spyre.kernel.tile %x dim 0 at %i * {tile} : {x} to {e}
    {add * adds}
  }}
  func.return
}}
"""


@pytest.mark.parametrize(
    ("trips", "most", "several"), [(16, 5, 4), (13, 5, 4), (9, 8, 8), (9, 1, 1), (9, 0, 1), (11, 5, 5), (512, 8, 8)]
)
def test_the_fewest_trips(trips: int, most: int, several: int) -> None:
    assert steps_of_trip(trips, most) == several


@pytest.mark.parametrize(
    ("trips", "most", "tile"), [(9, 2, "1"), (9, 2, "-1 from 8"), (12, 5, "1"), (13, 4, "-1 from 12"), (9, 1, "1")]
)
def test_entries_come_once_and_in_order(trips: int, most: int, tile: str) -> None:
    module = passed(steps(trips, tile), "share-trips", steps=most)
    met = list[int]()
    for loop in ops(module, scf.ForOp):
        inside = [op for op in loop.body.block.ops if isinstance(op, TileOp)]
        adds = [op for op in loop.body.block.ops if isinstance(op, kernel.ComputeOp)]
        assert [op.inputs[1] for op in adds] == [op.result for op in inside]
        met += [op.first_element + i * op.step.value.data for i in loop_bounds(loop).values for op in inside]
    assert met == (list(range(trips)) if tile == "1" else list(range(trips - 1, -1, -1)))


@pytest.mark.parametrize(("adds", "most", "several"), [(1, 3, 3), (2, 7, 3), (2, 1, 1), (1, 64, 6)])
def test_kernels_of_a_trip_are_bounded(adds: int, most: int, several: int) -> None:
    module = passed(steps(12, "1", adds), "share-trips", kernels=most)
    (loop,) = ops(module, scf.ForOp)
    assert len(ops(loop, kernel.ComputeOp)) == several * adds
    assert loop_bounds(loop).trips == 12 // several


def test_a_function_that_does_more_stays() -> None:
    """Only a function of a loop and its bounds is one of slices."""
    alloc = "  %t = spyre.kernel.alloc : !spyre.tensor<[4, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>\n"
    text = steps(12, "1").replace("  %0 = arith", f"{alloc}  %0 = arith")
    (loop,) = ops(passed(text, "share-trips"), scf.ForOp)
    assert loop_bounds(loop).trips == 12

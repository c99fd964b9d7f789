"""Bodies of loops: tiles, small buffers, and what stands around the loop."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.scf import ForOp

from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.spyre.attributes import DeviceTensor
from spyre_mlir.dialects.spyre.kernel import AllocOp, KernelOp, device_tensor
from spyre_mlir.dialects.spyre.kernel_loop import TileOp
from spyre_mlir.dialects.spyre.static_loop import loop_bounds
from spyre_mlir.hw.arrangement import WIDENED
from spyre_mlir.hw.formats import FP32
from spyre_mlir.hw.sticks import StickLayout
from spyre_mlir.planning.trips import TripSpan
from spyre_mlir.text.render import verify_module
from spyre_mlir.transforms.kernel_loops.row_groups import RowGroup, grow
from spyre_mlir.transforms.kernel_loops.tiled_body import TiledBody, install
from tests.unit.transforms.kernel_loops.test_row_blocks import product
from tests.unit.transforms.levels import ops, passed
from tests.unit.transforms.test_place_lx import softmax


def rows_of(module: object) -> RowGroup:
    block = functions(module)[0].body.block  # type: ignore[arg-type]
    first = next(op for op in block.ops if isinstance(op, KernelOp))
    behind = list(block.ops)[block.get_operation_index(first) + 1 :]
    return next(group for group in grow(first, behind) if group.loops[0] == "m")


def test_a_body_leaves_the_program_alone_until_it_is_installed() -> None:
    module = passed(softmax(64, 128))
    before, group = str(module), rows_of(module)
    body = TiledBody(group, TripSpan.of_all(4))
    assert [op.space.extents["m"] for op in body.kernels] == [16] * 5
    assert [device_tensor(a.result).shape[0] for a in body.allocs] == [16] * 4
    body.drop()
    assert str(module) == before


def test_an_installed_loop_verifies_and_takes_the_place_of_the_group() -> None:
    module = passed(softmax(64, 128))
    body = TiledBody(rows_of(module), TripSpan.of_all(4))
    install([body])
    verify_module(module)
    (loop,) = ops(module, ForOp)
    assert loop_bounds(loop).trips == 4 and loop.body.block is body.block
    assert all(op.parent_op() is loop for op in ops(module, KernelOp))
    # x and the result are tiles; what is between is made in every trip.
    assert [tile.step.value.data for tile in ops(module, TileOp)] == [16, 16]
    assert [a.parent_op() is loop for a in ops(module, AllocOp)] == [False, True, True, True, True]


def test_tiles_have_the_rows_that_a_trip_reads_beside_its_own() -> None:
    """Rows 2 m and 2 m + 1 and 2 m + 2 of 34: trip i of 4 has m from 4 i, and rows from 8 i to 8 i + 9."""
    large, small = (f"!spyre.tensor<[{n}, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>" for n in (34, 16))
    taps = "".join(
        f"""spyre.kernel.compute "identity" [m = 16, n = 128] ins(%a[m * 2 + {tap}, n] : {large})
        outs(%b{tap}[m, n] : {small})
        """
        for tap in range(3)
    )
    module = passed(f"""func.func @main() {{
      %a = spyre.kernel.alloc : {large}
      %b0 = spyre.kernel.alloc : {small}
      %b1 = spyre.kernel.alloc : {small}
      %b2 = spyre.kernel.alloc : {small}
      {taps} func.return
    }}""")
    body = TiledBody(rows_of(module), TripSpan.of_all(4))
    install([body])
    verify_module(module)
    tiles = {(t.step.value.data, device_tensor(t.result).shape[0]) for t in ops(module, TileOp)}
    assert tiles == {(8, 10)}  # nothing else reads the results


def test_a_buffer_of_a_block_keeps_the_sticks_of_widened_floats_together() -> None:
    """Floats in widened order lie in blocks of two sticks, and 32 columns of one trip take a whole block."""
    body = TiledBody(rows_of(passed(softmax(64, 128))), TripSpan.of_all(2))
    whole = DeviceTensor((8, 64), FP32.name, StickLayout.published((8, 64), 1, 64), arrangement=WIDENED)
    made = body._alloc(whole, 1, {})
    assert device_tensor(made.results[0]).layout.extents == (8, 64)
    assert device_tensor(made.results[0]).shape == (8, 32)


def test_two_loops_share_the_rows_of_a_group() -> None:
    """48 rows in three trips, then the other 16 in blocks of eight."""
    module = _in_two_loops(TripSpan(3, 2, 8), TripSpan(2, 1, 8, start=6))
    steps = [tile.step.value.data for tile in ops(module, TileOp)]
    bounds = [loop_bounds(loop) for loop in ops(module, ForOp)]
    assert [list(b.values) for b in bounds] == [[0, 1, 2], [6, 7]] and steps == [16, 16, 8, 8]
    assert [op.space.extents["m"] for op in ops(module, KernelOp)] == [16] * 5 + [8] * 5


def test_a_block_may_start_at_no_multiple_of_its_size() -> None:
    """40 rows, then the other 24, which start at 5 times 8."""
    module = _in_two_loops(TripSpan(1, 5, 8), TripSpan(1, 3, 8, start=5))
    tiles = [(t.step.value.data, device_tensor(t.result).shape[0]) for t in ops(module, TileOp)]
    assert [list(loop_bounds(loop).values) for loop in ops(module, ForOp)] == [[0], [5]]
    assert tiles == [(40, 40)] * 2 + [(8, 24)] * 2


def test_copies_of_a_weight_are_made_for_parts_of_the_rows() -> None:
    """Of 384 columns the last 128 are made by eight cores each, for 12 of 96 rows."""
    module = product(96, columns=384)
    first, *others = ops(module, KernelOp)
    group = next(g for g in grow(first, others) if g.loops[0] == "d0")
    install([TiledBody(group, TripSpan(1, 2, 3)), TiledBody(group, TripSpan(1, 1, 3, start=2, copies=8))])
    verify_module(module)
    once, copied = (list(op.body.block.ops) for op in ops(module, ForOp))
    kernels = [[op for op in body if isinstance(op, KernelOp)] for body in (once, copied)]
    assert [op.space.extents.get("copy", 1) for op in kernels[0]] == [1, 1, 1]
    assert [op.space.extents.get("copy", 1) for op in kernels[1]] == [8, 8, 1]
    assert kernels[1][1].space.extents == {"copy": 8, "m": 12, "n": 128, "k": 64}
    assert device_tensor(kernels[1][0].output).shape == (8, 128, 64)


def _in_two_loops(*spans: TripSpan) -> ModuleOp:
    module = passed(softmax(64, 128))
    group = rows_of(module)
    install([TiledBody(group, span) for span in spans])
    verify_module(module)
    return module

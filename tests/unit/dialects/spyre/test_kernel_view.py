"""Views: a buffer of device memory as a tensor of another shape, on the machine and beside tiles."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.dialects.spyre.kernel import AllocOp
from spyre_mlir.dialects.spyre.kernel_loop import TileOp, buffer_behind, launch_origin, uses_with_tiles
from spyre_mlir.dialects.spyre.kernel_view import ViewOp
from spyre_mlir.errors import MachineFault
from spyre_mlir.transforms.kernel_plans.unfit_buffers import unfit_reason
from tests.unit.dialects.texts import only
from tests.unit.machine.modules import close, main, numbers, parse, run

GIVEN = "tensor<128x64xf16>"
# 128 rows of one stick each; the same sticks as 8 rows of 16, and as 2 rows of 16 that a trip of a loop works on.
ROWS = "!spyre.tensor<[128, 64] x SEN169_FP16, order [0, 1], stick 1, hbm>"
WIDE = "!spyre.tensor<[8, 1024] x SEN169_FP16, order [0, 1], stick 1, hbm>"
PART = "!spyre.tensor<[2, 1024] x SEN169_FP16, order [0, 1], stick 1, extents [8, 1024], hbm>"
WRITTEN = f"""%d = spyre.kernel.to_device %x : {GIVEN} to {ROWS}
%t = spyre.kernel.alloc : {ROWS}
%v = spyre.kernel.view %t : {ROWS} to {WIDE}
spyre.kernel.compute "neg" [m = 128, n = 64] ins(%d[m, n] : {ROWS}) outs(%t[m, n] : {ROWS})
%o = spyre.kernel.alloc : {WIDE}
"""
WHOLE = f'spyre.kernel.compute "exp" [m = 8, n = 1024] ins(%v[m, n] : {WIDE}) outs(%o[m, n] : {WIDE})\n'
IN_TRIPS = f"""%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c4 = arith.constant 4 : index
scf.for %i = %c0 to %c4 step %c1 {{
  %p = spyre.kernel.tile %v dim 0 at %i * 2 : {WIDE} to {PART}
  %q = spyre.kernel.tile %o dim 0 at %i * 2 : {WIDE} to {PART}
  spyre.kernel.compute "exp" [m = 2, n = 1024] ins(%p[m, n] : {PART}) outs(%q[m, n] : {PART})
}}
"""
FREE = f"spyre.kernel.free %t : {ROWS}\n"


def program(*body: str) -> str:
    result = "tensor<8x1024xf16>"
    return main(
        f"%x: {GIVEN}", WRITTEN + "".join(body) + f"%out = spyre.kernel.from_device %o : {WIDE} to {result}", result
    )


@pytest.mark.parametrize("body", [WHOLE, IN_TRIPS])
def test_the_same_elements_in_another_shape(body: str) -> None:
    x = numbers(128, 64)
    close(run(program(body), x), np.exp(-x).reshape(8, 1024))


def test_what_is_written_later_is_seen() -> None:
    """A view is memory, no copy of what was there when it was made."""
    with pytest.raises(MachineFault, match="uninitialised-read: exp computes"):
        run(program(WHOLE).replace('"neg" [m = 128', '"neg" [m = 64'), numbers(128, 64))


def test_a_view_dies_with_its_buffer() -> None:
    with pytest.raises(MachineFault, match="use-after-free: input 0 was freed"):
        run(program(FREE, WHOLE), numbers(128, 64))


def test_no_view_of_what_was_freed() -> None:
    made = f"%w = spyre.kernel.view %t : {ROWS} to {WIDE}\n"
    with pytest.raises(MachineFault, match="use-after-free: the tensor was freed"):
        run(program(FREE, made, WHOLE.replace("%v", "%w")), numbers(128, 64))


def test_the_buffer_behind_a_view_and_its_tiles() -> None:
    module = parse(program(IN_TRIPS))
    view = only(module, ViewOp)
    buffer = next(op for op in module.walk() if isinstance(op, AllocOp)).result
    tile = next(op for op in module.walk() if isinstance(op, TileOp) and op.source is view.result)
    for value in (view.result, tile.result):
        assert buffer_behind(value) is buffer
        assert launch_origin(value).buffer is buffer
    # Two rows of 16 sticks of 128 bytes from trip to trip.
    assert [step for _, step in launch_origin(tile.result).steps] == [2 * 16 * 128]
    assert [use.operation.name for use in uses_with_tiles(buffer)] == ["spyre.kernel.compute"] * 2


def test_its_buffer_is_not_for_the_scratchpads() -> None:
    view = only(parse(program(WHOLE)), ViewOp)
    assert unfit_reason(view.source) == "it is read in another shape"

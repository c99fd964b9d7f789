"""Groups of nests that share their rows: what is followed, and what ends them."""

from __future__ import annotations

import pytest

from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.text.render import parse_module
from spyre_mlir.transforms.utils.nests.shared_rows import SharedRows, filled_parts, shared_rows
from spyre_mlir.universe import make_context
from tests.unit.transforms.levels import ops

# The sum of each row, from which each element is divided; columns are the rows of what reads it last.
CHAIN = """
!t = tensor<67x80xf16>
!s = tensor<67x1xf16>
func.func @main(%x: !t) -> tensor<80x67xf16> {
  %eps = spyre.loop.constant 0.5 : f64 : tensor<f16>
  %0 = spyre.loop.nest [m = 67, r = 80] ins(%x[m, r] : !t) -> [m, 0] : !s reduce "arith.addf" {
  ^bb0(%a: f16):
    spyre.loop.yield %a : f16
  }
  %1 = spyre.loop.nest [m = 67] ins(%0[m, 0] : !s, %eps[] : tensor<f16>) -> [m, 0] : !s {
  ^bb0(%b: f16, %c: f16):
    %d = arith.addf %b, %c : f16
    spyre.loop.yield %d : f16
  }
  %2 = spyre.loop.nest [m = 67, n = 80] ins(%x[m, n] : !t, %1[m, 0] : !s) -> [m, n] : !t {
  ^bb0(%e: f16, %f: f16):
    %g = arith.divf %e, %f : f16
    spyre.loop.yield %g : f16
  }
  %3 = spyre.loop.nest [n = 80, m = 67] ins(%2[m, n] : !t) -> [n, m] : tensor<80x67xf16> {
  ^bb0(%h: f16):
    spyre.loop.yield %h : f16
  }
  func.return %3 : tensor<80x67xf16>
}
"""


def groups(text: str) -> list[SharedRows]:
    """The groups of the only function, of any number of rows."""
    (function,) = functions(parse_module(text, make_context()))
    return shared_rows(function, lambda _: True)


def test_rows_are_followed_up_to_what_is_a_result() -> None:
    (group,) = groups(CHAIN)
    assert group.rows == 67 and list(group.loops.values()) == ["m", "m", "m"]
    assert len(group.reductions) == 1 and list(group.sources.values()) == [0]


@pytest.mark.parametrize(
    ("old", "new", "size"),
    [
        ("%1[m, 0] : !s) ->", "%0[m, 0] : !s) ->", 1),  # a sum may be 0
        ("constant 0.5", "constant 0.0", 2),
        ("constant 0.5", "constant -0.5", 2),
        ("%3 : tensor<80x67xf16>\n", "%3, %1 : tensor<80x67xf16>, !s\n", 2),  # a result has no more rows
    ],
)
def test_what_ends_a_group(old: str, new: str, size: int) -> None:
    text = CHAIN.replace(old, new)
    if "%1 :" in new:
        text = text.replace("-> tensor<80x67xf16> {\n  %eps", "-> (tensor<80x67xf16>, !s) {\n  %eps")
    assert sum(len(group.loops) for group in groups(text)) == size


def test_parts_of_a_tensor_that_only_nests_read() -> None:
    text = CHAIN.replace(
        "  %0 = ",
        """  %empty = spyre.loop.empty : !t
  %y = spyre.loop.nest [m = 67, n = 80] ins(%x[m, n] : !t) into %empty -> [m, n] : !t {
  ^bb0(%k: f16):
    spyre.loop.yield %k : f16
  }
  %0 = """,
    ).replace("ins(%x[m, r]", "ins(%y[m, r]")
    module = parse_module(text, make_context())
    part, total, *_ = ops(module, NestOp)
    assert filled_parts(part.result) == [part] and filled_parts(total.result) == []

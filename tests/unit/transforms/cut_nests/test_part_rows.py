"""Flat rows of batches that get two dimensions: when, what keeps its rows, and values as torch has them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import spyre_mlir
from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.frontend import import_program
from spyre_mlir.pipeline.order import made_passes, passes_to
from spyre_mlir.universe import make_context
from tests.unit.transforms.levels import ops, passed

TEXT = Path(__file__, "../../../../lit/transforms/part_rows.mlir").resolve().read_text(encoding="utf-8")
SUM = """
!b = tensor<3x32x64xf16>
!s = tensor<96x1xf16>
func.func @main(%x: !b) -> tensor<3x32x1xf16> {
  %0 = spyre.loop.nest [b = 3, m = 32, r = 64] ins(%x[b, m, r] : !b) -> [b * 32 + m, 0] : !s reduce "arith.addf" {
  ^bb0(%a: f16):
    spyre.loop.yield %a : f16
  }
  %1 = spyre.loop.nest [b = 3, m = 32] ins(%0[b * 32 + m, 0] : !s) -> [b, m, 0] : tensor<3x32x1xf16> {
  ^bb0(%c: f16):
    %d = math.exp %c : f16
    spyre.loop.yield %d : f16
  }
  func.return %1 : tensor<3x32x1xf16>
}
"""


class Block(nn.Module):
    """Products of all rows behind each other, as ``view(-1, channels)`` makes them, between sums of rows of batches."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.behind = nn.LayerNorm(64), nn.LayerNorm(64)
        self.wider, self.narrower = nn.Linear(64, 128), nn.Linear(128, 64)

    def forward(self, x: Tensor) -> Tensor:
        y = functional.gelu(self.wider(self.before(x).view(-1, 64)))
        return self.behind(x + self.narrower(y).view(x.shape))


def flat(text: str) -> int:
    """How many nests make flat rows after the pass."""
    return sum(len(shape_of(nest.result)) == 2 for nest in ops(passed(text, "part-rows"), NestOp))


def with_rows(text: str, rows: int) -> str:
    """The program with another number of rows in each of its three batches."""
    for old, new in (("3x32x", f"3x{rows}x"), ("= 32", f"= {rows}"), ("* 32", f"* {rows}"), ("96", str(3 * rows))):
        text = text.replace(old, new)
    return text.replace("[31, n]", "[2, n]")


@pytest.mark.parametrize(
    ("text", "rows", "count"),
    [(TEXT, 8, 1), (TEXT, 7, 3), (SUM, 32, 0), (SUM, 31, 1)],
    ids=["products", "products of few rows", "sums", "sums of few rows"],
)
def test_rows_are_parted_where_that_gains(text: str, rows: int, count: int) -> None:
    assert flat(with_rows(text, rows)) == count


@pytest.mark.parametrize(
    ("loops", "read", "count"),
    [
        ("n = 64", "%1[31, n]", 1),
        ("n = 64", "%1[95, n]", 1),
        ("r = 32, n = 64", "%1[r + 32, n]", 1),
        ("r = 32, n = 64", "%1[r + 31, n]", 3),
        ("r = 96, n = 64", "%1[r, n]", 3),
    ],
    ids=["a row", "a row of the last batch", "a batch", "rows across batches", "a sum of all rows"],
)
def test_what_reads_rows_of_batches(loops: str, read: str, count: int) -> None:
    """A tensor with a reader that crosses batches keeps its rows, and so do those around it."""
    text = TEXT.replace("[n = 64] ins(%1[31, n]", f"[{loops}] ins({read}")
    if "r" in loops:
        text = text.replace("-> [n] : tensor<64xf16> {", '-> [n] : tensor<64xf16> reduce "arith.addf" {')
    assert flat(text) == count


def test_results_keep_their_rows() -> None:
    assert flat(TEXT.replace("%2, %3, %4 :", "%2, %1, %4 :")) == 3


def test_loops_get_names_of_their_own() -> None:
    text = (
        TEXT.replace("[m = 96, n = 64]", "[m = 96, m_0 = 64]")
        .replace("[m, n]", "[m, m_0]")
        .replace("%w[0, n]", "%w[0, m_0]")
    )
    assert [d.name for d in ops(passed(text, "part-rows"), NestOp)[1].space.data] == ["m_1", "m_2", "m_0"]


def test_every_level_agrees_with_torch() -> None:
    torch.manual_seed(5)  # pyright: ignore[reportUnknownMemberType]
    model, x = Block().half().eval(), torch.randn(3, 9, 64).half()
    compiled = spyre_mlir.compile(model, (x,))
    assert "3x9x128xf16" in passed_loops(model, x)
    assert (outcome := compiled.verify(x)), str(outcome)


def passed_loops(model: nn.Module, x: Tensor) -> str:
    """The text of a program after the pass."""
    module = import_program(model, (x,)).module
    for one in made_passes([*passes_to("spyre.loop").split(","), "part-rows"], {}):
        one.apply(make_context(), module)
    return str(module)

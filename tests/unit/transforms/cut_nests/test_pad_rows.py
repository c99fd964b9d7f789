"""Rows that are appended where cores could not share those that there are: when, and values as torch has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import spyre_mlir
from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.frontend import import_program
from spyre_mlir.pipeline.order import made_passes, passes_to
from spyre_mlir.transforms.buffer_layouts.repair.prices import LayoutPricing
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel
from tests.unit.transforms.levels import ops, passed

TEXT = Path(__file__, "../../../../lit/transforms/pad_rows.mlir").resolve().read_text(encoding="utf-8")


class Encoder(nn.Module):
    """Norms and causal attention over a token, others behind it, and their positions; the mean is a result, too."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.token, self.places = nn.Parameter(torch.randn(1, 1, 128)), nn.Parameter(torch.randn(1, rows, 128))
        self.before, self.behind = nn.LayerNorm(128), nn.LayerNorm(128)
        self.queries, self.keys, self.values, self.out = (nn.Linear(128, 128) for _ in range(4))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = torch.cat((self.token.expand(x.shape[0], -1, -1), x), 1) + self.places
        z = self.before(y)
        q, k, v = (f(z).unflatten(-1, (2, -1)).transpose(1, 2) for f in (self.queries, self.keys, self.values))
        found = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = self.behind(y + self.out(found.transpose(1, 2).flatten(2)))
        return y, y.mean(1)


def longest(text: str, **options: Any) -> int:
    """How many rows the nests with the most of them have after the pass."""
    loops = [d for nest in ops(passed(text, "pad-rows", **options), NestOp) for d in nest.space.data]
    return max(d.extent for d in loops if d.name == "m")


def with_rows(rows: int) -> str:
    return TEXT.replace("m = 256", f"m = {rows - 1}").replace("<256x", f"<{rows - 1}x").replace("257", str(rows))


@pytest.mark.parametrize(
    ("rows", "padded"),
    [
        (257, 288),  # nine rows for each core
        (521, 544),
        (251, 256),
        (256, 256),
        (250, 256),
        (200, 200),  # 25 cores: little to gain
        (29, 29),  # one row for each of 29 cores
        (67, 72),
        (33, 33),  # 40 rows are predicted to take longer
    ],
)
def test_rows_are_padded_where_that_gains(rows: int, padded: int) -> None:
    assert longest(with_rows(rows)) == padded


def test_rows_stay_where_longer_ones_cannot_be_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[list[float] | None] = [None, [100.0]]

    def priced(*_: object) -> list[float] | None:
        return answers.pop()

    monkeypatch.setattr(LayoutPricing, "without_loops", priced)
    assert longest(TEXT) == 257


def test_no_form_is_tried_where_parts_keep_float32() -> None:
    assert longest(TEXT, keep_float32_in=("relu",)) == 257


def test_every_level_agrees_with_torch() -> None:
    """Scores have 67 keys for 72 queries, and the mean is that of 67 rows."""
    torch.manual_seed(7)  # pyright: ignore[reportUnknownMemberType]
    model, x = Encoder(67).half().eval(), torch.randn(1, 66, 128).half()
    compiled = spyre_mlir.compile(model, (x,))
    assert "72x128xf16" in passed_loops(model, x)
    assert (outcome := compiled.verify(x)), str(outcome)


def passed_loops(model: nn.Module, x: Tensor) -> str:
    """The text of a program after the pass."""
    module = import_program(model, (x,)).module
    for one in made_passes([*passes_to("spyre.loop").split(","), "pad-rows"], {}):
        one.apply(make_context(), module)
    return str(module)


def test_rows_stay_where_what_they_read_ends() -> None:
    """Five hundred of 512 rows are read; those that would be appended are not all there."""
    wide = FunctionModel(lambda x, y: (x + y.reshape(512, 512)[:500, :500]).softmax(-1))
    inputs = torch.ones(500, 500).half(), torch.arange(512.0).remainder(7).repeat(512).view(8, 64, 512).half()
    assert (outcome := spyre_mlir.compile(wide, inputs).verify(*inputs)), str(outcome)

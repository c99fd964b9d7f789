"""Pass `slice-columns`: selections of a packed projection become slices, and the numbers stay eager's."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from typing_extensions import override

import spyre_mlir
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.frontend import import_program
from spyre_mlir.transforms.aten_forms.slice_columns import SliceColumnsPass
from spyre_mlir.universe import make_context

ROWS = torch.randn(2, 5, 64, generator=torch.Generator().manual_seed(1))


class Packed(nn.Module):
    """A layer whose columns are selected in three parts, rows and heads in an order of their own."""

    def __init__(self, order: tuple[int, ...], *, last: int = 2, whole: bool = False, by: str = "select") -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(64, 384)
        self.order, self.last, self.whole, self.by = order, last, whole, by

    @override
    def forward(self, x: Tensor) -> Tensor:
        y = self.layer(x)
        parts = y.view(2, 5, 3, 2, 64).permute(self.order)
        at = self.order.index(2)
        if self.by == "select":
            q, k, v = (parts.select(at, n) for n in (0, 1, self.last))
        else:
            q, k, v = parts.unbind(at) if self.by == "unbind" else parts.chunk(3, at)
        made = q * k - v
        return made + y.sum() if self.whole else made


class Attention(nn.Module):
    """Self-attention of torch."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.attention = nn.MultiheadAttention(64, 2, batch_first=True)

    @override
    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x, need_weights=False)[0]


MODELS = {
    "heads first": Packed((2, 0, 3, 1, 4)),
    "as they are": Packed((0, 1, 2, 3, 4)),
    "rows turned": Packed((1, 2, 0, 3, 4), last=-1),
    "unbound": Packed((2, 0, 3, 1, 4), by="unbind"),
    "in chunks": Packed((0, 1, 3, 2, 4), by="chunk"),
    "attention": Attention(),
}


def behind_pass(model: nn.Module) -> list[AtenOp]:
    """The operators of a model behind the pass."""
    module = import_program(model.eval(), (ROWS,)).module
    SliceColumnsPass().apply(make_context(), module)
    module.verify()
    return [op for op in module.walk() if isinstance(op, AtenOp)]


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_selections_become_slices(model: nn.Module) -> None:
    ops = behind_pass(model)
    read = [op.operands[0].owner for op in ops if op.overload in ("slice.Tensor", "select.int")]
    assert [op.overload for op in read if isinstance(op, AtenOp)] == ["linear"] * 3


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_every_level_agrees_with_eager(model: nn.Module) -> None:
    assert spyre_mlir.compile(model.eval(), (ROWS,)).verify(ROWS)


def test_a_layer_with_another_reader_keeps_its_selections() -> None:
    ops = behind_pass(Packed((2, 0, 3, 1, 4), whole=True))
    assert "slice.Tensor" not in {op.overload for op in ops}

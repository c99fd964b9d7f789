"""Cells of recurrent layers made of other operators, against the cells of torch."""

from __future__ import annotations

import torch
from torch import nn

from spyre_mlir.torch_device.fused import FUSED

aten = torch.ops.aten
LSTM, GRU = FUSED[aten._thnn_fused_lstm_cell.default], FUSED[aten._thnn_fused_gru_cell.default]
X, H, C = (torch.randn(2, 3, generator=torch.Generator().manual_seed(n)) for n in range(3))


def parts(cell: nn.RNNCellBase) -> tuple[torch.Tensor, torch.Tensor]:
    """What a fused operator gets: the input and the state, each times its weight."""
    for parameter in cell.parameters():
        nn.init.normal_(parameter, generator=torch.Generator().manual_seed(9))
    return X @ cell.weight_ih.t(), H @ cell.weight_hh.t()


@torch.no_grad()
def test_an_lstm_cell_gives_state_cell_and_gates() -> None:
    cell = nn.LSTMCell(3, 3)
    inputs, hidden = parts(cell)
    state, after, gates = LSTM(inputs, hidden, C, cell.bias_ih, cell.bias_hh)
    wanted = cell(X, (H, C))
    torch.testing.assert_close((state, after), wanted)
    torch.testing.assert_close(gates, inputs + cell.bias_ih + hidden + cell.bias_hh)
    bare = nn.LSTMCell(3, 3, bias=False)
    torch.testing.assert_close(LSTM(*parts(bare), C)[:2], bare(X, (H, C)))


@torch.no_grad()
def test_a_gru_cell_gives_the_state_and_gates() -> None:
    cell = nn.GRUCell(3, 3)
    inputs, hidden = parts(cell)
    state, gates = GRU(inputs, hidden, H, cell.bias_ih, cell.bias_hh)
    torch.testing.assert_close(state, cell(X, H))
    torch.testing.assert_close(gates, inputs + cell.bias_ih)
    bare = nn.GRUCell(3, 3, bias=False)
    torch.testing.assert_close(GRU(*parts(bare), H)[0], bare(X, H))


def test_no_other_operator_is_replaced() -> None:
    assert len(FUSED) == 2

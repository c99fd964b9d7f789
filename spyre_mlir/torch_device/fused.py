"""Operators that torch calls on devices alone and that the host lacks, composed here of other operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor


def _lstm_cell(
    inputs: Tensor, hidden: Tensor, cell: Tensor, input_bias: Tensor | None = None, hidden_bias: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The new state and the new cell of an LSTM, and what its backward pass would read."""
    gates = _biased(inputs, input_bias) + _biased(hidden, hidden_bias)
    taken, kept, new, shown = gates.chunk(4, 1)
    after = kept.sigmoid() * cell + taken.sigmoid() * new.tanh()
    return shown.sigmoid() * after.tanh(), after, gates


def _gru_cell(
    inputs: Tensor, hidden: Tensor, state: Tensor, input_bias: Tensor | None = None, hidden_bias: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The new state of a GRU, and what its backward pass would read."""
    gates = _biased(inputs, input_bias)
    from_input, from_state = gates.chunk(3, 1), _biased(hidden, hidden_bias).chunk(3, 1)
    reset, update = ((a + b).sigmoid() for a, b in zip(from_input[:2], from_state[:2], strict=True))
    new = (from_input[2] + reset * from_state[2]).tanh()
    return new + update * (state - new), gates


def _biased(gates: Tensor, bias: Tensor | None) -> Tensor:
    return gates if bias is None else gates + bias


FUSED: dict[object, Callable[..., Any]] = {
    aten._thnn_fused_lstm_cell.default: _lstm_cell,
    aten._thnn_fused_gru_cell.default: _gru_cell,
}

"""Nothing of an op is lost, table or call: torch, called op by op, gives what the model gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.utils._pytree import tree_leaves

from spyre_mlir.frontend import import_program, to_numpy
from tests.end_to_end.importing.replay import replay

X = torch.linspace(-2, 2, 24).reshape(2, 3, 4)


class Indexing(nn.Module):
    def forward(self, x: torch.Tensor, i: torch.Tensor) -> Any:
        y = x.clone()
        y[:, i] = 1.5
        y[0, 1:] += x[1, :2]
        first, second = x.split([1, 2], 1)
        values, where = x.topk(2, -1, largest=False)
        order = x.sort(descending=True, stable=True)[1]
        return (
            y,
            first,
            second,
            values,
            where,
            order,
            x.gather(2, where),
            x[:, i, 1:],
            x.index_select(1, i),
            x.cumsum(-1),
        )


class Windows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(3, 6, 3, stride=2, padding=1, groups=3, dilation=1)
        self.norm = nn.BatchNorm1d(6)
        self.lstm = nn.LSTM(2, 5, num_layers=2, batch_first=True)

    def forward(self, x: torch.Tensor) -> Any:
        y = self.norm(self.conv(x))
        return F.max_pool1d(y, 2, return_indices=True), self.lstm(y), F.pad(x, (1, 2), value=-1.0), x.roll(1, 0)


class Arithmetic(nn.Module):
    def forward(self, x: torch.Tensor, i: torch.Tensor) -> Any:
        half = x.half()
        return (
            (
                half * i[:, None] - 3,
                torch.div(x, 0.7, rounding_mode="floor"),
                x.var(1, correction=0),
                x.pow(3).sum((0, -1)),
            ),
            (torch.where(x > 0, x, 2.0), torch.where(x > 0, 1.0, -x), 2 - x, half.softmax(-1, dtype=torch.float32)),
            (x.clamp(max=0.5), F.gelu(x, approximate="tanh"), x.mean(dim=[], keepdim=True), (i > 1.5) & (i < 3)),
            (
                torch.einsum("abc,dbc->ad", x, x),
                x.amax(1, keepdim=True),
                x.expand(2, 2, 3, 4).transpose(0, -1).reshape(-1),
            ),
        )


INDICES = torch.tensor([2, 0, 1])


@pytest.mark.parametrize(
    ("model", "args", "error"),
    # torch runs an LSTM module by another kernel than the operator alone, which sums in another order.
    [(Indexing(), (X, INDICES), 0), (Windows().eval(), (X,), 1e-7), (Arithmetic(), (X, INDICES), 0)],
    ids=["indexing", "windows", "arithmetic"],
)
def test_every_argument_arrives(model: nn.Module, args: tuple[Any, ...], error: float) -> None:
    model.requires_grad_(False)
    program = import_program(model, args)
    program.module.verify()
    # The model itself, not `torch_reference`: that one does not round to half precision, and replayed operators do.
    leaves = tree_leaves(model(*args))
    for name, got, wanted in zip(program.results, replay(program, args), leaves, strict=True):
        np.testing.assert_allclose(to_numpy(got), to_numpy(wanted), rtol=0, atol=error, err_msg=name)

"""Recurrent networks with dropout between their layers, where derivatives are taken: eager's draws and numbers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence
from torch.overrides import TorchFunctionMode
from typing_extensions import override

import spyre_mlir
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.capture.random_draws.recurrent import LayersApart
from tests.functions import FunctionModel

EXACT = {"numerics": "exact", "host_fallback": "allow"}
X = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(1))
NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "lstm": lambda: nn.LSTM(4, 3, 2, dropout=0.3, batch_first=True),
    "gru": lambda: nn.GRU(4, 3, 2, dropout=0.3, bias=False),
}


class Calls(TorchFunctionMode):
    """Notes how many layers each call of a network has."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = list[int]()

    @override
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.gru:
            self.layers.append(args[4] if len(args) > 4 else kwargs["num_layers"])
        return func(*args, **(kwargs or {}))


def test_arguments_by_name_are_those_by_place() -> None:
    weights, first = list(NETWORKS["gru"]().parameters()), torch.zeros(2, 3, 3)
    others = {"has_biases": False, "num_layers": 2, "dropout": 0.3, "train": True}
    with Calls() as calls, LayersApart():
        torch.gru(X, first, weights, **others, bidirectional=False, batch_first=False)
    assert calls.layers == [1, 1]


@pytest.mark.parametrize("name", NETWORKS)
def test_training_drops_what_eager_drops(name: str) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = NETWORKS[name]()
    twin = copy.deepcopy(model)
    with torch.enable_grad():
        for run in (torch.compile(model, backend="spyre", options={**EXACT, "training": True}), twin):
            torch.manual_seed(3)
            run(X)[0].square().sum().backward()
    for mine, eager in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, eager.grad, rtol=2e-5, atol=2e-5)


def test_derivatives_inside_of_a_model_drop_what_eager_drops() -> None:
    layer = nn.LSTM(4, 3, 2, dropout=0.3)

    def slope(x: Tensor) -> Any:
        return torch.func.grad(lambda a: layer(a)[0].square().sum())(x)

    compiled = spyre_mlir.compile(FunctionModel(slope), (X,), **EXACT)
    made: list[Any] = []
    for run in (compiled, slope):
        torch.manual_seed(3)
        made.append(run(X))
    torch.testing.assert_close(made[0], made[1])


def test_packed_sequences_are_refused() -> None:
    packed: Any = pack_padded_sequence(X, torch.tensor([3, 2]), batch_first=True)
    with LayersApart(), pytest.raises(UnsupportedError, match=r"torch\.gru takes a packed sequence, and drops"):
        NETWORKS["gru"]()(packed)

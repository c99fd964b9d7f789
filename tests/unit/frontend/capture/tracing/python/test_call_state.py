"""A model whose next call would compute something else is refused; what it only leaves behind is no matter."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.errors import UnsupportedError

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


class Remembering(nn.Module):
    """A model with some Python state."""

    def __init__(self) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(3))
        self.count = 0
        self.known = False
        self.kept: Any = None
        self.past: list[Tensor] = []
        self.by_name: dict[str, Any] = {}


class Counting(Remembering):
    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        return x * self.count


class FirstCallDiffers(Remembering):
    def forward(self, x: Tensor) -> Tensor:
        if not self.known:
            self.shift.copy_(x.mean(0))
            self.known = True
        return x - self.shift


class Recurrent(Remembering):
    def forward(self, x: Tensor) -> Tensor:
        self.kept = x if self.kept is None else self.kept * 0.5 + x
        return self.kept * 2


class Appending(Remembering):
    def forward(self, x: Tensor) -> Tensor:
        self.past.append(x * 2)
        return torch.cat(self.past).sum(0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("model", "name"),
    [(Counting(), "count"), (FirstCallDiffers(), "known"), (Recurrent(), "kept"), (Appending(), "a list")],
    ids=lambda p: type(p).__name__,
)
def test_what_the_next_call_reads_is_refused(model: nn.Module, name: str) -> None:
    hooks, attributes = len(model._forward_hooks), dict(vars(model))
    refused = f"a call of {type(model).__name__} changes what the next one computes: it writes to {name}"
    with pytest.raises(UnsupportedError, match=refused) as caught:
        spyre_mlir.compile(model, (X,))
    assert "keep it in a buffer" in str(caught.value)
    assert (len(model._forward_hooks), vars(model)) == (hooks, attributes)


class HooksItself(Remembering):
    """Adds a hook to its layer at its first call, as models of transformers do that collect hidden states."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        if not self.known:
            self.layer.register_forward_hook(lambda _module, _given, made: made * 2)
            self.known = True
        return self.layer(x)


def test_a_model_has_its_hooks_once_after_it_was_compiled() -> None:
    model = HooksItself()
    compiled = spyre_mlir.compile(model, (X,))
    assert not model.known and not model.layer._forward_hooks  # pyright: ignore[reportPrivateUsage]
    for run in (compiled, model, model):
        torch.testing.assert_close(run(X), X * 2)


def test_after_the_first_call_a_model_that_initialises_itself_compiles() -> None:
    model = FirstCallDiffers()
    with torch.no_grad():
        model(X)
    compiled = spyre_mlir.compile(model, (X,), numerics="exact")
    torch.testing.assert_close(compiled(X + 1), torch.tensor([[-0.5, -0.5, -0.5], [2.5, 2.5, 2.5]]))


class LeavingResults(Remembering):
    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        self.kept = tuple(x.shape), x.softmax(0)
        self.past.append(x * 2)
        self.by_name["x"] = x + 1
        return x + 1


class MakingATable(Remembering):
    def forward(self, x: Tensor) -> Tensor:
        if len(x) > self.count:
            self.count = len(x)
            self.kept = torch.arange(self.count)[:, None] * 1.0
        return x + self.kept[: len(x)]


class MakingABuffer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", None)

    def forward(self, x: Tensor) -> Tensor:
        if self.table is None:
            self.table = torch.arange(len(x))[:, None] * 1.0
        return x + self.table


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        (LeavingResults(), [[2.0, 3.0, 4.0], [5.0, 6.0, 7.0]]),
        (MakingATable(), [[1.0, 2.0, 3.0], [5.0, 6.0, 7.0]]),
        (MakingABuffer(), [[1.0, 2.0, 3.0], [5.0, 6.0, 7.0]]),
    ],
    ids=lambda p: type(p).__name__,
)
def test_what_no_call_reads_and_what_depends_on_no_input_is_no_matter(model: nn.Module, wanted: list[Any]) -> None:
    x, attributes, buffers = X.clone(), dict(vars(model)), dict(model.named_buffers())
    compiled = spyre_mlir.compile(model, (x,), numerics="exact")
    for _ in range(2):
        assert compiled(x).tolist() == wanted
    assert x.equal(X)
    assert (vars(model), dict(model.named_buffers())) == (attributes, buffers)

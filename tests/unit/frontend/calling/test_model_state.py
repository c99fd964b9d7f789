"""Changes of a model after its compilation: said once each, and compiled again where inputs come with calls."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn.utils import parametrize, prune

import spyre_mlir
from spyre_mlir.frontend import ModelChangedWarning

X = torch.linspace(-1, 1, 8).reshape(2, 4)
FACTOR = 1.0


class Config:
    """Numbers of a model beside its modules."""

    def __init__(self) -> None:
        self.bias, self.unread = 0.25, 1


class Scaled(torch.nn.Module):
    """Reads numbers of its own and of a config, a truth, a tensor and containers, and counts its calls."""

    kept = 0.5

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.turned, self.unread = 2.0, False, 1
        self.added = torch.ones(4)
        self.calls = 0
        self.config = Config()
        self.merged, self.scales = list[str](), {"default": 2.0}
        self.history, self.counts = list[int](), dict[str, int]()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.history.append(1)
        self.counts["calls"] = self.counts.get("calls", 0) + 1
        if not self.merged:
            x = x * self.scales["default"]
        return self.turn(x * self.scale + self.added * self.kept + self.config.bias * FACTOR)

    def turn(self, x: torch.Tensor) -> torch.Tensor:
        return -x if self.turned else x


def model() -> torch.nn.Sequential:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU(), torch.nn.BatchNorm1d(4), Scaled()).eval()


def pruned(made: torch.nn.Sequential) -> None:
    prune.l1_unstructured(made[0], "weight", amount=0.5)  # pyright: ignore[reportUnknownMemberType]


def parametrized(made: torch.nn.Sequential) -> None:
    parametrize.register_parametrization(made[0], "bias", torch.nn.ReLU())


CHANGES: dict[str, Callable[[Any], object]] = {
    "module '1' is another one: ReLU, was GELU": lambda made: made.__setitem__(1, torch.nn.ReLU()),
    "module '4' is new": lambda made: made.append(torch.nn.Tanh()),
    "there is no module '3'": lambda made: made.__delitem__(3),
    "module '0' has parameters bias, weight_orig, had weight, bias": pruned,
    "module '0' is another one: ParametrizedLinear, was Linear": parametrized,
    "module '1' has another forward": lambda made: setattr(made[1], "forward", torch.relu),
    "module '1' has other hooks": lambda made: made[1].register_forward_hook(lambda *_: X),
    "'2.training' is True, was False": lambda made: made.train(),
    "'2.eps' is 1.0, was 1e-05": lambda made: setattr(made[2], "eps", 1.0),
    "'3.scale' is -0.0, was 2.0": lambda made: setattr(made[3], "scale", -0.0),
    "'3.turned' is True, was False": lambda made: setattr(made[3], "turned", True),
    "'3.kept' is 1.5, was 0.5": lambda made: setattr(made[3], "kept", 1.5),
    "'3.added' is another tensor, or has other numbers": lambda made: made[3].added.data.fill_(7),
    "'3.config.bias' is 0.5, was 0.25": lambda made: setattr(made[3].config, "bias", 0.5),
    "'3.merged' is ['a'], was []": lambda made: made[3].merged.append("a"),
    "'3.scales' is {'default': 3.0}, was {'default': 2.0}": lambda made: made[3].scales.update(default=3.0),
    "'3.added' is another tensor": lambda made: setattr(made[3], "added", torch.zeros(4)),
}


@torch.no_grad()
@pytest.mark.parametrize("said", CHANGES)
def test_a_change_is_said_once(said: str) -> None:
    made = model()
    compiled = spyre_mlir.compile(made, (X,), numerics="exact")
    before = compiled(X)
    assert compiled.changed == ()
    CHANGES[said](made)
    with pytest.warns(ModelChangedWarning, match=re.escape(f"computes what it was: {said}")) as told:
        results = compiled(X), compiled(X)
    assert torch.equal(results[0], before) and torch.equal(results[1], before)
    assert len(told) == 1 and told[0].filename == __file__


@torch.no_grad()
def test_changes_around_a_class_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    power = 2.0

    class Around(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x**power * FACTOR

    def change() -> None:
        nonlocal power
        power = 3.0

    compiled = spyre_mlir.compile(Around(), (X,), numerics="exact")
    change()
    with pytest.warns(ModelChangedWarning, match=re.escape("'power of Around' is 3.0, was 2.0")):
        torch.testing.assert_close(compiled(X), X**2)
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    with pytest.warns(ModelChangedWarning, match=re.escape("'FACTOR of Around' is 5.0, was 1.0")):
        compiled(X)
    monkeypatch.setattr(Around, "forward", lambda _, x: x)
    with pytest.warns(ModelChangedWarning, match=r"'Around.forward of Around' is the function .*<lambda>, was the"):
        compiled(X)


@torch.no_grad()
def test_what_no_program_depends_on_is_no_change() -> None:
    made = model()
    compiled = spyre_mlir.compile(made, (X,), numerics="exact")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made(X)  # counts
        made[3].unread = made[3].config.unread = 2
        made[0].train()
        made.requires_grad_(False)
        made.load_state_dict(model().state_dict())
        compiled(X)


@torch.no_grad()
def test_autocast_of_a_call_is_said_unless_it_is_that_of_the_compilation() -> None:
    made = model()
    compiled = spyre_mlir.compile(made, (X,), numerics="exact")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        again = spyre_mlir.compile(made, (X,), numerics="exact")
        with pytest.warns(ModelChangedWarning, match="under autocast to torch.bfloat16"):
            compiled(X)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            again(X)


@torch.no_grad()
@pytest.mark.parametrize("said", [*CHANGES][:1] + [*CHANGES][5:])
def test_models_without_example_inputs_are_compiled_again(said: str) -> None:
    made = model()
    lazy = spyre_mlir.compile(made, numerics="exact")
    lazy(X)
    CHANGES[said](made)
    made.eval()
    assert torch.allclose(lazy(X), made(X), atol=1e-6)
    assert len(lazy.programs) == 1


@torch.no_grad()
def test_a_lazy_model_under_autocast_has_a_program_of_its_own() -> None:
    made = torch.nn.Linear(4, 4)
    lazy = spyre_mlir.compile(made, numerics="exact")
    assert lazy(X).dtype is torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert lazy(X).dtype is made(X).dtype is torch.bfloat16
    assert lazy(X).dtype is torch.float32 and len(lazy.programs) == 2


@torch.no_grad()
def test_sizes_of_symbols_have_the_state_of_the_import() -> None:
    made = model()
    compiled = spyre_mlir.compile(made, (X,), dynamic_shapes=({0: torch.export.Dim("n")},), numerics="exact")
    made[3].scale = 3.0
    with pytest.warns(ModelChangedWarning, match=r"'3.scale' is 3.0, was 2.0"):
        compiled(X.repeat(2, 1))


@torch.no_grad()
def test_a_weight_that_is_shared_no_more_is_another_tensor() -> None:
    made = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    made[1].weight = made[0].weight
    compiled = spyre_mlir.compile(made, (X,), numerics="exact")
    compiled(X)
    made[1].weight = torch.nn.Parameter(torch.zeros(4, 4))
    with pytest.raises(spyre_mlir.SpyreError, match=r"another tensor '1\.weight'"):
        compiled(X)

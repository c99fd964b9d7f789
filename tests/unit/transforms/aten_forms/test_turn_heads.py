"""Pass `turn-heads`: channels that move within sticks are turned by a product, exactly."""

from __future__ import annotations

import pytest
import torch

import spyre_mlir
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.spyre.kernel import RestickifyOp
from spyre_mlir.dialects.tensors import element_of
from spyre_mlir.frontend import import_program
from spyre_mlir.pipeline import lower
from spyre_mlir.transforms.aten_forms.turn_heads import TurnHeadsPass
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel
from tests.unit.transforms.aten_forms.rotations import Rotary, Turn, halves, heads, pairs


def products(model: torch.nn.Module, x: torch.Tensor) -> list[str]:
    """The element types that products read after the pass."""
    module = import_program(model, (x,)).module
    TurnHeadsPass().apply(make_context(), module)
    module.verify()
    return [str(element_of(o.operands[0])) for o in module.walk() if isinstance(o, AtenOp) and o.overload == "linear"]


def moved(model: torch.nn.Module, x: torch.Tensor) -> int:
    """How many kernels lay a tensor out again."""
    modules = lower(import_program(model, (x,)).module, make_context(), until="spyre.kernel").modules
    return sum(isinstance(op, RestickifyOp) for op in modules["spyre.kernel"].walk())


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("turn", "channels"), [(halves, 64), (pairs, 128)])
def test_channels_are_turned_by_a_product(turn: Turn, channels: int, wide: bool) -> None:
    """Of half precision, also where the model computes in float32 behind it."""
    model, x = Rotary(turn, channels, wide=wide), heads(channels)
    assert products(model, x) == ["f16"]
    assert moved(model, x) == 0


@pytest.mark.parametrize(("turn", "channels"), [(halves, 128), (halves, 96), (pairs, 320), (pairs, 32)])
def test_channels_stay(turn: Turn, channels: int) -> None:
    """Halves of whole sticks, heads that have none, and heads of many channels."""
    assert products(Rotary(turn, channels), heads(channels)) == []


def test_float32_stays() -> None:
    """It may be kept on the device, where a product rounds."""
    assert products(Rotary(halves, 64, wide=True), heads(64).float()) == []


@pytest.mark.parametrize(
    "model",
    [FunctionModel(halves), FunctionModel(pairs), Rotary(halves, 64, wide=True), Rotary(pairs, 64, wide=True)],
    ids=["halves", "pairs", "halves in float32", "pairs in float32"],
)
def test_every_level_is_eager_to_the_bit(model: torch.nn.Module) -> None:
    """Sums of a product are of one number: large ones lose nothing, and small ones are not lost beside them."""
    x = heads(64)
    x[..., :4] = torch.tensor([30000.0, -30000.0, 2.0**-14, 1.0009765625])
    compiled = spyre_mlir.compile(model, (x,), numerics="exact")
    assert (outcome := compiled.verify(x)), str(outcome)
    assert torch.equal(compiled(x), model(x))

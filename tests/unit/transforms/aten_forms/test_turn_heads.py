"""Pass `turn-heads`: channels that move within sticks are turned by a product, exactly."""

from __future__ import annotations

import pytest
import torch

import spyre_mlir
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.spyre.kernel import ComputeOp, RestickifyOp
from spyre_mlir.dialects.tensors import element_of
from spyre_mlir.frontend import import_program
from spyre_mlir.pipeline import lower
from spyre_mlir.transforms.aten_forms import turn_heads
from spyre_mlir.transforms.aten_forms.turn_heads import TurnHeadsPass
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel
from tests.unit.transforms.aten_forms.rotations import (
    Form,
    Parts,
    Rotary,
    Turn,
    apart,
    complex_pairs,
    halves,
    heads,
    last,
    pairs,
    pairs_apart,
    some,
    sorted_pairs,
)


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


PARTS = {
    "some of 64": (some, 64, 32),
    "96 of 128": (some, 128, 96),
    "the last 32": (last, 64, 32),
    "halves apart": (apart, 64, 32),
    "sorted pairs": (sorted_pairs, 128, 64),
    "pairs apart": (pairs_apart, 64, 32),
    "complex pairs": (complex_pairs, 64, 32),
}


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", PARTS)
def test_parts_are_rotated_with_the_rest(name: str, wide: bool) -> None:
    """Pairs that go into halves take a product more."""
    form, channels, width = PARTS[name]
    found = products(Parts(form, width, wide=wide), heads(channels))
    assert found == ["f16"] * (2 if form is sorted_pairs else 1)


@pytest.mark.parametrize(
    ("form", "channels", "width"),
    [(some, 128, 64), (apart, 256, 128), (apart, 384, 192), (some, 320, 32), (some, 80, 32)],
    ids=["whole sticks stay", "halves of whole sticks", "distance of sticks", "many channels", "heads of no layer"],
)
def test_parts_stay(form: Form, channels: int, width: int) -> None:
    """But for the turn of a part of whole sticks."""
    assert len(products(Parts(form, width), heads(channels))) == (1 if (form, width) == (some, 64) else 0)


@pytest.mark.parametrize("name", PARTS)
def test_rotated_parts_are_the_models_to_the_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Channels that stay are multiplied by 1, and a number is added that is 0."""
    form, channels, width = PARTS[name]
    model, x = Parts(form, width), heads(channels)
    x[..., -4:] = torch.tensor([30000.0, -30000.0, 2.0**-14, 1.0009765625])
    compiled = spyre_mlir.compile(model, (x,), numerics="exact")
    assert (outcome := compiled.verify(x)), str(outcome)
    monkeypatch.setattr(turn_heads, "rotation_of", lambda _: None)
    monkeypatch.setattr(turn_heads, "turn_of", lambda _: None)
    assert torch.equal(compiled(x), spyre_mlir.compile(model, (x,), numerics="exact", cache=False)(x))


def test_an_infinity_reaches_its_head_alone() -> None:
    x = heads(64)
    x[0, 1, 2, 40] = torch.inf
    got = spyre_mlir.compile(Parts(some, 32), (x,), numerics="exact")(x)
    assert got[0, 1, 2].isnan().all()
    assert got.isnan().sum() == 64


def test_float32_stays() -> None:
    """It may be kept on the device, where a product rounds."""
    assert products(Rotary(halves, 64, wide=True), heads(64).float()) == []
    assert products(Parts(some, 32, wide=True), heads(64).float()) == []


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


def test_heads_of_batches_are_turned_where_they_lie() -> None:
    """Three heads of 64 are columns of 2 x 5 rows: no kernel copies them, and the matrix is there twice."""

    def turned(x: torch.Tensor) -> torch.Tensor:
        return halves(torch.relu(x).view(2, 5, 3, 64).transpose(1, 2))

    x = torch.randn(2, 5, 192, generator=torch.Generator().manual_seed(2)).half()
    module = lower(import_program(FunctionModel(turned), (x,)).module, make_context(), until="spyre.kernel")
    kernels = [op for op in module.modules["spyre.kernel"].walk() if isinstance(op, ComputeOp)]
    assert [op.function_name for op in kernels] == ["relufwd", "identity", "batchmatmul"]
    assert kernels[1].tensors[-1].shape == (2, 1, 64, 64)
    assert {d.name: d.extent for d in kernels[2].space.data} == {"b0": 2, "b1": 3, "m": 5, "n": 64, "k": 64}
    compiled = spyre_mlir.compile(FunctionModel(turned), (x,), numerics="exact")
    assert (outcome := compiled.verify(x)), str(outcome)
    assert torch.equal(compiled(x), turned(x))

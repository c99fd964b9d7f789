"""Pass `pad-heads`: heads have whole sticks, weights are padded at load, and the numbers are those of eager."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from typing_extensions import override
from xdsl.dialects.builtin import ModuleOp

import spyre_mlir
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.spyre.kernel import ComputeOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.frontend import import_program
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.pipeline import lower
from spyre_mlir.transforms.aten_forms.pad_heads import PadHeadsPass
from spyre_mlir.transforms.aten_forms.slice_columns import SliceColumnsPass
from spyre_mlir.transforms.aten_forms.turn_heads import TurnHeadsPass
from spyre_mlir.universe import make_context
from tests.unit.transforms.aten_forms.attentions import (
    Attention,
    ByTable,
    Crossed,
    Einsum,
    Multiplied,
    PartlyRotated,
    Rotated,
    Sliced,
    Stacked,
    WrittenOut,
    given,
)

MASK = torch.zeros(2, 1, 32, 32).masked_fill(torch.arange(32) > 25, -1e4).half()

MODELS = {
    "plain": Attention(),
    "no bias": Attention(bias=False),
    "heads of 96": Attention(2, 96),
    "shared keys": Attention(shared=2),
    "written out": WrittenOut(),
    "repeated keys": WrittenOut(shared=2),
    "rotated": Rotated(),
    "rotated by a table": ByTable(),
    "rotated in part": PartlyRotated(),
    "multiplied": Multiplied(),
    "stacked": Stacked(),
    "sliced": Sliced(),
    "einsum": Einsum(),
}


def padded(model: torch.nn.Module, *inputs: torch.Tensor) -> tuple[ModuleOp, np.ndarray]:
    """The program after the pass, and what it gives."""
    program = import_program(model, inputs)
    TurnHeadsPass().apply(make_context(), program.module)
    PadHeadsPass().apply(make_context(), program.module)
    program.module.verify()
    read = iter(inputs)
    arrays = [(next(read) if a.kind == "input" else program.values[a.name]).numpy() for a in program.arguments]
    (got,) = run_function(program.module, arrays)
    return program.module, got


def layers(module: ModuleOp) -> list[tuple[int, ...]]:
    """Shapes of the weights of a program's layers."""
    ops = [op for op in module.walk() if isinstance(op, AtenOp) and op.overload == "linear"]
    return [shape_of(op.operands[1]) for op in ops]


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("plain", [(256, 64)] * 3 + [(64, 256)]),
        ("heads of 96", [(256, 64)] * 3 + [(64, 256)]),
        ("shared keys", [(256, 64), (128, 64), (128, 64), (64, 256)]),
        ("written out", [(256, 64)] * 3 + [(64, 256)]),
        ("rotated", [(256, 64)] * 3 + [(64, 256)]),
        ("rotated by a table", [(256, 64)] * 3 + [(64, 256)]),
        ("rotated in part", [*[(256, 64)] * 3, *[(128, 128)] * 2, (64, 256)]),
        ("multiplied", [(576, 64), (64, 192)]),
        ("stacked", [(768, 64), (64, 256)]),
        ("sliced", [(256, 64)] * 3 + [(64, 256)]),
        ("einsum", [(256, 64)] * 3 + [(64, 256)]),
    ],
)
def test_weights_have_whole_sticks_for_each_head(name: str, weights: list[tuple[int, ...]]) -> None:
    module, _ = padded(MODELS[name].half().eval(), given())
    assert layers(module) == weights


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_numbers_are_eagers(name: str, masked: bool) -> None:
    model, inputs = MODELS[name].half().eval(), (given(), *([MASK] if masked else []))
    _, got = padded(model, *inputs)
    with torch.no_grad():
        wanted = model.float()(*(x.float() for x in inputs)).numpy()
    assert np.abs(got - wanted).max() < 2e-3 * np.abs(wanted).max() + 1e-3


@pytest.mark.parametrize("infinity", [torch.inf, -torch.inf])
@pytest.mark.parametrize("name", ["plain", "written out", "stacked"])
def test_infinities_spread_as_in_eager(name: str, infinity: float) -> None:
    """Padded channels of that row are NaN; results that read them are NaN in eager too."""
    model, x = MODELS[name].half().eval(), given()
    x[0, 3, 5] = infinity
    _, got = padded(model, x)
    with torch.no_grad():
        wanted = model(x).numpy()
    assert np.isnan(wanted[0]).any() and np.isfinite(wanted[1]).all()
    assert (np.isnan(got) == np.isnan(wanted)).all()


@pytest.mark.parametrize("source", ["queries", "keys", "values"])
def test_numbers_of_infinite_inputs_become_nan(source: str) -> None:
    """With scores of -inf and finite values, and with infinite values whose terms have one sign."""
    model, x, y = Crossed(source).half().eval(), given().abs(), given().abs()
    y[0, 3, 5] = torch.inf if source == "values" else -torch.inf
    for layer in (model.q, model.k, model.v, model.o):
        for part in layer.parameters():
            part.detach().abs_()
    _, got = padded(model, x, y)
    with torch.no_grad():
        wanted = model(x, y).numpy()
    assert not np.isnan(wanted).any()
    reached = got[0, 3] if source == "queries" else got[0]
    assert np.isnan(reached).all() and np.isnan(got).sum() == reached.size


def test_an_infinity_of_the_host_times_zero_is_zero() -> None:
    """On the device it is the largest half: results are those of that number, and no NaN."""
    model, x = Attention().half().eval(), given()
    x[0, 3, 5] = torch.inf
    got = spyre_mlir.compile(model, (x,), numerics="device")(x)
    with torch.no_grad():
        wanted = model.float()(x.clamp(max=65504).float())
    assert (got - wanted).abs().max() < 0.01 * wanted.abs().max()


@pytest.mark.parametrize("name", ["plain", "repeated keys", "rotated by a table", "rotated in part"])
def test_every_level(name: str) -> None:
    model, inputs = MODELS[name].half().eval(), (given(), MASK)
    compiled = spyre_mlir.compile(model, inputs)
    assert compiled.verify(*inputs)
    with torch.no_grad():
        wanted = model(*inputs)
    assert (compiled(*inputs) - wanted).abs().max() < 0.01 * wanted.abs().max()


@pytest.mark.parametrize(
    ("model", "rows"),
    [(Attention(channels=64), 32), (Attention(channels=16), 32), (Attention(), 1)],
    ids=["whole sticks", "a quarter of a stick", "few rows"],
)
def test_heads_that_would_gain_nothing_stay(model: Attention, rows: int) -> None:
    x = given(rows)[:1] if rows == 1 else given(rows)
    before = layers(import_program(model.half().eval(), (x,)).module)
    module, _ = padded(model.half().eval(), x)
    assert layers(module) == before


def test_heads_whose_weights_are_inputs_stay() -> None:
    """Their weights are not laid out at load, so each call would pad them."""
    model = Attention().half().eval()

    class GivenWeights(torch.nn.Module):
        def forward(self, x: torch.Tensor, weights: dict[str, torch.Tensor]) -> torch.Tensor:
            return torch.func.functional_call(model, weights, (x,))

    given_weights = {name: value.detach() for name, value in model.named_parameters()}
    program = import_program(GivenWeights(), (given(), given_weights))
    before = layers(program.module)
    PadHeadsPass().apply(make_context(), program.module)
    assert before == layers(program.module) == [(128, 64)] * 3 + [(64, 128)]


def test_heads_whose_weights_a_call_writes_stay() -> None:
    """Only values keep narrow heads then: the sum over the channels of queries and keys does not concern them."""

    class Written(Attention):
        def __init__(self) -> None:
            super().__init__()
            weight = self.v.weight.detach()
            del self.v.weight
            self.v.register_buffer("weight", weight)

        @override
        def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
            result = super().forward(x, mask)
            self.v.weight.copy_(x[0].repeat(4, 1))
            return result

    module = import_program(Written().half().eval(), (given(),)).module
    PadHeadsPass().apply(make_context(), module)
    assert layers(module) == [(256, 64)] * 2 + [(128, 64), (64, 128)]


class Layers(torch.nn.Module):
    """Attention of torch, of 4 heads of 32 channels, and what it reads."""

    def __init__(self, *, crossed: bool, weighted: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.attention = torch.nn.MultiheadAttention(128, 4, batch_first=True)
        self.crossed, self.weighted = crossed, weighted

    @override
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        read = y if self.crossed else x
        return self.attention(x, read, read, need_weights=self.weighted)[0]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("crossed", [False, True])
def test_attention_of_torch_is_padded(crossed: bool, weighted: bool) -> None:
    """Rows of one weight make queries, keys and values, and heads of all sequences are one dimension; in float32."""
    model = Layers(crossed=crossed, weighted=weighted).eval()
    inputs = (torch.randn(3, 40, 128), torch.randn(3, 24, 128))
    program = import_program(model, inputs)
    for pass_ in (SliceColumnsPass(), PadHeadsPass()):
        pass_.apply(make_context(), program.module)
    assert layers(program.module) == [(256, 128)] * 3 + [(128, 256)]
    assert spyre_mlir.compile(model, inputs).verify(*inputs)


def test_heads_in_float32_that_is_kept_stay() -> None:
    """A stick has 32 numbers then, so that each of these heads has a whole one."""
    module = import_program(Attention().eval().float(), (given().float(),)).module
    PadHeadsPass(keep_float32=True).apply(make_context(), module)
    assert layers(module) == [(128, 64)] * 3 + [(64, 128)]


def test_the_host_pads_weights_whatever_room_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are as many kernels as for heads that have whole sticks in the model."""
    monkeypatch.setattr("spyre_mlir.transforms.loop_to_kernel.device_forms.MORE_AT_LEAST", 0)
    programs = [import_program(Attention(channels=n).half().eval(), (given(),)).module for n in (32, 64)]
    lowered = [lower(program, make_context()).modules["spyre.kernel"] for program in programs]
    narrow, wide = (sum(isinstance(op, ComputeOp) for op in module.walk()) for module in lowered)
    assert narrow == wide

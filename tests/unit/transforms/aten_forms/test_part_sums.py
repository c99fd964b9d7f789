"""Pass `part-sums`: which products of joined tensors become sums of products, and that the numbers stay eager's."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 # as PyTorch's own pages call it
from typing_extensions import override

import spyre_mlir
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.frontend import import_program
from spyre_mlir.pipeline import lower
from spyre_mlir.report.timing import module_timeline
from spyre_mlir.transforms.aten_forms import part_sums
from spyre_mlir.transforms.aten_forms.part_sums import PartSumsPass
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel

Form = Callable[..., Tensor]


class Layer(nn.Module):
    """A linear layer of joined tensors, with what may lie between."""

    def __init__(self, *widths: int, norm: bool = False, between: Form = lambda x: x, twice: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(sum(widths), 40)
        self.norm = nn.LayerNorm(sum(widths)) if norm else None
        self.second = nn.Linear(sum(widths), 24) if twice else None
        self.between = between
        if self.norm is not None:
            nn.init.normal_(self.norm.weight)
            nn.init.normal_(self.norm.bias)

    @override
    def forward(self, *parts: Tensor) -> Tensor:
        x = torch.cat(parts, -1)
        y = self.layer(self.between(x if self.norm is None else self.norm(x)))
        return y if self.second is None else torch.cat([y, self.second(x)], -1)


class Dense(nn.Module):
    """Images of two convolutions, joined, normalised, and convolved by 1 x 1."""

    def __init__(self, kernel: int = 1) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = (nn.Conv2d(3, channels, 3, padding=1) for channels in (5, 40))
        self.norm, self.last = nn.BatchNorm2d(45), nn.Conv2d(45, 33, kernel, padding=kernel // 2)
        for given in (self.norm.running_mean, self.norm.running_var, self.norm.weight, self.norm.bias):
            assert given is not None
            nn.init.uniform_(given, 0.5, 1.5)

    @override
    def forward(self, x: Tensor) -> Tensor:
        return self.last(F.relu(self.norm(torch.cat([self.first(x), self.second(x)], 1))))


class Merging(nn.Module):
    """Four neighbours of a map side by side, as between the stages of a Swin transformer."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.norm = nn.LayerNorm(4 * channels)
        self.layer = nn.Linear(4 * channels, 2 * channels, bias=False)

    @override
    def forward(self, x: Tensor) -> Tensor:
        parts = [x[:, row::2, column::2] for column in (0, 1) for row in (0, 1)]
        joined = torch.cat(parts, -1)
        return self.layer(self.norm(joined.view(x.shape[0], -1, joined.shape[-1])))


def distances(x: Tensor, y: Tensor) -> Tensor:
    return torch.cdist(x, y, compute_mode="use_mm_for_euclid_dist")


def scores(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    return torch.cat([a, b], -1) @ torch.cat([c, d], -1).transpose(1, 2)


def drawn(*shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(1)
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)


PARTED: Mapping[str, tuple[nn.Module, tuple[Tensor, ...]]] = {
    "layer": (Layer(5, 27), drawn((3, 5), (3, 27))),
    "batches": (Layer(70, 1, 20), drawn((2, 9, 70), (2, 9, 1), (2, 9, 20))),
    "whole sticks join": (Layer(30, 64, 20), drawn((130, 30), (130, 64), (130, 20))),
    "activation": (Layer(5, 27, between=F.gelu), drawn((2, 7, 5), (2, 7, 27))),
    "view": (Layer(5, 27, between=lambda x: x.reshape(-1, 32)), drawn((2, 7, 5), (2, 7, 27))),
    "normalisation": (Layer(20, 70, norm=True), drawn((2, 7, 20), (2, 7, 70))),
    "two readers": (Layer(20, 27, twice=True), drawn((65, 20), (65, 27))),
    "convolution": (Dense(), drawn((2, 3, 6, 7))),
    "merged patches": (Merging(24), drawn((2, 8, 6, 24))),
    "distances": (FunctionModel(distances), drawn((30, 5), (33, 5))),
    "two factors": (FunctionModel(scores), drawn((2, 6, 40), (2, 6, 30), (2, 5, 40), (2, 5, 30))),
}


def behind_pass(model: nn.Module, *inputs: Tensor) -> list[AtenOp]:
    """The ops of a model behind the pass."""
    module = import_program(model.eval(), inputs).module
    PartSumsPass().apply(make_context(), module)
    module.verify()
    return [op for op in module.walk() if isinstance(op, AtenOp)]


def joined_widths(ops: list[AtenOp]) -> list[int]:
    """By tensor that is joined along the last dimension or the channels, how many tensors that takes."""
    return [len(op.operands) for op in ops if op.overload == "cat"]


@pytest.mark.parametrize(("model", "inputs"), PARTED.values(), ids=PARTED)
def test_products_of_joined_tensors_become_sums(model: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    left = {"whole sticks join": [2], "two readers": [2]}
    name = next(name for name, (known, _) in PARTED.items() if known is model)
    assert joined_widths(behind_pass(model, *inputs)) == left.get(name, [])


@pytest.mark.parametrize(("model", "inputs"), PARTED.values(), ids=PARTED)
def test_every_level_agrees_with_eager(model: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    assert spyre_mlir.compile(model.eval(), inputs, cache=False).verify(*inputs)


@pytest.mark.parametrize(
    ("model", "inputs"),
    [
        (Layer(64, 27), drawn((3, 64), (3, 27))),
        (Layer(5, 27, between=lambda x: x.flip(-1)), drawn((3, 5), (3, 27))),
        (Layer(5, 27, between=lambda x: x.softmax(-1)), drawn((3, 5), (3, 27))),
        (Layer(5, 27, between=lambda x: x[..., :32] + x.sum()), drawn((3, 5), (3, 27))),
        (Layer(*(3,) * 9), drawn(*((4, 3),) * 9)),
        (Dense(3), drawn((1, 3, 6, 7))),
        (FunctionModel(scores), drawn((2, 6, 40), (2, 6, 30), (2, 5, 30), (2, 5, 40))),
    ],
    ids=["whole sticks", "turned", "softmax", "read whole", "many parts", "windows", "joined otherwise"],
)
def test_other_joined_tensors_stay(model: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    before = [o for o in import_program(model.eval(), inputs).module.walk() if isinstance(o, AtenOp)]
    assert [o.overload for o in behind_pass(model, *inputs)] == [o.overload for o in before]


@pytest.mark.parametrize(("columns", "kept"), [(32 * 64, False), (32 * 64 + 8, True)])
def test_a_layer_of_many_columns_stays(columns: int, kept: bool) -> None:
    model = Layer(5, 27)
    model.layer = nn.Linear(32, columns)
    assert bool(joined_widths(behind_pass(model, *drawn((3, 5), (3, 27))))) == kept


@pytest.mark.parametrize(
    ("model", "inputs"),
    [
        (Merging(96).half(), (torch.zeros(1, 28, 28, 96).half(),)),
        (Layer(63, 27, 256), drawn((512, 63), (512, 27), (512, 256))),
    ],
    ids=["merged patches", "layer"],
)
def test_it_takes_half_the_time(model: nn.Module, inputs: tuple[Tensor, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    def us() -> float:
        modules = lower(import_program(model.eval(), inputs).module, make_context()).modules
        return module_timeline(modules["superdsc"], "calibrated").total_us

    quick = us()
    monkeypatch.setattr(part_sums, "_MOST_PARTS", 0)
    assert us() > 2 * quick

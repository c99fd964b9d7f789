"""Recurrent layers of many steps, and loops over many slices: loops of the bundle that give eager's numbers."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._higher_order_ops.map import map as map_slices
from torch._higher_order_ops.scan import scan

import spyre_mlir
from tests.end_to_end.importing.against_eager import close, results
from tests.functions import FunctionModel

pytestmark = pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")
STEPS = 12


def spread(*shape: int) -> Tensor:
    return torch.linspace(-1.5, 1.4, torch.Size(shape).numel()).reshape(shape)


class Recurrent(nn.Module):
    """Layers with weights that are always the same."""

    def __init__(self, kind: str, wide: int, own: int, **options: Any) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.layers = getattr(nn, kind)(wide, own, **options)

    def forward(self, x: Tensor) -> Any:
        return self.layers(x)


LAYERS: dict[str, tuple[str, int, int, dict[str, Any]]] = {
    "lstm": ("LSTM", 64, 64, {}),
    "lstm both ways": ("LSTM", 5, 7, {"bidirectional": True}),
    "lstm projected": ("LSTM", 5, 7, {"proj_size": 3, "batch_first": True, "bidirectional": True}),
    "gru": ("GRU", 5, 7, {"batch_first": True}),
    "gru without bias": ("GRU", 64, 64, {"bias": False, "bidirectional": True}),
    "rnn": ("RNN", 5, 7, {"num_layers": 2, "batch_first": True}),
    "relu": ("RNN", 64, 64, {"nonlinearity": "relu"}),
}


@pytest.fixture(autouse=True)
def compiled_anew() -> None:
    """Eager loops are compiled by Dynamo, which gives up after some."""
    torch._dynamo.reset()


def loops_of(compiled: Any) -> tuple[int, int]:
    """Loops of the bundle, and of the host."""
    text = compiled.mlir("superdsc")
    return text.count("scf.for "), text.count("control.for_loop ")


@pytest.mark.parametrize("name", LAYERS)
def test_recurrent_layers_are_loops_of_the_bundle(name: str) -> None:
    kind, wide, own, options = LAYERS[name]
    model = Recurrent(kind, wide, own, **options).eval()
    args = (spread(2, STEPS, wide) if options.get("batch_first") else spread(STEPS, 2, wide),)
    compiled = spyre_mlir.compile(model, args, numerics="exact")
    loops = options.get("num_layers", 1) * (1 + options.get("bidirectional", False))
    assert loops_of(compiled) == (loops, 0)
    assert not compiled.host_steps
    close(results(compiled, args), results(model, args))
    verification = compiled.verify(*args)
    assert verification, str(verification)


def running_sum(x: Tensor, h: Tensor) -> Any:
    return scan(lambda c, row: (c + row, c * 2), h, x, dim=0)


def backwards_along_another(x: Tensor, h: Tensor) -> Any:
    return scan(lambda c, row: (c * 0.5 + row, c - row), h, x.transpose(0, 1), dim=1, reverse=True)


def exchanged(x: Tensor, h: Tensor) -> Any:
    """Carried tensors change places: each is read before either is written."""

    def step(carried: Any, row: Tensor) -> Any:
        a, b = carried
        return (b.clone(), (a + row) * 0.5), a * row

    return scan(step, (h, h * 2), x, dim=0)


def kept_and_forgotten(x: Tensor, h: Tensor) -> Any:
    """One is carried unchanged, and one is never read."""

    def step(carried: Any, row: Tensor) -> Any:
        return (carried[0].clone(), row.clone()), carried[0] * row

    return scan(step, (h, h * 2), x, dim=0)


def numbers(x: Tensor, h: Tensor) -> Any:
    return scan(lambda c, row: (c * 0.5 + row, c + 1), h[0, 0], x[:, 0, 0], dim=0)


def mapped_with_others(x: Tensor, h: Tensor) -> Any:
    return map_slices(lambda pair, other: (pair[0] @ other.t(), pair[1].amax(-1)), (x, x * x), h)


def one_behind_the_other(x: Tensor, h: Tensor) -> Any:
    _, rows = scan(lambda c, row: (c * 0.5 + row, c * row), h, x, dim=0)
    return map_slices(torch.relu, rows), rows[3]


# Programs, with their loops in the bundle.
PROGRAMS: dict[Callable[..., Any], int] = {
    running_sum: 1, backwards_along_another: 1, exchanged: 1, kept_and_forgotten: 1, numbers: 1, mapped_with_others: 1,
    one_behind_the_other: 2,
}  # fmt: skip
INPUTS = spread(STEPS, 3, 5), spread(3, 5)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_every_level_is_eager(program: Callable[..., Any]) -> None:
    model = FunctionModel(program)
    compiled = spyre_mlir.compile(model, INPUTS, numerics="exact")
    assert loops_of(compiled) == (PROGRAMS[program], 0)
    assert ("backwards" in compiled.mlir("spyre.loop")) == (program is backwards_along_another)
    close(results(compiled, INPUTS), results(model, INPUTS))
    verification = compiled.verify(*INPUTS)
    assert verification, str(verification)


def counting(x: Tensor, h: Tensor) -> Any:
    def step(carried: Any, row: Tensor) -> Any:
        count, most = carried
        return (count + 1, torch.maximum(most, row)), torch.where(row > 0, row, most) * count

    return scan(step, (torch.zeros((), dtype=torch.int64), h), x, dim=0)


def decomposing(x: Tensor, h: Tensor) -> Any:
    return scan(lambda c, row: (c * 0.5 + torch.linalg.qr(row)[1].sum(), c + row), h, x, dim=0)


def drawing(x: Tensor, h: Tensor) -> Any:
    return scan(lambda c, row: (c + torch.rand_like(row), torch.bernoulli(torch.sigmoid(row))), h, x, dim=0)


def with_a_loop(x: Tensor, h: Tensor) -> Any:
    """The inner loop is one of the bundle."""

    def step(carried: Tensor, row: Tensor) -> Any:
        end, sums = scan(lambda c, part: (c * 0.5 + part, c + 1), carried, row.expand(STEPS, 3, 5), dim=0)
        return end, sums.mean(0)

    return scan(step, h, x, dim=0)


def deciding(x: Tensor, h: Tensor) -> Any:
    def step(carried: Tensor, row: Tensor) -> Any:
        return torch.cond(carried.sum() > 0, torch.add, torch.sub, (carried, row)), carried * 2

    return scan(step, h, x, dim=0)


# Programs whose bodies need the host, with their loops in the bundle.
ON_HOST: dict[Callable[..., Any], int] = {counting: 0, decomposing: 0, drawing: 0, with_a_loop: 1, deciding: 0}


@pytest.mark.parametrize("program", ON_HOST, ids=lambda p: p.__name__)
def test_loops_with_steps_of_the_host(program: Callable[..., Any]) -> None:
    """The host calls a body that computes with integers, draws, or decides; what is carried stays on the device.

    It does not where a loop of the bundle writes it: it is sent and fetched then.
    """
    model = FunctionModel(program)
    compiled = spyre_mlir.compile(model, INPUTS, numerics="exact")
    assert loops_of(compiled) == (ON_HOST[program], 1)
    close(results(compiled, INPUTS), results(model, INPUTS))
    verification = compiled.verify(*INPUTS)
    assert verification, str(verification)
    (call,) = (line for line in compiled.mlir("spyre.kernel").splitlines() if "control.for_loop" in line)
    assert ("!spyre.tensor<[3, 5] x SEN169_FP16" in call.split(" : (")[1]) == (program is not with_a_loop)


class Tagger(nn.Module):
    """A network that people have: an embedding, a layer both ways, and a projection."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.words, self.layer = nn.Embedding(20, 16), nn.LSTM(16, 32, batch_first=True, bidirectional=True)
        self.out = nn.Linear(64, 3)

    def forward(self, words: Tensor) -> Tensor:
        return self.out(self.layer(self.words(words))[0])


def test_from_disk_and_in_torch_compile(tmp_path: Path) -> None:
    model, words = Tagger().eval(), torch.arange(2 * STEPS).reshape(2, STEPS) % 20
    wanted = results(model, (words,))
    compiled = spyre_mlir.compile(model, (words,), numerics="exact")
    compiled.save(tmp_path / "bundle")
    close(results(spyre_mlir.load(tmp_path / "bundle", numerics="exact"), (words,)), wanted)
    close(
        results(torch.compile(model, backend="spyre", options={"numerics": "exact"}, fullgraph=True), (words,)), wanted
    )


def test_layers_in_equal_blocks() -> None:
    """Blocks with a recurrent layer in each are no functions that are called: a launch runs no call in a call."""

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.one, self.two = nn.RNN(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x: Tensor) -> Tensor:
            y = self.layer(x)[0]
            for _ in range(6):
                y = torch.tanh(self.one(y)) + torch.sigmoid(self.two(y))
            return torch.layer_norm(x + y, (8,))

    torch.manual_seed(6)
    model, args = nn.Sequential(*(Block() for _ in range(3))).eval(), (spread(STEPS, 2, 8),)
    compiled = spyre_mlir.compile(model, args, numerics="exact")
    assert loops_of(compiled) == (3, 0)
    close(results(compiled, args), results(model, args))


@pytest.mark.parametrize("steps", [11, 13])
def test_steps_that_are_left_over(steps: int) -> None:
    """Trips of several steps, and behind them trips of one."""
    model, args = Recurrent("LSTM", 8, 8).eval(), (spread(steps, 2, 8),)
    compiled = spyre_mlir.compile(model, args, numerics="exact")
    assert loops_of(compiled) == (2, 0)
    close(results(compiled, args), results(model, args))


def test_derivatives_are_those_of_the_steps() -> None:
    """A trace that derives runs every step, not the first ones alone."""

    class Derived(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(7)
            self.layer = nn.RNN(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            with torch.enable_grad():
                x = x.detach().requires_grad_()
                return torch.autograd.grad(self.layer(x)[0].square().sum(), [x])[0]

    model, args = Derived().eval(), (spread(3, 1, 4),)
    close(results(spyre_mlir.compile(model, args, numerics="exact"), args), results(model, args))


def test_steps_take_no_time_to_compile() -> None:
    """Twenty times the steps take less than twice the time; unrolled they would take minutes."""
    model, seconds = Recurrent("RNN", 16, 16).eval(), list[float]()
    for steps in (20, 400):
        start = time.process_time()
        spyre_mlir.compile(model, (spread(steps, 2, 16),), cache=False)
        seconds.append(time.process_time() - start)
    assert seconds[1] < 2 * seconds[0] + 1

"""Programs of several kinds at once: control flow, sizes of the data, draws, complex numbers, integers of few bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

import spyre_mlir
from tests.functions import FunctionModel

pytestmark = pytest.mark.filterwarnings("ignore")
Program = Callable[..., Any]


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


X = torch.randn(6, 8, generator=generator())
Z = torch.randn(5, 4, dtype=torch.complex64, generator=generator())
BYTES = torch.randint(0, 255, (4, 16), dtype=torch.uint8, generator=generator())


def branches_in_a_scan(x: Tensor) -> Any:
    def step(c: Tensor, v: Tensor) -> Any:
        c = torch.cond(v.sum() > 0, lambda c, v: c + v, lambda c, v: c - v, (c, v))
        return c, c * torch.tensor(2.0)

    return scan(step, torch.zeros(8), x)


def transform_then_branch(x: Tensor) -> Tensor:
    s = torch.fft.rfft(x)
    return torch.cond(s.abs().max() > 4, lambda a: a.real * 2, lambda a: a.imag + 1, (s.clone(),))


def size_then_loop(x: Tensor) -> Any:
    y = x[x[:, 0] > 0]
    return while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s * 0.5 + y.sum(0)), (torch.tensor(0), torch.zeros(8)))


def draw_then_branch(x: Tensor) -> Tensor:
    noise = torch.rand_like(x)
    return torch.cond(noise.mean() > 0.5, lambda x, n: x * n + torch.ones(8), lambda x, n: x - n, (x, noise))


def drawn_sizes(x: Tensor) -> Any:
    y = nn.functional.dropout(x, 0.3, True)
    return y[y > 0].sum(), (y > 0).sum(0)


def complex_sizes(z: Tensor) -> Any:
    m = z[:, 0].real > 0
    return z[m].abs(), torch.where(m[:, None], z, z.conj()).angle(), (z @ z.mH).real


def nibbles_then_branch(q: Tensor) -> Any:
    w = torch.stack([q & 15, q >> 4], -1).flatten(1).float() - 8
    return torch.cond(w.sum() > 0, lambda w: w * 2, lambda w: w.cumsum(-1), (w,)), (q.int() * 3).to(torch.uint8)


MIXED: list[tuple[Program, Tensor]] = [
    (branches_in_a_scan, X),
    (transform_then_branch, X),
    (size_then_loop, X),
    (draw_then_branch, X),
    (drawn_sizes, X),
    (complex_sizes, Z),
    (nibbles_then_branch, BYTES),
]


@pytest.fixture(autouse=True)
def forgets() -> None:
    torch._dynamo.reset()


def seeded(call: Program, *args: Any) -> Any:
    torch.manual_seed(7)
    return call(*args)


@pytest.mark.parametrize(("program", "given"), MIXED, ids=[p.__name__ for p, _ in MIXED])
def test_every_level_is_eager(program: Program, given: Tensor) -> None:
    expected = seeded(program, given)
    made = spyre_mlir.compile(FunctionModel(program), (given,), numerics="exact")
    torch.testing.assert_close(seeded(made, given), expected, atol=1e-4, rtol=1e-4)
    assert made.verify(given)


@pytest.mark.parametrize(("program", "given"), MIXED, ids=[p.__name__ for p, _ in MIXED])
def test_torch_compile(program: Program, given: Tensor) -> None:
    expected = seeded(program, given)
    torch._dynamo.reset()
    got = seeded(torch.compile(program, backend="spyre"), given)
    torch.testing.assert_close(got, expected, atol=0.1, rtol=0.02)


class Counting(nn.Module):
    """A cache that a counter of the model fills, and a choice that what is in it decides."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(64, 8))
        self.register_buffer("count", torch.tensor(0))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        self.keys[self.count] = x
        self.count += 1
        return (self.keys @ x).softmax(0).argmax(), self.count


@pytest.mark.parametrize("door", ["compile", "torch.compile"])
def test_a_counter_of_the_model_says_where_a_cache_is_written(door: str) -> None:
    ours, theirs = Counting(), Counting()
    if door == "compile":
        made: Any = spyre_mlir.compile(ours, (X[0],), numerics="exact")
    else:
        made = torch.compile(ours, backend="spyre")
    for x in X:
        got, expected = made(x), theirs(x)
        assert all(torch.equal(a, b) for a, b in zip(got, expected, strict=True))

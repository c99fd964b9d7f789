"""Weights that `torch.compile` hands over at every call: they are laid out as those of `compile`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir import torch_compile


class Eight(nn.Module):
    """A layer with a weight of eight bits, a large buffer."""

    weight: Tensor

    def __init__(self, kind: torch.dtype, largest: float = 100) -> None:
        super().__init__()
        self.register_buffer("weight", ((torch.rand(256, 512) * 2 - 1) * largest).to(kind))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight.to(x.dtype).t()


class Attention(nn.Module):
    """Heads that are no whole sticks, with a packed projection."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.MultiheadAttention(128, 4, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.heads(x, x, x, need_weights=False)[0]


CASES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "padded heads": (Attention, (2, 64, 128)),
    "a convolution": (lambda: nn.Conv2d(64, 64, 3, padding=1), (1, 64, 8, 8)),
    "integers of eight bits": (lambda: Eight(torch.int8), (2, 512)),
    "integers of four bits": (lambda: Eight(torch.int8, 7.9), (2, 512)),
    "floats of eight bits": (lambda: Eight(torch.float8_e4m3fn), (2, 512)),
}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch_compile.forget()
    torch.manual_seed(0)
    with torch.no_grad():
        yield


@pytest.mark.parametrize(("make", "shape"), CASES.values(), ids=CASES)
def test_kernels_are_those_of_compile(make: Callable[[], nn.Module], shape: tuple[int, ...]) -> None:
    model, x = make().half().eval(), torch.randn(shape).half()
    compiled = torch.compile(model, backend="spyre", options={"numerics": "exact"})
    torch.testing.assert_close(compiled(x), model(x), rtol=2e-2, atol=2e-2 * float(model(x).abs().max()))
    (program,) = torch_compile.programs(compiled)
    wanted = spyre_mlir.compile(model, (x,))
    assert program.kernels == wanted.kernels
    assert program.timeline().total_us == pytest.approx(wanted.timeline().total_us)


def test_writes_and_other_modules_of_the_graph_are_seen() -> None:
    blocks, x = [Attention().eval() for _ in range(2)], torch.randn(2, 64, 128)
    wanted = blocks[1](blocks[0](x))
    for block in blocks:
        block.compile(backend="spyre", options={"numerics": "exact"})
    torch.testing.assert_close(blocks[1](blocks[0](x)), wanted, rtol=1e-4, atol=1e-5)
    assert len(torch_compile.compilations()) == 1  # one program for both

    blocks[0].heads.out_proj.weight.data *= 2  # torch counts no write
    blocks[1].heads.in_proj_bias.add_(1)
    eager = [Attention().eval() for _ in range(2)]
    for copy, block in zip(eager, blocks, strict=True):
        copy.load_state_dict(block.state_dict())
    torch.testing.assert_close(blocks[1](blocks[0](x)), eager[1](eager[0](x)), rtol=1e-4, atol=1e-5)


def test_functions_of_control_flow_get_them_laid_out() -> None:
    class Gated(Attention):
        def forward(self, x: Tensor) -> Tensor:
            return torch.cond(x.sum() > 0, lambda t: super(Gated, self).forward(t).contiguous(), torch.sin, (x,))

    model = Gated().eval()
    compiled = torch.compile(model, backend="spyre", options={"numerics": "exact"})
    for sign in (1, -1):
        x = torch.rand(2, 64, 128) * sign
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
    (program,) = torch_compile.programs(compiled)
    assert program.kernels == spyre_mlir.compile(model, (torch.rand(2, 64, 128),)).kernels


def test_integers_that_need_other_bits_get_another_program() -> None:
    model, x = Eight(torch.int8, 7.9), torch.randn(2, 512)
    compiled = torch.compile(model, backend="spyre", options={"numerics": "exact"})
    torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-3)
    model.weight.data[3, 5] = 100
    torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-3)
    assert [made.reason for made in torch_compile.compilations()][1:] == ["integers of a weight need other bits"]
    four, eight = torch_compile.programs(compiled)
    assert four.kernels > eight.kernels  # twice as many digits in a word


def test_zero_points_of_zeros_are_left_out_as_long_as_they_are() -> None:
    class Shifted(Eight):
        zero: Tensor

        def __init__(self) -> None:
            super().__init__(torch.int8)
            self.register_buffer("zero", torch.zeros(256, 512, dtype=torch.int8))

        def forward(self, x: Tensor) -> Tensor:
            return x @ (self.weight - self.zero).to(x.dtype).t()

    model, x = Shifted(), torch.randn(2, 512)
    compiled = torch.compile(model, backend="spyre", options={"numerics": "exact"})
    torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-3)
    model.zero[0, 0] = 1
    torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-3)
    without, subtracted = torch_compile.programs(compiled)
    assert "= aten.sub" in subtracted.mlir("aten")
    assert "= aten.sub" not in without.mlir("aten")

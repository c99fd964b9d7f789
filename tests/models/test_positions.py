"""Device numerics of models at positions that DL16 cannot count to: rotary tables, embeddings of times and places."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

import spyre_mlir
from spyre_mlir.backend.directory import read_bundle
from spyre_mlir.debug.stored_runs import stored_program
from spyre_mlir.machine.bundle.host_program import run_program
from spyre_mlir.machine.options import MachineOptions
from spyre_mlir.universe import make_context

TOKENS = 8
CONFIG = LlamaConfig(
    vocab_size=64,
    hidden_size=64,
    intermediate_size=64,
    num_hidden_layers=1,
    num_attention_heads=2,
    num_key_value_heads=1,
    max_position_embeddings=131_072,
    use_cache=False,
)


class Logits(nn.Module):
    """A Llama layer whose attention is sharp, so that its logits show every error of an angle."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.model = LlamaForCausalLM(CONFIG).eval()
        with torch.no_grad():
            for name in ("q_proj", "k_proj"):
                getattr(self.model.model.layers[0].self_attn, name).weight.mul_(12)

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        return self.model(tokens, position_ids=positions).logits


@cache
def llama() -> tuple[nn.Module, Any]:
    model, tokens = Logits(), torch.zeros(1, TOKENS, dtype=torch.int64)
    return model, spyre_mlir.compile(model, (tokens, torch.arange(TOKENS)[None]))


@pytest.mark.parametrize(
    "first",
    [
        100_000,
        *(
            pytest.param(first, marks=pytest.mark.slow(reason="other positions; the largest runs by default"))
            for first in (0, 1000, 8000)
        ),
    ],
)
def test_logits_at_a_position(first: int) -> None:
    model, made = llama()
    tokens, positions = torch.arange(TOKENS)[None] * 7 % 64, torch.arange(first, first + TOKENS)[None]
    got, wanted = made(tokens, positions), model(tokens, positions).detach()
    assert float((got - wanted).square().mean().sqrt() / wanted.square().mean().sqrt()) < 0.02


class HalfTable(nn.Module):
    """The rotary table of a model in float16."""

    def __init__(self) -> None:
        super().__init__()
        self.rotary = LlamaRotaryEmbedding(CONFIG)

    def forward(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.rotary(torch.zeros(1, dtype=torch.float16), positions)


def largest_error(model: nn.Module, *inputs: torch.Tensor) -> float:
    got, wanted = spyre_mlir.compile(model, tuple(x * 0 for x in inputs))(*inputs), model(*inputs)
    several = wanted if isinstance(wanted, tuple) else (wanted,)
    pairs = zip(got if isinstance(got, tuple) else (got,), several, strict=True)
    return max(float((g.float() - w.float()).abs().max()) for g, w in pairs)


@pytest.mark.slow(reason="a second table; a third runs by default")
def test_the_rotary_table_of_a_half_model() -> None:
    assert largest_error(HalfTable(), torch.tensor([[0, 1000, 8000, 100_000, 131_071]])) < 1e-3


class DecodeTable(HalfTable):
    """The rotary table of the next four tokens of a static cache, whose places follow from the number of the first."""

    def forward(self, first: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return super().forward((first + torch.arange(4))[None])


@pytest.mark.parametrize(
    ("table", "inputs"),
    [
        (DecodeTable, torch.tensor([131_068])),
        pytest.param(
            HalfTable,
            torch.tensor([[0, 1000, 8000, 100_000, 131_071]]),
            marks=pytest.mark.slow(reason="a second table; a third runs by default"),
        ),
    ],
)
def test_a_rotary_table_built_without_values(table: type[HalfTable], inputs: torch.Tensor, tmp_path: Path) -> None:
    """`inv_freq` is in no checkpoint and has no value on meta; the bundle takes it at the call."""
    with torch.device("meta"):
        weightless = table()
    made = spyre_mlir.compile(weightless, (inputs * 0,))
    made.save(tmp_path / "bundle")
    stored = stored_program(read_bundle(tmp_path / "bundle", make_context()))
    model = table()
    given = {"input": inputs, "buffer": model.rotary.inv_freq, "constant": torch.arange(4)}
    arguments = [given[argument.kind].numpy() for argument in made._program.arguments]
    got = run_program(stored, arguments, MachineOptions(numerics="device"))
    for ours, eager in zip(got, model(inputs), strict=True):
        assert float((torch.as_tensor(ours).float() - eager.float()).abs().max()) < 1e-3


class Sinusoidal(nn.Module):
    """Embeddings of places that are computed from an offset, as translation models add them."""

    def forward(self, x: torch.Tensor, offset: torch.Tensor) -> torch.Tensor:
        places = torch.arange(x.shape[1]) + offset
        angles = places.float()[:, None] * torch.exp(torch.arange(8) * -1.2)[None]
        return torch.cat([angles.sin(), angles.cos()], 1)[None] + x * 0.125


@pytest.mark.parametrize(
    "offset", [0, pytest.param(100_000, marks=pytest.mark.slow(reason="a larger offset of the same embedding"))]
)
def test_computed_sinusoidal_embeddings(offset: int) -> None:
    x = torch.randn(1, 4, 16, generator=torch.Generator().manual_seed(0))
    made = spyre_mlir.compile(Sinusoidal(), (x, torch.tensor(0)))
    assert float((made(x, torch.tensor(offset)) - Sinusoidal()(x, torch.tensor(offset))).abs().max()) < 3e-3

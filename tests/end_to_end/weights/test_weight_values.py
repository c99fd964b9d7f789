"""Biases gathered from a weight at known places, and a weight with a norm: at every level, and with other weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.compiled import CompiledModel

X = torch.linspace(-2.0, 2.0, 2 * 6 * 32).reshape(2, 6, 32)


class Biased(nn.Module):
    """Attention of two heads with biases by relative position, as in T5 and Swin, and a norm of a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(32, 32, bias=False) for _ in range(3))
        self.q = nn.utils.parametrizations.weight_norm(self.q)
        self.bias = nn.Embedding(11, 2)

    def forward(self, x: Tensor) -> Tensor:
        count = x.shape[1]
        position = torch.arange(count)
        bias = self.bias(position[None, :] - position[:, None] + count - 1).permute(2, 0, 1)[None]
        q, k, v = (m(x).unflatten(-1, (2, 16)).transpose(1, 2) for m in (self.q, self.k, self.v))
        return nn.functional.scaled_dot_product_attention(q, k, v, bias).transpose(1, 2).flatten(2)


def model(seed: int = 0) -> Biased:
    torch.manual_seed(seed)
    return Biased().eval()


def compiled(module: nn.Module, **options: Any) -> CompiledModel:
    made = spyre_mlir.compile(module, (X,), **options)
    assert isinstance(made, CompiledModel)
    return made


def close(found: Tensor, expected: Tensor, numerics: str = "device") -> None:
    bound = 1e-5 if numerics == "exact" else 0.02
    torch.testing.assert_close(found, expected, rtol=bound, atol=bound)


def test_nothing_is_computed_of_weights_alone_and_every_level_agrees_with_torch() -> None:
    program = compiled(model())
    text = program.mlir("aten")
    assert "embedding" not in text and "norm" not in text and "original" not in text
    assert program.verify(X)


@torch.no_grad()
@pytest.mark.parametrize(
    ("numerics", "write"),
    [
        ("exact", lambda w: w.mul_(-3)),
        ("device", lambda w: w.mul_(-3)),
        ("exact", lambda w: w.data.neg_()),  # which torch does not count
        ("device", lambda w: w.data.neg_()),
    ],
    ids=["exact", "device", "exact, by data", "device, by data"],
)
@pytest.mark.parametrize("filed", [False, True], ids=["held", "filed"])
def test_a_weight_that_is_written_changes_the_next_call(numerics: Any, write: Any, filed: bool) -> None:
    module = model()
    program = compiled(module, numerics=numerics)
    close(program(X), module(X), numerics)
    if filed:
        program.bundle_directory()
    before = module(X)
    write(module.q.parametrizations.weight.original0)
    close(program(X), module(X), numerics)
    write(module.bias.weight)
    assert not torch.allclose(before, module(X), atol=0.1), "the bias counts"
    close(program(X), module(X), numerics)


@torch.no_grad()
def test_a_weight_that_is_replaced_is_an_error() -> None:
    module = model()
    program = compiled(module)
    module.bias.weight = nn.Parameter(module.bias.weight + 1)
    with pytest.raises(spyre_mlir.SpyreError, match=r"another tensor 'bias\.weight'"):
        program(X)


@torch.no_grad()
def test_a_model_without_weights_is_bound_to_several_checkpoints(tmp_path: Path) -> None:
    with torch.device("meta"):
        empty = Biased().eval()
    program = compiled(empty)
    assert program.mlir("superdsc") == compiled(model()).mlir("superdsc")
    with pytest.raises(spyre_mlir.SpyreError, match=r"1 missing: bias\.weight"):
        program.bind({n: t for n, t in model().state_dict().items() if n != "bias.weight"})
    for seed in (1, 2):
        other = model(seed)
        save_file(other.state_dict(), tmp_path / "model.safetensors")
        bound = program.bind(tmp_path)
        close(bound(X), other(X))
    saved = bound.save(tmp_path / "saved", host_weights=True)
    close(spyre_mlir.load(saved)(X), other(X))
    close(spyre_mlir.load(saved, numerics="exact")(X), other(X), "exact")
    close(program.bind(other)(X), other(X))


@torch.no_grad()
def test_programs_of_several_lengths_have_the_weights_of_their_time() -> None:
    module = model()
    made = spyre_mlir.compile(
        module, (X,), dynamic_shapes={"x": {1: torch.export.Dim("count", max=6)}}, numerics="exact"
    )
    for count in (6, 4, 6):
        close(made(X[:, :count]), module(X[:, :count]), "exact")
        module.bias.weight.mul_(-1.5)
        close(made(X[:, :count]), module(X[:, :count]), "exact")

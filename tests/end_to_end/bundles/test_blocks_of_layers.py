"""Caches of equal layers, which are one function: every call writes blocks of its own caches where they lie."""

from __future__ import annotations

import json
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.kernel import LaunchOp
from spyre_mlir.dialects.spyre.kernel_loop import TileOp
from spyre_mlir.errors import InputError
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context
from tests.end_to_end.regions.stacks import DecodeStep

LENGTH = 128
# The last positions of the first block, the first of the second, and an earlier one once more.
STEPS = ((3, 0), (5, 1), (7, 63), (11, 64), (13, 127), (2, 5))


def decoder() -> DecodeStep:
    """Two layers of transformers, whose positions are `arange(1) + position`."""
    return DecodeStep(2, LENGTH).eval()


def inputs(token: int, position: int) -> tuple[Tensor, Tensor]:
    return torch.tensor([[token]]), torch.tensor(position)


def program(model: nn.Module, given: tuple[Tensor, ...], **options: Any) -> CompiledModel:
    made = spyre_mlir.compile(model, given, numerics="exact", **options)
    assert isinstance(made, CompiledModel)
    return made


@cache
def built() -> tuple[DecodeStep, CompiledModel]:
    model = decoder()
    return model, program(model, inputs(3, 70))


def compiled() -> CompiledModel:
    return built()[1]


def test_every_level_is_eager() -> None:
    made = compiled()
    text = made.mlir("spyre.kernel")
    assert text.count("func.call @layers") == 2
    assert text.count("spyre.kernel.block_number") == 3  # of the indices, the keys and the values: in the function
    outcome = made.verify(*inputs(3, 70))
    assert outcome, outcome


def test_a_call_is_handed_blocks_of_its_caches() -> None:
    module = parse_module(compiled().mlir("superdsc"), make_context())
    launches = [op for op in module.walk() if isinstance(op, LaunchOp)]
    handed = [[v.owner.source for v in op.buffers if isinstance(v.owner, TileOp)] for op in launches]
    first, second = (sources for sources in handed if sources)
    assert len(first) == len(second) == 3
    # Both are handed the block of the indices; each the keys and the values of its layer.
    assert len({*first, *second}) == 5


def test_calls_in_a_row_write_the_caches() -> None:
    model, made = built()
    eager = deepcopy(model)  # with the caches as they are
    for token, position in STEPS:
        given = inputs(token, position)
        torch.testing.assert_close(made(*given), eager(*given))


def test_the_flat_program_writes_them_too() -> None:
    flat = program(decoder(), inputs(3, 70), regions=False)
    assert flat.mlir("spyre.kernel").count("spyre.kernel.block_number") == 5
    torch.testing.assert_close(flat(*inputs(3, 70)), decoder()(*inputs(3, 70)))


def test_files_take_the_blocks_of_each_call(tmp_path: Path) -> None:
    compiled().save(tmp_path / "bundle")
    described = json.loads((tmp_path / "bundle" / "manifest.json").read_text())
    blocks = [a for a in json_entries(described) if "block" in a]
    assert {a["holds"] for a in blocks} >= {"k0", "v0", "k1", "v1"}
    assert {a["block"]["position"] for a in blocks} == {"position"}
    loaded, eager = spyre_mlir.load(tmp_path / "bundle"), decoder()
    for token, position in STEPS[:4]:
        given = inputs(token, position)
        torch.testing.assert_close(loaded(*given), eager(*given), atol=0.02, rtol=0.02)


def json_entries(value: object) -> list[dict[str, Any]]:
    """All objects inside of a JSON value."""
    match value:
        case dict():
            entry = cast(dict[str, Any], value)
            return [entry, *(found for inner in entry.values() for found in json_entries(inner))]
        case list():
            return [found for inner in cast(list[object], value) for found in json_entries(inner)]
        case _:
            return []


def test_torch_compile_writes_them() -> None:
    torch._dynamo.reset()
    eager = decoder()
    made = torch.compile(deepcopy(eager), backend="spyre")
    for token, position in STEPS[:4]:
        given = inputs(token, position)
        torch.testing.assert_close(made(*given), eager(*given), atol=0.02, rtol=0.02)


def test_a_position_outside_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"argument 1, 'position' .* an index of 128, and aten\.index_copy takes 0 to 127"
    ):
        compiled()(*inputs(3, LENGTH))


class Heads(nn.Module):
    """A layer whose keys have lanes behind them that are not zero when they are made."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.q, self.out = nn.Linear(depth, depth), nn.Linear(depth, depth)
        self.up, self.norm = nn.Linear(depth, depth), nn.LayerNorm(depth)

    def forward(self, x: Tensor, kept: Tensor, at: Tensor) -> Tensor:
        kept.index_copy_(1, at, torch.exp(self.norm(x)))
        x = x + self.out(((self.q(x) @ kept.transpose(1, 2)) * 0.1).softmax(-1) @ kept)
        return x + torch.sigmoid(torch.tanh(self.up(x)).cos()).sin() * torch.relu(x)


class Stack(nn.Module):
    """Such layers, with caches that are buffers: the host clears what is behind them."""

    def __init__(self, count: int, depth: int, caches: int | None = None) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.layers = nn.ModuleList(Heads(depth) for _ in range(count))
        for number in range(count if caches is None else caches):
            self.register_buffer(f"kept{number}", torch.randn(1, LENGTH, depth))
        self.caches = count if caches is None else caches

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        for number, layer in enumerate(self.layers):
            x = layer(x, getattr(self, f"kept{number % self.caches}"), at)
        return x


@pytest.mark.parametrize("regions", [True, False])
def test_what_is_behind_a_new_entry_is_not_taken_for_zeros(regions: bool) -> None:
    given = torch.randn(1, 1, 80), torch.tensor([65])
    made = program(Stack(4, 80).eval(), given, regions=regions)
    assert "spyre.kernel.block_number" in made.mlir("spyre.kernel")
    assert ("func.call" in made.mlir("spyre.kernel")) == regions
    eager = Stack(4, 80).eval()
    for _ in range(2):
        torch.testing.assert_close(made(*given), eager(*given))


def test_layers_that_share_a_cache_copy_it() -> None:
    given = torch.randn(1, 1, 64), torch.tensor([65])
    made, eager = program(Stack(4, 64, caches=1).eval(), given), Stack(4, 64, caches=1).eval()
    assert "func.call" in made.mlir("spyre.kernel")
    assert "spyre.kernel.block_number" not in made.mlir("spyre.kernel")
    for _ in range(2):
        torch.testing.assert_close(made(*given), eager(*given))

"""Caches of which one position is written: at every level, call after call, from files, and through torch.compile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.kernel import KernelOp, RestickifyOp
from spyre_mlir.dialects.spyre.kernel_loop import BlockNumberOp
from spyre_mlir.errors import InputError, UnsupportedError
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context

Inputs = tuple[Tensor, ...]


class Decode(nn.Module):
    """Attention of one token to a cache that it joins."""

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor, at: Tensor, seen: Tensor
    ) -> Tensor:
        k, v = keys.index_copy_(2, at, k), values.index_copy_(2, at, v)
        return nn.functional.scaled_dot_product_attention(q, k, v, seen, enable_gqa=True)


def caches(length: int = 128, batch: int = 1, depth: int = 64) -> Inputs:
    return tuple(torch.randn(batch, 2, length, depth) for _ in range(2))


def inputs(kept: Inputs, at: int) -> Inputs:
    """A token at a position of caches, which sees what stands before it."""
    batch, _, length, depth = kept[0].shape
    new = (torch.randn(batch, heads, 1, depth) for heads in (4, 2, 2))
    return (*new, *kept, torch.tensor([at]), (torch.arange(length) <= at).view(1, 1, 1, length))


def program(given: Inputs, **options: Any) -> CompiledModel:
    made = spyre_mlir.compile(Decode(), given, numerics="exact", **options)
    assert isinstance(made, CompiledModel)
    return made


def clone(given: Inputs) -> Inputs:
    return tuple(x.clone() for x in given)


@pytest.mark.parametrize(("length", "batch", "depth", "at"), [(128, 1, 64, 70), (64, 2, 80, 0), (2048, 1, 64, 1999)])
def test_every_level_is_eager(length: int, batch: int, depth: int, at: int) -> None:
    """2,048 positions are more than DL16 tells apart; heads of 80 leave lanes behind them."""
    torch.manual_seed(0)
    given = inputs(caches(length, batch, depth), at)
    made = program(given)
    assert "spyre.kernel.block_number" in made.mlir("spyre.kernel")
    outcome = made.verify(*given)
    assert outcome, outcome


def test_calls_in_a_row_write_one_cache() -> None:
    torch.manual_seed(1)
    ours = caches()
    theirs = clone(ours)
    made, eager = program(inputs(ours, 3)), Decode()
    for at in (3, 4, 63, 64, 127):
        _, _, _, *_, position, seen = given = inputs(ours, at)
        got, expected = made(*given), eager(*given[:3], *theirs, position, seen)
        torch.testing.assert_close(got, expected)
        torch.testing.assert_close(ours, theirs)


def test_kernels_touch_the_block_alone() -> None:
    """One kernel writes each cache, a block of it, and none lays a cache out again."""
    module = parse_module(program(inputs(caches(256), 7)).mlir("spyre.kernel"), make_context())
    kernels = [op for op in module.walk() if isinstance(op, KernelOp)]
    written = [op for op in kernels if "block" in str(op.output.name_hint) or _is_block(op)]
    assert [op.function_name for op in written] == ["where3", "where3"]
    assert all(op.space.extents.get("d2") == 64 for op in written)
    relaid = [op for op in kernels if isinstance(op, RestickifyOp) and op.tensors[0].shape == (1, 2, 256, 64)]
    assert not relaid


def _is_block(op: KernelOp) -> bool:
    return any(isinstance(v.owner, BlockNumberOp) for v in getattr(op.output.owner, "operands", ()))


@pytest.mark.parametrize("at", [128, -1])
def test_a_position_outside_is_refused(at: int) -> None:
    given = inputs(caches(), 5)
    made, before = program(given), clone(given)
    with pytest.raises(InputError, match=rf"argument 5, 'at' holds {at} at \[0\], and aten.index_copy takes 0 to 127"):
        made(*given[:5], torch.tensor([at]), given[6])
    assert all(torch.equal(x, y) for x, y in zip(given, before, strict=True))


def test_files_take_the_block_as_an_argument(tmp_path: Path) -> None:
    torch.manual_seed(2)
    given = inputs(caches(), 66)
    made = program(given)
    made.save(tmp_path / "bundle")
    described = json.loads((tmp_path / "bundle" / "manifest.json").read_text())["arguments"]
    blocks = {a["holds"]: a["block"] for a in described if "block" in a}
    assert {"keys", "values"} < set(blocks)
    assert blocks["values"] == {"position": "at", "entries": 64, "bytes_apart": 64 * 128}
    assert blocks["keys"] == {"position": "at", "entries": 64, "bytes_apart": 128}
    ours, theirs = clone(given), clone(given)
    expected = Decode()(*theirs)
    torch.testing.assert_close(spyre_mlir.load(tmp_path / "bundle")(*ours), expected, atol=0.01, rtol=0.01)
    torch.testing.assert_close(ours[3:5], theirs[3:5], atol=0.01, rtol=0.01)


def test_torch_compile_writes_the_cache() -> None:
    torch.manual_seed(3)
    torch._dynamo.reset()
    given = inputs(caches(), 9)
    ours, theirs = clone(given), clone(given)
    got = torch.compile(Decode(), backend="spyre")(*ours)
    torch.testing.assert_close(got, Decode()(*theirs), atol=0.01, rtol=0.01)
    torch.testing.assert_close(ours[3:5], theirs[3:5], atol=0.01, rtol=0.01)


def test_the_old_form_on_request_and_for_others() -> None:
    given = inputs(caches(), 5)
    assert "block_number" not in program(given, in_place=False).mlir("spyre.kernel")
    with pytest.raises(UnsupportedError, match="fp32todl16"):  # and nothing about the block
        program(given).ktir()


class Put(nn.Module):
    """A cache that a number chooses one position of, from either end; the new entry is read back with the others."""

    def forward(self, new: Tensor, cache: Tensor, at: Tensor) -> Tensor:
        cache[:, :, at] = new if at.dim() else new[:, :, 0]
        return cache @ cache.mT


def put_inputs(at: Tensor) -> Inputs:
    return torch.randn(1, 2, 1, 64), caches()[0], at


@pytest.mark.parametrize("at", [0, 70, 127, -1, -64, -128])
@pytest.mark.parametrize("shape", [(1,), ()], ids=["one", "scalar"])
def test_a_put_at_a_position_is_in_place_and_counts_from_the_end(at: int, shape: tuple[int, ...]) -> None:
    torch.manual_seed(4)
    given = put_inputs(torch.full(shape, at))
    made = spyre_mlir.compile(Put(), clone(given), numerics="exact")
    assert "block_number of %at from_end, blocks of 64 in 128" in made.mlir("spyre.kernel")
    assert made.verify(*clone(given))
    ours, theirs = clone(given), clone(given)
    torch.testing.assert_close(made(*ours), Put()(*theirs))
    assert torch.equal(ours[1], theirs[1])


@pytest.mark.parametrize("at", [128, -129])
def test_a_put_outside_is_refused(at: int) -> None:
    given = put_inputs(torch.tensor([5]))
    made = spyre_mlir.compile(Put(), clone(given), numerics="exact")
    with pytest.raises(IndexError):
        Put()(*given[:2], torch.tensor([at]))
    with pytest.raises(InputError, match=rf"'at' holds {at} at \[0\], and aten.index_put takes -128 to 127"):
        made(*given[:2], torch.tensor([at]))


def test_files_say_that_a_position_counts_from_the_end(tmp_path: Path) -> None:
    torch.manual_seed(5)
    given = put_inputs(torch.tensor([-2]))
    made = spyre_mlir.compile(Put(), clone(given), numerics="exact")
    made.save(tmp_path / "bundle")
    described = json.loads((tmp_path / "bundle" / "manifest.json").read_text())["arguments"]
    (block,) = (a["block"] for a in described if a["holds"] == "cache" and "block" in a)
    assert block["position"] == "at"
    assert block["from_end"] is True
    ours, theirs = clone(given), clone(given)
    expected = Put()(*theirs)
    torch.testing.assert_close(spyre_mlir.load(tmp_path / "bundle")(*ours), expected, atol=0.5, rtol=0.01)
    torch.testing.assert_close(ours[1], theirs[1], atol=0.01, rtol=0.01)


class Kept(nn.Module):
    """The cache of a model, as gpt-fast writes it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(1, 2, 128, 64))

    def forward(self, new: Tensor, at: Tensor) -> Tensor:
        self.cache[:, :, at] = new
        return self.cache @ new.mT


@pytest.mark.parametrize("door", ["compile", "torch.compile"])
def test_the_cache_of_a_model_is_written_call_after_call(door: str) -> None:
    torch.manual_seed(6)
    torch._dynamo.reset()
    ours, theirs = Kept(), Kept()
    new = torch.randn(1, 2, 1, 64)
    if door == "compile":
        made = spyre_mlir.compile(ours, (new, torch.tensor([0])), numerics="exact")
        assert "block_number" in made.mlir("spyre.kernel")
    else:
        made = torch.compile(ours, backend="spyre")
    for at in (0, 63, -1, 64):
        new = torch.randn(1, 2, 1, 64)
        got, expected = made(new, torch.tensor([at])), theirs(new, torch.tensor([at]))
        torch.testing.assert_close(got, expected, atol=0.1, rtol=0.01)


@pytest.mark.parametrize("at", [3, -1])
def test_a_known_number_behind_the_position(at: int) -> None:
    """The sum counts from the end, not the position: 1 less than 3, and than the last."""

    class Behind(nn.Module):
        def forward(self, new: Tensor, cache: Tensor, at: Tensor) -> Tensor:
            cache[:, :, at - 1] += new
            return cache + 1

    given = put_inputs(torch.tensor([at]))
    made = spyre_mlir.compile(Behind(), clone(given), numerics="exact")
    ours, theirs = clone(given), clone(given)
    torch.testing.assert_close(made(*ours), Behind()(*theirs))
    torch.testing.assert_close(ours[1], theirs[1])
    assert made.verify(*clone(given))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool], ids=str)
def test_a_cache_of_integers_is_written_anew(dtype: torch.dtype) -> None:
    """What kernels compute with is not the format in which integers are sent."""

    class Counts(nn.Module):
        def forward(self, new: Tensor, cache: Tensor, at: Tensor) -> Tensor:
            cache[at] = new
            return cache.sum(0)

    given = torch.tensor([1, 0, 1]).to(dtype), torch.ones(64, 3).to(dtype), torch.tensor([-5])
    made = spyre_mlir.compile(Counts(), clone(given), numerics="exact")
    assert "block_number" not in made.mlir("spyre.kernel")
    ours, theirs = clone(given), clone(given)
    assert torch.equal(made(*ours), Counts()(*theirs))
    assert torch.equal(ours[1], theirs[1])

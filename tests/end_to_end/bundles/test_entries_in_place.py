"""Caches of which a few entries are written: at every level, call after call, from files, and through torch.compile."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.backend.check import check_path
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import InputError
from spyre_mlir.universe import make_context
from tests.fms_operators import stored

PAGES, SIZE, HEADS, DEPTH = 6, 64, 2, 16


class Module(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *x: Tensor) -> Any:
        return self.function(*x)


def caches() -> tuple[Tensor, Tensor]:
    keys, values = (torch.randn(PAGES, SIZE, HEADS, DEPTH) for _ in range(2))
    return keys, values


def tokens(slots: list[list[int]]) -> tuple[Tensor, Tensor, Tensor]:
    numbers = torch.tensor(slots)
    return torch.randn(*numbers.shape, HEADS, DEPTH), torch.randn(*numbers.shape, HEADS, DEPTH), numbers


def store(key: Tensor, value: Tensor, keys: Tensor, values: Tensor, slots: Tensor) -> Any:
    return torch.ops.spyre.paged_attn_store(key, value, keys, values, slots)


def program(function: Callable[..., Any], given: tuple[Tensor, ...], **options: Any) -> CompiledModel:
    made = spyre_mlir.compile(Module(function), given, numerics="exact", **options)
    assert isinstance(made, CompiledModel)
    return made


def clone(given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(x.clone() for x in given)


def same(got: Any, wanted: Any) -> None:
    torch.testing.assert_close(tuple(got), tuple(wanted), rtol=0, atol=0)


@pytest.mark.parametrize("slots", [[[197], [77]], [[5], [5]], [[5, 6, 7]], [[-1], [383]], [[0, 320, 0]]])
def test_tokens_are_written_to_pages_at_every_level(slots: list[list[int]]) -> None:
    """Of a slot that is named twice the later token stays; two tokens may have one page."""
    torch.manual_seed(0)
    key, value, numbers = tokens(slots)
    given = key, value, *caches(), numbers
    made = program(store, given)
    assert made.mlir("spyre.loop").count("spyre.loop.put") == 2 * numbers.numel()
    assert made.verify(*given)
    before = clone(given)
    same(made(*given), stored(*given))
    same(given, before)


def test_results_are_caches_of_the_next_call() -> None:
    """Both the old caches and the new ones are what they were, whichever is passed again."""
    torch.manual_seed(1)
    first = key, value, keys, values, slots = *tokens([[70], [5]])[:2], *caches(), torch.tensor([[70], [5]])
    made = program(store, first)
    one = made(*first)
    two = made(key + 1, value, *one, slots + 1)
    again = made(key + 2, value, keys, values, slots)
    wanted = stored(*first)
    same(one, wanted)
    same(two, stored(key + 1, value, *wanted, slots + 1))
    same(again, stored(key + 2, value, keys, values, slots))


def test_one_tensor_for_two_caches() -> None:
    torch.manual_seed(2)
    key, value, slots = tokens([[70], [71]])
    given = key, value, *caches(), slots
    made = program(store, given)
    keys = given[2]
    same(made(key, value, keys, keys, slots), stored(key, value, keys, keys, slots))


def test_what_stays_on_the_card_is_not_written() -> None:
    """A parameter is sent once, and results of calls do not take its memory."""
    torch.manual_seed(2)
    given = *tokens([[70], [71]])[:2], *caches(), torch.tensor([[70], [71]])
    made, (key, value, keys, values, slots) = program(store, given), given
    kept = nn.Parameter(keys)
    for at in (slots, slots + 1, slots + 2):
        same(made(key, value, kept, values, at), stored(key, value, keys, values, at))


@pytest.mark.parametrize("slot", [384, -385])
def test_a_slot_outside_is_refused(slot: int) -> None:
    given = *tokens([[1], [2]])[:2], *caches(), torch.tensor([[1], [2]])
    made = program(store, given)
    with pytest.raises(InputError, match=rf"argument 4, .* holds {slot} at \[1, 0\], and .*store takes -384 to 383"):
        made(*given[:4], torch.tensor([[1], [slot]]))


def _read_too(key: Tensor, value: Tensor, keys: Tensor, values: Tensor, slots: Tensor) -> Any:
    """The old keys are read beside the new ones."""
    new, other = store(key, value, keys, values, slots)
    return new, other, keys.sum() + new.sum()


def _twice(key: Tensor, value: Tensor, keys: Tensor, values: Tensor, slots: Tensor) -> Any:
    """What the first tokens leave is read before the next ones are stored."""
    new, other = store(key, value, keys, values, slots)
    total = new.sum()
    return *store(value, key, new, other, slots + 1), total


@pytest.mark.parametrize("function", [_read_too, _twice])
def test_what_is_read_later_is_not_overwritten(function: Callable[..., Any]) -> None:
    torch.manual_seed(3)
    given = *tokens([[70], [5]])[:2], *(c.round() for c in caches()), torch.tensor([[70], [5]])
    made = program(function, given)
    assert "spyre.loop.put" not in made.mlir("spyre.loop")
    assert made.verify(*given)


def _copied(new: Tensor, cache: Tensor, slots: Tensor) -> Tensor:
    cache.view(-1, HEADS, DEPTH).index_copy_(0, slots, new)
    return cache.sum((0, 1))


def _put(new: Tensor, cache: Tensor, slots: Tensor) -> Tensor:
    cache.view(-1, HEADS, DEPTH)[slots.view(2, -1)] = new.view(2, -1, HEADS, DEPTH)
    return cache.sum((0, 1))


def _along(new: Tensor, cache: Tensor, slots: Tensor) -> Tensor:
    cache.index_copy_(1, slots, new)
    return cache.sum((0, 1))


@pytest.mark.parametrize(
    ("function", "shape", "new", "slots"),
    [
        (_copied, (PAGES, SIZE, HEADS, DEPTH), (2, HEADS, DEPTH), [70, 5]),
        (_put, (PAGES, SIZE, HEADS, DEPTH), (2, HEADS, DEPTH), [70, -1]),
        (_along, (2, 256, HEADS, DEPTH), (2, 2, HEADS, DEPTH), [200, 5]),
    ],
)
def test_other_operators_write_to_their_arguments(
    function: Callable[..., Any], shape: tuple[int, ...], new: tuple[int, ...], slots: list[int]
) -> None:
    torch.manual_seed(4)
    given = torch.randn(new), torch.randn(shape), torch.tensor(slots)
    made = program(function, given)
    assert made.mlir("spyre.loop").count("spyre.loop.put") == 2
    assert made.verify(*given)
    ours, theirs = clone(given), clone(given)
    torch.testing.assert_close(made(*ours), function(*theirs))
    same(ours, theirs)


def test_files_say_which_integer_and_that_results_take_the_memory(tmp_path: Path) -> None:
    torch.manual_seed(5)
    given = *tokens([[70], [5]])[:2], *caches(), torch.tensor([[70], [5]])
    program(store, given).save(tmp_path / "bundle")
    assert [f for f in check_path(tmp_path / "bundle", make_context()) if f.severity == "error"] == []
    described = json.loads((tmp_path / "bundle" / "manifest.json").read_text())["arguments"]
    blocks = [a["block"] for a in described if a["holds"] == "x_2" and "block" in a]
    assert [(b["position"], b["number"], b["per"], b["from_end"]) for b in blocks] == [
        ("x_4", 0, 64, True),
        ("x_4", 1, 64, True),
    ]
    loaded: Any = spyre_mlir.load(tmp_path / "bundle")
    torch.testing.assert_close(tuple(loaded(*given)), stored(*given), rtol=0.01, atol=0.01)


def test_torch_compile_leaves_the_caches_of_the_caller() -> None:
    torch.manual_seed(6)
    torch._dynamo.reset()
    given = *tokens([[70], [5]])[:2], *caches(), torch.tensor([[70], [5]])
    before = clone(given)
    step = torch.compile(Module(store), backend="spyre")
    for slots in (given[4], given[4] + 1):
        got = step(*given[:4], slots)
        torch.testing.assert_close(tuple(got), stored(*given[:4], slots), rtol=0.01, atol=0.01)
    same(given, before)


def test_the_old_form_on_request() -> None:
    given = *tokens([[70], [5]])[:2], *caches(), torch.tensor([[70], [5]])
    made = program(store, given, in_place=False)
    assert "spyre.loop.put" not in made.mlir("spyre.loop")
    same(made(*given), stored(*given))


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.key, self.value = nn.Linear(32, 32), nn.Linear(32, 32)
        self.mlp = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 32), nn.SiLU(), nn.Linear(32, 32), nn.LayerNorm(32))

    def forward(self, x: Tensor, keys: Tensor, values: Tensor, slots: Tensor, ends: Tensor, table: Tensor) -> Any:
        key, value = (f(x).view(x.shape[0], 1, HEADS, DEPTH) for f in (self.key, self.value))
        keys, values = store(key, value, keys, values, slots)
        query = x.view(x.shape[0], 1, HEADS, DEPTH)
        seen = torch.ops.spyre.paged_attn_compute(query, keys, values, 0.25, ends, torch.zeros_like(ends), table)
        x = x + seen.flatten(1)
        return x + self.mlp(x).tanh(), keys, values


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(6))

    def forward(self, x: Tensor, kept: list[Tensor], *where: Tensor) -> Any:
        made = list[Tensor]()
        for number, layer in enumerate(self.layers):
            x, *new = layer(x, *kept[2 * number : 2 * number + 2], *where)
            made += new
        return x, made


def test_layers_that_are_one_function_write_their_own_caches() -> None:
    torch.manual_seed(7)
    eager, kept = Layers().eval(), [cache for _ in range(6) for cache in caches()]
    where = torch.tensor([[70], [5]]), torch.tensor([7, 6]), torch.tensor([[1], [0]])
    given = torch.randn(2, 32), kept, *where
    made = spyre_mlir.compile(eager, given, numerics="exact")
    assert isinstance(made, CompiledModel)
    assert "func.call" in made.mlir("spyre.kernel")
    assert made.mlir("spyre.loop").count("spyre.loop.put") == 4, "in one function"
    before = clone(tuple(kept))
    for _ in range(2):
        (got, new), (wanted, expected) = made(*given), eager(*given)
        torch.testing.assert_close((got, *new), (wanted, *expected))
        same(kept, before)

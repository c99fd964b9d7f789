"""Prompts that fill whole pages of caches: at every level, call after call, and from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from tests.end_to_end.bundles.test_entries_in_place import (
    HEADS,
    PAGES,
    Layers,
    caches,
    clone,
    program,
    same,
    store,
    tokens,
)
from tests.fms_operators import stored


def run(*pages: int, count: int = 0) -> list[int]:
    """The slots of pages one after the other, the first ones of them if a count is given."""
    slots = [64 * page + place for page in pages for place in range(64)]
    return slots[: count or len(slots)]


@pytest.mark.parametrize(
    ("slots", "puts"),
    [
        ([run(3, 1)], 4),
        ([run(3, 3, 3)], 6),
        ([run(2), run(5)], 4),
        ([run(4, 0, count=100)], 4),
        ([run(4, 4, count=70), run(4, 1, count=70)], 8),
        ([[slot - 6 * 64 for slot in run(1, 2)]], 4),
    ],
    ids=["pages", "one page again", "sequences", "a part of the last page", "parts of one page", "from the end"],
)
def test_prompts_are_written_to_pages_at_every_level(slots: list[list[int]], puts: int) -> None:
    """Of a page that is named twice the later tokens stay, and what else is in it."""
    torch.manual_seed(0)
    key, value, numbers = tokens(slots)
    given = key, value, *caches(), numbers
    made = program(store, given)
    assert made.mlir("spyre.loop").count("spyre.loop.put") == puts
    assert made.verify(*given)
    before = clone(given)
    same(made(*given), stored(*given))
    same(given, before)


def test_the_same_tokens_are_written_to_both_caches() -> None:
    torch.manual_seed(1)
    key, _, numbers = tokens([run(3, 1)])
    given = key, *caches(), numbers

    def both(key: Tensor, *rest: Tensor) -> Any:
        return store(key, key, *rest)

    made = program(both, given)
    assert made.verify(*given)
    same(made(*given), stored(key, *given))


def test_a_prompt_moves_its_pages_alone() -> None:
    """512 tokens of 8 heads and 128 features in two caches of 67 MB: 2 MB are read and written."""
    half, counts = {"dtype": torch.float16, "device": "meta"}, {"dtype": torch.int64, "device": "meta"}
    new, cache = torch.empty(1, 512, 8, 128, **half), torch.empty(512, 64, 8, 128, **half)
    made = program(store, (new, new, cache, cache, torch.empty(1, 512, **counts)))
    assert made.kernels == 16
    assert made.timeline().total_us < 50


def test_files_say_which_integers_are_a_page(tmp_path: Path) -> None:
    torch.manual_seed(5)
    key, value, numbers = tokens([run(4, 0, count=100)])
    given = key, value, *caches(), numbers
    program(store, given).save(tmp_path / "bundle")
    assert not spyre_mlir.check(tmp_path / "bundle")
    described = json.loads((tmp_path / "bundle" / "manifest.json").read_text())["arguments"]
    blocks = [a["block"] for a in described if a["holds"] == "x_2" and "block" in a]
    assert [(b["position"], b["number"], b["per"], b["run"]) for b in blocks] == [
        ("x_4", 0, 64, 64),
        ("x_4", 64, 64, 36),
    ]
    loaded: Any = spyre_mlir.load(tmp_path / "bundle", numerics="exact")
    same(loaded(*given), stored(*given))


class Prompt(Layers):
    """Layers of which each stores a prompt of its own."""

    def forward(self, x: Tensor, kept: list[Tensor], slots: Tensor) -> Any:
        made = list[Tensor]()
        for number, layer in enumerate(self.layers):
            key, value = (f(x).view(1, -1, 2, 16) for f in (layer.key, layer.value))
            made += store(key, value, *kept[2 * number : 2 * number + 2], slots)
            x = x + layer.mlp(x).tanh()
        return x, made


def test_layers_that_are_one_function_write_their_own_pages() -> None:
    torch.manual_seed(7)
    eager, kept = Prompt().eval(), [cache for _ in range(6) for cache in caches()]
    given = torch.randn(128, 32), kept, torch.tensor([run(3, 1)])
    made = spyre_mlir.compile(eager, given, numerics="exact")
    assert isinstance(made, CompiledModel)
    assert "func.call" in made.mlir("spyre.kernel")
    assert made.mlir("spyre.loop").count("spyre.loop.put") < 4 * 6, "equal layers are in one function"
    for slots in (run(3, 1), run(0, 5)):
        at = torch.tensor([slots])
        (got, new), (wanted, expected) = made(*given[:2], at), eager(*given[:2], at)
        torch.testing.assert_close((got, *new), (wanted, *expected))


@pytest.mark.parametrize("count", [64, 40])
def test_lanes_that_other_dimensions_make(count: int) -> None:
    """Pairs of channels, as rotary positions turn them, lie side by side in the lanes of a page."""
    torch.manual_seed(2)
    keys, values = (torch.randn(PAGES, 64, HEADS, 64) for _ in range(2))
    key, value = (torch.randn(1, 64 + count, HEADS, 64) for _ in range(2))

    def turned(key: Tensor, *rest: Tensor) -> Any:
        first, second = key.unflatten(-1, (-1, 2)).unbind(-1)
        return store(torch.stack([-second, first], -1).flatten(-2), *rest)

    given = key, value, keys, values, torch.tensor([run(4, 0, count=64 + count)])
    assert program(turned, given).verify(*given)

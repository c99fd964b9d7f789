"""`generate` behind the compiled forward pass: what is passed on, what the card keeps, and what is refused.

The model here is a model of transformers in miniature; tests/models/test_generation.py has real ones.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir import Generation
from spyre_mlir.errors import InputError, UnsupportedError
from spyre_mlir.runtime.residence import CARD

ROOM, WIDTH = 6, 4


class Layer:
    """Room for some rows, and how many there are."""

    def __init__(self, rows: int) -> None:
        self.max_cache_len = rows
        self.keys = torch.zeros(0)
        self.length = torch.tensor(0)


class Cache:
    def __init__(self, rows: int) -> None:
        self.layers = [Layer(rows)]

    def early_initialization(self, batch: int, heads: int, size: int, dtype: torch.dtype, device: torch.device) -> None:
        self.layers[0].keys = torch.zeros(heads, self.layers[0].max_cache_len, size, dtype=dtype, device=device)


class Sums(nn.Module):
    """The next token is the sum of all before, so far, modulo 7: the sums are in the cache."""

    dtype, device = torch.float32, torch.device("cpu")

    def __init__(self, *, breaks: bool = False, encodes: bool = False) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.arange(7.0)[:, None].expand(7, WIDTH).clone())
        text = SimpleNamespace(layer_types=["full_attention"])
        self.config = SimpleNamespace(is_encoder_decoder=encodes, get_text_config=lambda decoder: text)
        self.generation_config = SimpleNamespace(num_beams=1)
        self.breaks = breaks
        self.given: dict[str, Any] = {}
        self.cache: Any = None
        self.seen: list[float] = []

    def _get_static_cache_init_shape(self) -> tuple[int, int]:
        return 1, WIDTH

    def forward(self, input_ids: torch.Tensor, past_key_values: Any) -> torch.Tensor:
        layer = past_key_values.layers[0]
        at = torch.arange(input_ids.shape[1]) + layer.length
        layer.keys.index_copy_(1, at, self.table[input_ids])
        layer.length.add_(input_ids.shape[1])
        if self.breaks:
            torch._dynamo.graph_break()
        return layer.keys.sum((0, 1))

    def generate(self, ids: torch.Tensor, *, steps: int, watch: Any = None, **given: Any) -> Any:
        self.given, self.cache = given, given.get("past_key_values") or Cache(given.get("max_cache_len", ROOM))
        new = ids
        for _ in range(steps):
            found = self(input_ids=new, past_key_values=self.cache)
            new = (found[:1].round().long() % 7)[None]
            ids = torch.cat([ids, new], 1)
            if watch is not None:
                watch(self.cache)
        return {"ids": ids} if given.get("as_dict") else ids


PROMPT = torch.tensor([[1, 2]])
TOKENS = [1, 2, 3, 6, 5]  # 1 + 2, 1 + 2 + 3, 1 + 2 + 3 + 6 = 12


@pytest.fixture(autouse=True)
def fresh() -> Generator[None]:
    torch.compiler.reset()
    with torch.no_grad():
        yield


def made(model: Any, generation: Generation | None = None) -> Any:
    return spyre_mlir.compile(model.eval(), generation=generation or Generation(max_length=ROOM), numerics="exact")


def test_prefill_and_decode_are_two_programs_with_one_copy_of_the_weights() -> None:
    model = Sums()
    fast = made(model)
    for _ in range(2):
        assert fast.generate(PROMPT, steps=3).tolist() == [TOKENS]
    assert (len(fast.prefill), len(fast.decode), len(fast.programs)) == (1, 1, 2)
    assert "2x4xf32" in fast.prefill[0].mlir("aten")
    assert CARD.of(model.table).transfers == 1
    assert model.given["cache_implementation"] == "static"
    assert model.given["max_cache_len"] == ROOM
    assert str(fast) == "<Sums that generates, static cache: 1 programs for prompts, 1 for a token>"
    assert "&lt;Sums that generates" in fast._repr_html_()


@pytest.mark.usefixtures("only_new_garbage")
def test_the_cache_is_on_the_card_alone_while_it_grows() -> None:
    model, states = Sums(), list[tuple[bool, float, int]]()

    def watch(cache: Any) -> None:
        keys = cache.layers[0].keys
        states.append((CARD.is_held(keys), float(keys.sum()), CARD.of(keys).transfers))

    made(model).generate(PROMPT, steps=3, watch=watch)
    assert states == [(True, 0.0, 1)] * 3, "sent once as zeros, and never brought back"
    held = CARD.card_bytes
    model.cache = None
    gc.collect()
    assert CARD.card_bytes < held


@pytest.mark.parametrize("how", ["dictionary", "own cache", "asked for"])
def test_a_cache_that_somebody_may_read_is_brought_back(how: str) -> None:
    model, cache = Sums(), Cache(ROOM)
    fast = made(model)
    if how == "dictionary":
        fast.generate(PROMPT, steps=3, as_dict=True)
    elif how == "own cache":
        cache.early_initialization(1, 1, WIDTH, model.dtype, model.device)
        fast.generate(PROMPT, steps=3, past_key_values=cache)
        assert model.given.get("cache_implementation") is None
    else:
        fast.generate(PROMPT, steps=3, watch=lambda _: fast.to_host())
    assert model.cache.layers[0].keys[0, :, 0].tolist() == [1, 2, 3, 6, 0, 0]
    assert not CARD.is_held(model.cache.layers[0].keys)


def test_a_model_in_parts_keeps_its_cache_on_both_sides() -> None:
    model, states = Sums(breaks=True), list[float]()
    fast = made(model)
    found = fast.generate(PROMPT, steps=3, watch=lambda cache: states.append(float(cache.layers[0].keys.sum())))
    assert found.tolist() == [TOKENS]
    assert states == [12, 24, 48]


def test_the_model_is_as_it_was_afterwards() -> None:
    model = Sums()
    model.__dict__["_previous_max_cache_length"] = 50
    before = set(vars(model))
    fast = made(model)
    fast.generate(PROMPT, steps=1, watch=lambda _: (_ for _ in ()))
    with pytest.raises(ZeroDivisionError):
        fast.generate(PROMPT, steps=1, watch=lambda _: 1 / 0)
    assert set(vars(model)) == before
    assert vars(model)["_previous_max_cache_length"] == 50
    assert "forward" not in vars(model)


def test_a_growing_cache_is_transformers_default() -> None:
    model = Sums()
    made(model, Generation(cache="growing")).generate(PROMPT, steps=0)
    assert model.given == {"disable_compile": True}


@pytest.mark.parametrize("cache", ["static", "growing"])
def test_models_of_one_class_are_compiled_however_many_there_are(cache: Any) -> None:
    """Dynamo has a limit for a function of Python, and leaves it to eager then, or says that it found nothing."""
    with cast(Any, torch._dynamo.config).patch(recompile_limit=1):
        for _ in range(2):
            fast = made(Sums(), Generation(cache=cache))
            assert fast.generate(PROMPT, steps=3).tolist() == [TOKENS]
            assert fast.programs


def test_refusals() -> None:
    model = Sums()
    with pytest.raises(InputError, match="Linear has no generate"):
        made(nn.Linear(2, 2))
    with pytest.raises(UnsupportedError, match="generation by Sums, which has an encoder"):
        made(Sums(encodes=True))
    with pytest.raises(InputError, match="the attention of Sums has no window"):
        made(model, Generation(cache="sliding"))
    with pytest.raises(InputError, match="compile has no option numeric"):
        spyre_mlir.compile(model, generation=Generation(), numeric="exact")  # pyright: ignore
    with pytest.raises(InputError, match="takes no example inputs"):
        spyre_mlir.compile(model, (PROMPT,), generation=Generation())
    fast = made(model)
    with pytest.raises(InputError, match="'dynamic', but the model was compiled for a static cache"):
        fast.generate(PROMPT, steps=1, cache_implementation="dynamic")
    with pytest.raises(UnsupportedError, match="search with 2 beams over a static cache"):
        fast.generate(PROMPT, steps=1, num_beams=2)
    with pytest.raises(UnsupportedError, match="search with 3 beams"):
        fast.generate(PROMPT, steps=1, generation_config=SimpleNamespace(num_beams=3))
    with pytest.raises(InputError, match="the cache would hold 9 tokens, and the model was compiled for 6"):
        fast.generate(PROMPT, steps=1, past_key_values=Cache(9))
    assert fast.programs == ()


def test_assistants_that_no_cache_allows_are_refused() -> None:
    fast, growing = made(Sums()), made(Sums(), Generation(cache="growing"))
    for given in ({"assistant_model": Sums()}, {"prompt_lookup_num_tokens": 2}):
        with pytest.raises(UnsupportedError, match=rf"with {next(iter(given))} over a static cache(.|\n)*growing"):
            fast.generate(PROMPT, steps=1, **given)
        growing.generate(PROMPT, steps=1, **given)
    with pytest.raises(InputError, match="the assistant is a compiled model"):
        growing.generate(PROMPT, steps=1, assistant_model=fast)


def test_a_growing_cache_asks_for_no_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: Any) -> Any:
        raise AttributeError("num_attention_heads")  # as of models without attention

    monkeypatch.setattr(Sums, "_get_static_cache_init_shape", absent)
    cache = Cache(ROOM)
    cache.layers[0].keys, cache.layers[0].max_cache_len = torch.zeros(1, ROOM, WIDTH), cast(Any, None)
    fast = made(Sums(), Generation(cache="growing"))
    assert fast.generate(PROMPT, steps=3, past_key_values=cache).tolist() == [TOKENS]


def test_a_window_is_found_in_the_configuration() -> None:
    for text, has in (
        (SimpleNamespace(layer_types=["full_attention", "sliding_attention"]), True),
        (SimpleNamespace(sliding_window=8), True),
        (SimpleNamespace(sliding_window=None), False),
    ):
        model = Sums()
        model.config.get_text_config = lambda decoder, text=text: text
        if has:
            made(model, Generation(cache="sliding"))
        else:
            with pytest.raises(InputError, match="no window"):
                made(model, Generation(cache="sliding"))

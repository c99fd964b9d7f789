"""Caches of transformers among arguments and results; tests have classes of their own, which torch does not know."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM, StaticCache

import spyre_mlir
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.capture.tracing import package_classes
from spyre_mlir.frontend.capture.tracing.given_containers import GivenCacheWarning

X = torch.arange(24.0).reshape(1, 2, 3, 4)


class GrownCache(DynamicCache):
    """Is a result alone."""


class GivenCache(DynamicCache):
    """Is an argument, and a result."""


class UnsaidCache(DynamicCache):
    """Is a result that stays unknown."""


def caching(kind: type[DynamicCache]) -> nn.Module:
    """A layer that puts keys and values into a cache, and makes one if it is given none."""

    class Layer(nn.Module):
        def forward(self, x: Tensor, past: Any = None) -> dict[str, Any]:
            cache = kind() if past is None else past
            keys, values = cache.update(x, x * 2, 0)
            return {"sum": keys.sum(2) + values.sum(2), "cache": cache}

    return Layer()


def test_a_result_has_what_the_model_has_put_into_it() -> None:
    compiled = spyre_mlir.compile(caching(GrownCache), (X,), numerics="exact")
    result = compiled(X + 1)
    assert isinstance(result["cache"], GrownCache)
    assert torch.equal(result["cache"].layers[0].values, (X + 1) * 2)
    assert result["cache"].get_seq_length() == 3
    assert torch.equal(result["sum"], 3 * (X + 1).sum(2))


def test_a_given_one_stays_as_it_is_and_the_result_has_the_new_tensors() -> None:
    def given() -> GivenCache:
        cache = GivenCache()
        cache.update(X, X * 2, 0)
        return cache

    model = caching(GivenCache)
    with pytest.warns(GivenCacheWarning, match="tensors into past, a GivenCache among its inputs"):
        compiled = spyre_mlir.compile(model, (X,), {"past": given()}, numerics="exact")
    cache = given()
    result = compiled(X + 1, past=cache)
    assert torch.equal(result["sum"], model(X + 1, past=given())["sum"])
    assert (cache.get_seq_length(), result["cache"].get_seq_length()) == (3, 6)


def test_calls_write_to_a_cache_of_one_size() -> None:
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, vocab_size=50
    )
    model = LlamaForCausalLM(config).eval()
    token = torch.tensor([[7]])

    def prefilled() -> StaticCache:
        cache = StaticCache(config=config, max_cache_len=16)
        with torch.no_grad():
            model(torch.arange(5)[None], past_key_values=cache)
        return cache

    with warnings.catch_warnings():
        warnings.simplefilter("error", GivenCacheWarning)
        compiled = spyre_mlir.compile(model, (token,), {"past_key_values": prefilled()}, numerics="exact")
    own, eagers = prefilled(), prefilled()
    for _ in range(2):
        with torch.no_grad():
            expected = model(token, past_key_values=eagers)
        torch.testing.assert_close(compiled(token, past_key_values=own).logits, expected.logits, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(own.layers[0].keys, eagers.layers[0].keys, rtol=1e-4, atol=1e-5)
    assert own.get_seq_length() == 7


def test_a_class_without_a_path_is_refused_by_name() -> None:
    class LocalCache(DynamicCache):
        pass

    with pytest.raises(UnsupportedError, match=r"LocalCache at result\['cache'\]"):
        spyre_mlir.compile(caching(LocalCache), (X,))


def test_older_versions_say_it_of_no_class_of_a_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_classes, "_ANY_CACHE", ("transformers.exporters.nothing", "register"))
    with pytest.raises(UnsupportedError, match=r"UnsaidCache at result\['cache'\]") as refused:
        spyre_mlir.compile(caching(UnsaidCache), (X,))
    assert str(refused.value.hint).startswith("give use_cache=False; or")

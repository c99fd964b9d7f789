"""ibm-fms: one token of generation by every decoder that it has, behind a static cache and behind a paged one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch import nn

from tests.clients.catalogue import fms
from tests.clients.catalogue.entry import Entry
from tests.models.entry import Built, token_ids

SENTENCES, PAGES, PAGE = 2, 4, 64
DECODERS = (
    fms.llama,
    fms.granite,
    fms.granite_moe_hybrid,
    fms.granite_swa,
    fms.mistral,
    fms.ministral3,
    fms.mixtral,
    fms.gpt_oss,
    fms.qwen3,
    fms.gpt_bigcode,
)


class Step(nn.Module):
    """One token behind a cache, as `fms.utils.generation` calls a model.

    Args:
        model: a decoder.
        units: what its cache has for a layer that is no attention, and None for one that is.
    """

    def __init__(self, model: nn.Module, units: list[Any]) -> None:
        super().__init__()
        self.model, self.units = model, units

    def forward(self, token: torch.Tensor, position: torch.Tensor, *cache: torch.Tensor) -> Any:
        pairs = zip(cache[::2], cache[1::2], strict=True)
        layers = [pair if unit is None else _states(unit, *pair) for unit, pair in zip(self.units, pairs, strict=True)]
        logits, after = self.model(token, position_ids=position, past_key_value_states=layers, use_cache=True)
        return logits, [layer if isinstance(layer, tuple) else (layer.conv_state, layer.ssm_state) for layer in after]


class PagedStep(nn.Module):
    """One token behind pages, as `aiu_fms_testing_utils.utils.paged` calls a model."""

    def __init__(self, model: nn.Module, attention: str) -> None:
        super().__init__()
        self.model, self.attention = model, attention

    def forward(
        self,
        token: torch.Tensor,
        position: torch.Tensor,
        slots: torch.Tensor,
        pages: torch.Tensor,
        lengths: torch.Tensor,
        *cache: torch.Tensor,
    ) -> Any:
        layers = list(zip(cache[::2], cache[1::2], strict=True))
        paged = {"slot_mapping": slots, "block_table": pages, "current_tkv_mask": lengths}
        paged |= {"left_padded_prompt_mask": torch.zeros_like(lengths), "attn_name": self.attention}
        return self.model(token, position_ids=position, past_key_value_states=layers, use_cache=True, **paged)


def _states(unit: Any, convolution: torch.Tensor, states: torch.Tensor) -> Any:
    """A unit of the cache of a layer that scans, behind a prompt; the layer writes into it."""
    made = copy.copy(unit)
    made.conv_state, made.ssm_state, made.has_previous_state = convolution.clone(), states.clone(), True
    return made


def _prompt(maker: Callable[[], Built]) -> tuple[nn.Module, list[Any]]:
    """A decoder, and its cache behind a prompt, of which sizes alone are wanted."""
    model, inputs = maker()
    with torch.no_grad():
        return model, model.eval()(*inputs, use_cache=True)[1]


def static(maker: Callable[[], Built]) -> Built:
    model, cache = _prompt(maker)
    units = [None if isinstance(layer, tuple | list) else layer for layer in cache]
    pairs = [(layer.conv_state, layer.ssm_state) if unit else layer for unit, layer in zip(units, cache, strict=True)]
    states = [torch.randn(tensor.shape) for pair in pairs for tensor in pair]
    position = torch.full((SENTENCES, 1), fms.TOKENS)
    return Step(model, units), (token_ids(tokens=1), position, *states)


def paged(maker: Callable[[], Built]) -> Built:
    import_module("fms.utils.spyre.paged")  # registers its attention

    model, cache = _prompt(maker)
    attention = "spyre_paged_attn" + ("_with_sinks" if maker is fms.gpt_oss else "")
    states = [torch.randn(PAGES, PAGE, keys.shape[1], keys.shape[3]) for keys, _ in cache for _ in range(2)]
    pages = torch.tensor([[3], [1]])
    slots, lengths = pages * PAGE + fms.TOKENS, torch.full((SENTENCES,), fms.TOKENS + 1)
    position = torch.full((SENTENCES, 1), fms.TOKENS)
    return PagedStep(model, attention), (token_ids(tokens=1), position, slots, pages, lengths, *states)


def _named(suffix: str, step: Callable[[Callable[[], Built]], Built], *makers: Callable[[], Built]) -> dict[str, Entry]:
    made = [Entry("fms", f"{maker.__name__}_{suffix}", partial(step, maker)) for maker in makers]
    return {entry.name: entry for entry in made}


FMS_STEPS = _named("decode", static, *DECODERS, fms.bamba) | _named("paged", paged, *DECODERS)

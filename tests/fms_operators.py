"""Operators of ibm-fms, or where it is missing operators of the same names and meanings, by loops."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor


def stored(key: Tensor, value: Tensor, key_cache: Tensor, value_cache: Tensor, slots: Tensor) -> tuple[Tensor, Tensor]:
    """Both caches, with one token after the other at its slot."""
    caches = key_cache.clone(), value_cache.clone()
    for cache, tokens in zip(caches, (key, value), strict=True):
        rows = cache.view(-1, *cache.shape[2:])
        for slot, token in zip(slots.flatten().tolist(), tokens.flatten(0, 1), strict=True):
            rows[slot] = token
    return caches


def attended(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    scale: float,
    ends: Tensor,
    starts: Tensor,
    table: Tensor,
    sinks: Tensor | None = None,
    window: int = 0,
) -> Tensor:
    """Attention of one query of one head after the other to the places that it sees."""
    result = torch.zeros_like(query)
    size, shared = key_cache.shape[1], query.shape[2] // key_cache.shape[2]
    for s in range(query.shape[0]):
        for q in range(query.shape[1]):
            last = int(ends[s]) - query.shape[1] + q
            first = max(int(starts[s]), last - window + 1) if window else int(starts[s])
            places = [(int(table[s, p // size]), p % size) for p in range(first, last + 1)]
            if not places:
                continue
            pages, inside = (torch.tensor(x) for x in zip(*places, strict=True))
            for h in range(query.shape[2]):
                keys, values = (c[pages, inside, h // shared] for c in (key_cache, value_cache))
                scores = keys @ query[s, q, h] * scale
                beside = torch.empty(0) if sinks is None else sinks[h].view(1)
                weights = torch.softmax(torch.cat([scores, beside.to(scores)]), 0)[: len(places)]
                result[s, q, h] = weights @ values
    return result


def multiplied(rows: Tensor, matrices: Tensor, experts: Tensor, *_: Any) -> Tensor:
    """Each row, that of a token or of a token and an expert, with the matrix of one expert after the other."""
    each = experts.numel() // rows.shape[0]
    made = [matrices[e] @ rows[n // each] for n, e in enumerate(experts.flatten().tolist())]
    return torch.stack(made).view(*experts.shape, -1)


_PAGED = "Tensor query, Tensor key_cache, Tensor value_cache, float scale, Tensor current_tkv_mask, "
_PAGED += "Tensor left_padded_prompt_mask, Tensor block_table"
_BLOCKS = "Tensor padded_token_ids_per_block, Tensor expert_block_mapping, Tensor total_padded_tokens"
_OPERATORS: dict[str, tuple[Any, Any]] = {
    "spyre::paged_attn_store(Tensor key, Tensor value, Tensor key_cache, Tensor value_cache, Tensor slot_mapping) "
    "-> (Tensor, Tensor)": (stored, lambda _k, _v, keys, values, _s: (keys.clone(), values.clone())),
    f"spyre::paged_attn_compute({_PAGED}) -> Tensor": (attended, lambda q, *_: torch.zeros_like(q)),
    f"spyre::paged_attn_compute_with_sinks({_PAGED}, Tensor sinks, int sliding_window) -> Tensor": (
        attended,
        lambda q, *_: torch.zeros_like(q),
    ),
    f"moe::moe_mm(Tensor input, Tensor moe_matrix, Tensor token_expert_mapping, {_BLOCKS}, int topk, int padding_size) "
    "-> Tensor": (multiplied, lambda x, w, e, *_: x.new_empty(*e.shape, w.shape[1])),
}


def _defined() -> object:
    if find_spec("fms"):
        return import_module("fms.utils.spyre.paged"), import_module("fms.triton.pytorch_ops")
    libraries = {namespace: torch.library.Library(namespace, "FRAGMENT") for namespace in ("spyre", "moe")}
    for signature, (meaning, fake) in _OPERATORS.items():
        namespace, _, rest = signature.partition("::")
        library, name = libraries[namespace], rest.partition("(")[0]
        library.define(rest)
        library.impl(name, meaning, "CPU")
        torch.library.register_fake(f"{namespace}::{name}", fake, lib=library)
    return libraries


LIBRARIES = _defined()

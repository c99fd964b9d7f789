"""Granite-3.3-8B on several cards: what each holds, how long a forward takes, and what goes over the links.

Weights are half precision on the meta device. Heads, the inner dimension of the MLP and the cache are divided among
the ranks, and each of the 40 layers ends its two halves in an `all_reduce`; embeddings and norms are whole on every
card. Prefill takes 512 tokens, decode one token and a cache of 2048 positions, which is written in place; both give
the logits of the last token. Times are predictions:
`python benchmarks/cards.py [--cards 1,2,4] [--layers 40] [--step decode] [--json tools/data/cards.json]`; the file is
what `docs/reference/scaling.md` is made from.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch import Tensor, nn
from workload_models import GRANITE, Layer

import spyre_mlir

VOCABULARY, POSITIONS, PROMPT = 49155, 2048, 512
EMBEDDING, LOGITS = 12.0, 16.0


class Summed(nn.Module):
    """A product with some rows of a weight, summed over the ranks, if there are several."""

    def __init__(self, own: int, width: int) -> None:
        super().__init__()
        self.own = nn.Linear(own, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Returns the whole sum on every rank."""
        part = self.own(x)
        return part if dist.get_world_size() == 1 else funcol.all_reduce(part, "sum", dist.group.WORLD)


class RankLayer(Layer):
    """What a rank has of a Granite layer."""

    def __init__(self, ranks: int, *, decodes: bool) -> None:
        super().__init__()
        hidden, head = GRANITE["hidden"], GRANITE["head"]
        heads, shared, inner = (GRANITE[name] // ranks for name in ("heads", "shared", "inner"))
        self.q, self.o = nn.Linear(hidden, heads * head, bias=False), Summed(heads * head, hidden)
        self.k, self.v = (nn.Linear(hidden, shared * head, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(hidden, inner, bias=False) for _ in range(2))
        self.down = Summed(inner, hidden)
        if decodes:
            for name in ("keys", "values"):
                self.register_buffer(name, torch.zeros(1, shared, POSITIONS, head))


class Granite(nn.Module):
    """What a rank has of Granite-3.3-8B; with a position and a mask it decodes one token."""

    def __init__(self, layers: int, ranks: int, *, decodes: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, GRANITE["hidden"])
        self.layers = nn.ModuleList(RankLayer(ranks, decodes=decodes) for _ in range(layers))
        self.norm = nn.RMSNorm(GRANITE["hidden"], eps=1e-5)

    def forward(self, tokens: Tensor, cos: Tensor, sin: Tensor, *step: Tensor) -> Tensor:
        """Returns the logits of the last token; `step` is the position to write, and a mask."""
        x = EMBEDDING * self.embedding(tokens)
        for layer in self.layers:
            cache = (layer.keys, layer.values) if step else ()
            x = layer(x, cos, sin, *cache, *step)
        return nn.functional.linear(self.norm(x[:, -1]), self.embedding.weight) / LOGITS


def made(layers: int, *, decodes: bool) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """The part of this rank, and inputs."""
    count = 1 if decodes else PROMPT
    with torch.device("meta"):
        model = Granite(layers, dist.get_world_size(), decodes=decodes).half().eval()
        inputs = (
            torch.zeros(1, count, dtype=torch.long),
            *(torch.zeros(count, GRANITE["head"]).half() for _ in range(2)),
        )
        if decodes:
            inputs += torch.zeros(1, dtype=torch.long), torch.zeros(1, 1, 1, POSITIONS, dtype=torch.bool)
    return model, inputs


def prefill(layers: int) -> Callable[[], Any]:
    """Makes models that read a prompt."""
    return partial(made, layers, decodes=False)


def decode(layers: int) -> Callable[[], Any]:
    """Makes models that generate a token."""
    return partial(made, layers, decodes=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cards", default="1,2,4")
    parser.add_argument("--layers", type=int, default=40)
    parser.add_argument("--step", choices=("prefill", "decode"), action="append", help="one of them; both by default")
    parser.add_argument("--json", type=Path, help="where the numbers go, beside those that are there of another step")
    chosen = parser.parse_args()
    counts = [int(number) for number in chosen.cards.split(",")]
    makers = {"prefill": prefill, "decode": decode}
    for name in chosen.step or makers:
        started = time.process_time()
        with torch.no_grad():
            found = spyre_mlir.cards(makers[name](chosen.layers), counts)
        seconds = time.process_time() - started
        print(f"{name}, {chosen.layers} layers, {seconds:.0f} CPU seconds to compile", flush=True)
        print(f"{found}\n", flush=True)
        if chosen.json is not None:
            known = json.loads(chosen.json.read_text()) if chosen.json.exists() else {}
            made = {"layers": chosen.layers, "compile_seconds": round(seconds), "card_bytes": found.card_bytes}
            known[name] = made | {"counts": [[asdict(card) for card in cards] for cards in found.counts]}
            chosen.json.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()

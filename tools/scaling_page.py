"""Page of a model on several cards, for `reference_pages.py`: from the numbers that `benchmarks/cards.py` wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dialect_pages import EDIT, table

NUMBERS = Path(__file__).resolve().parent / "data" / "cards.json"
INTRO = """Granite-3.3-8B in half precision, from `meta`, on 1, 2 and 4 cards: heads, the inner dimension of the MLP and
the cache are divided, two `all_reduce` a layer join what the ranks have, and embeddings (403 MB, tied to the logits)
and norms are whole on every card. All times are predictions of the calibrated cost model, and nothing is extrapolated:
every number of cards is compiled with all layers. *Link at least* is the time of the collectives' bytes over the link
of a card to its host; the time between processes is not known and in no column, nor is the lookup of embeddings, which
the host does. *Efficiency* is the speed-up, with the link, over the number of cards.

`python benchmarks/cards.py --json tools/data/cards.json` counts anew. See
[several cards](../tools/several-cards.md)."""
STEPS = {
    "prefill": "A prompt of 512 tokens",
    "decode": "A token behind a cache of 2048 positions",
}
HEAD = (
    "cards",
    "bytes per card",
    "fits",
    "kernels, ms",
    "collectives",
    "over the link, MB",
    "link at least, ms",
    "together, ms",
    "speed-up",
    "efficiency",
)


def _row(card: dict[str, Any], count: int, room: int, alone_us: float) -> tuple[object, ...]:
    together = card["kernels_us"] + card["link_us"]
    return (
        count,
        f"{card['device_bytes']:,}",
        "yes" if card["device_bytes"] <= room else "no",
        f"{card['kernels_us'] / 1000:,.1f}",
        card["collectives"],
        f"{card['link_bytes'] / 1e6:,.1f}",
        f"{card['link_us'] / 1000:,.2f}",
        f"{together / 1000:,.1f}",
        f"{alone_us / together:.2f}",
        f"{alone_us / together / count:.0%}",
    )


def scaling_page() -> str:
    """A table per step: a row per number of cards, of the card that takes longest."""
    parts = ["# Scaling over cards", EDIT.format(source="tools/data/cards.json"), INTRO]
    for name, step in json.loads(NUMBERS.read_text(encoding="utf-8")).items():
        slowest = [max(cards, key=lambda c: c["kernels_us"] + c["link_us"]) for cards in step["counts"]]
        alone = slowest[0]["kernels_us"] + slowest[0]["link_us"]
        rows = [
            _row(card, len(cards), step["card_bytes"], alone)
            for card, cards in zip(slowest, step["counts"], strict=True)
        ]
        told = f"{step['layers']} layers; the programs took {step['compile_seconds']} CPU seconds to compile."
        parts += [f"## {STEPS[name]}", told, table(HEAD, rows)]
    return "\n\n".join(parts) + "\n"

"""Memory and time of each card of a model that is divided among several, and the smallest number of cards it fits on.

Decision: docs/decisions/0155-cards-are-counted-by-compiling.md
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, cast

from spyre_mlir.cache.lower import lower_once
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import InputError
from spyre_mlir.hw.cost_parameters import CostParameters, NumberSource, number_of
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.ops.native.collectives import is_collective
from spyre_mlir.options import CompileOptions
from spyre_mlir.pipeline import Lowered
from spyre_mlir.report.plots import short
from spyre_mlir.report.tables import listing
from spyre_mlir.sizes import counted
from spyre_mlir.text.notebook import ShownAsText
from spyre_mlir.text.render import module_text
from spyre_mlir.universe import make_context

Make = Callable[[], Any]
_LINK = "host_link_gb_per_s"


@dataclass(frozen=True)
class CardLoad:
    """Memory and work of one card in a call.

    Attributes:
        rank: of the process that drives it.
        device_bytes: bytes of its memory, weights, inputs, results and what lies between, padding included.
        kernels_us: predicted time of its kernels.
        collectives: how often it exchanges tensors with other cards.
        link_bytes: what goes over its link to the host and back for that.
        link_us: how long that takes at least; the time between processes is not known.
    """

    rank: int
    device_bytes: int
    kernels_us: float
    collectives: int
    link_bytes: int
    link_us: float


@dataclass(frozen=True, repr=False)
class Cards(ShownAsText):
    """A model on one or several numbers of cards; prints itself as a table.

    Attributes:
        counts: the cards of each number of cards, in order.
        card_bytes: bytes of memory that a card has.
    """

    counts: tuple[tuple[CardLoad, ...], ...]
    card_bytes: int

    @property
    def smallest(self) -> int | None:
        """The smallest of these numbers of cards that the model fits on; None if it fits on none."""
        fitting = (len(cards) for cards in self.counts if self._fits(cards))
        return min(fitting, default=None)

    def _fits(self, cards: Sequence[CardLoad]) -> bool:
        return all(card.device_bytes <= self.card_bytes for card in cards)

    def __str__(self) -> str:
        """A row per number of cards and kind of card, and where the numbers of the link come from."""
        rows = [row for cards in self.counts for row in self._rows(cards)]
        columns = ("cards", "ranks", "memory", "fits", "kernels", "collectives", "link", "link at least")
        sides = dict.fromkeys(columns, "right")
        table = listing("", sides, rows, ("link", "link at least", "collectives", "kernels"))  # pyright: ignore[reportArgumentType]
        told = (
            f"it fits on {counted(self.smallest, 'card')} of {short(self.card_bytes)}B"
            if self.smallest is not None
            else f"it fits on none of these numbers of cards of {short(self.card_bytes)}B"
        )
        rate = f"{number_of(_LINK).calibrated:g} GB/s ({_said(number_of(_LINK).origin)})"
        return f"{table}\n{told}\nlink: {rate}; the time between processes is not known"

    def _rows(self, cards: Sequence[CardLoad]) -> list[tuple[str, ...]]:
        kinds: dict[tuple[object, ...], list[int]] = {}
        for card in cards:
            kinds.setdefault((card.device_bytes, card.kernels_us, card.link_bytes, card.link_us), []).append(card.rank)
        rows: list[tuple[str, ...]] = []
        for ranks in kinds.values():
            card = cards[ranks[0]]
            rows.append(
                (
                    str(len(cards)),
                    ", ".join(map(str, ranks)),
                    f"{card.device_bytes:,}",
                    "yes" if card.device_bytes <= self.card_bytes else "no",
                    f"{card.kernels_us:,.1f} us",
                    str(card.collectives),
                    f"{short(card.link_bytes)}B",
                    f"{card.link_us:,.1f} us",
                )
            )
        return rows


def cards(make: Make, counts: Sequence[int] = (1, 2, 4, 8), **choices: Any) -> Cards:
    """Compile a model for every rank of several numbers of cards, and say what each card holds.

    Nothing runs and no weight is read: models on `meta` are fine. Ranks with equal programs are lowered once.

    Args:
        make: gives the part of the model that the rank at hand has, and example inputs. It is called once per rank, in
            a process group of that many ranks, which exchanges nothing.
        counts: how many cards.
        **choices: options, as for `compile`.

    Raises:
        InputError: this process has a process group already, a count is not positive, or `make` gives something else.
        UnsupportedError: the model has operations that cannot be expressed.
    """
    if not counts or any(count < 1 for count in counts):
        raise InputError(f"numbers of cards are positive, got {list(counts)}", hint="cards(make, [1, 2, 4])")
    options = CompileOptions.of(choices)
    known: dict[str, Lowered] = {}
    found = tuple(tuple(_card(make, rank, count, options, known) for rank in range(count)) for count in counts)
    return Cards(found, (options.spec or SPYRE).hbm_card_bytes)


def with_smaller(counts: Sequence[int]) -> list[int]:
    """Return numbers of cards with those that divide one of them, in order: the smallest that fits is among them."""
    return sorted({n for count in counts for n in range(1, count) if count % n == 0} | set(counts))


def origins() -> str:
    """Return the numbers that times are predicted with, a line each, with source and certainty."""
    numbers = ((entry.name, number_of(entry.name)) for entry in fields(CostParameters))
    return "\n".join(f"{name}: {number.calibrated:g} ({_said(number.origin)})" for name, number in numbers)


def _said(origin: NumberSource) -> str:
    return f"{origin.source}; {origin.certainty.name.lower()}"


def _made(found: object) -> tuple[Any, tuple[Any, ...]]:
    pair = cast("tuple[object, ...]", found) if isinstance(found, tuple) else ()
    if len(pair) != 2 or not isinstance(pair[1], tuple):
        kind = type(cast(object, found)).__name__
        raise InputError(
            f"the function gives {kind}, expected a model and a tuple of example inputs",
            hint="return model, (x,)",
        )
    return pair[0], cast("tuple[Any, ...]", pair[1])


def _card(make: Make, rank: int, count: int, options: CompileOptions, known: dict[str, Lowered]) -> CardLoad:
    from spyre_mlir.frontend import import_program, without_exchange

    with without_exchange(rank, count):
        program = import_program(*_made(make()))
    text = module_text(program.module)
    if text not in known:
        known[text] = lower_once(program.module, make_context(options.spec), options)
    timeline = CompiledModel(program, known[text], options).timeline()
    met = [step for step in timeline.host_steps if is_collective(step.op.removeprefix("aten."))]
    moved, us = sum(step.moved_bytes for step in met), sum(step.least_us for step in met)
    return CardLoad(rank, known[text].records[-1].device_bytes, timeline.kernels_us, len(met), moved, us)


__all__ = ["CardLoad", "Cards", "cards", "origins", "with_smaller"]

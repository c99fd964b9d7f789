"""What each card holds of a divided MLP, against its weights counted by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from spyre_mlir.errors import InputError
from spyre_mlir.ranks.cards import CardLoad, Cards, cards, with_smaller
from tests.end_to_end.ranks.programs import INNER, WIDTH, ParallelMlp, whole_mlp
from tests.unit.ranks.compiled import as_rank


def make() -> Any:
    return ParallelMlp(whole_mlp()), (torch.zeros(4, WIDTH),)


def test_a_divided_mlp_on_one_and_two_cards() -> None:
    found = cards(make, [1, 2])
    assert [len(of) for of in found.counts] == [1, 2]
    for count, of in zip((1, 2), found.counts, strict=True):
        weights = 2 * (2 * WIDTH * INNER // count + INNER // count + WIDTH)  # two bytes an element
        for card in of:
            assert weights < card.device_bytes < weights + 4 * 2 * 4 * max(WIDTH, INNER), (
                "weights and a few activations"
            )
            assert card.collectives == 1
            assert card.link_bytes == 2 * 4 * WIDTH * 2, "to the host and back"
            assert card.link_us == pytest.approx(card.link_bytes / 63e3)
    assert found.counts[1][0] == replace(found.counts[1][1], rank=0), "ranks of an MLP are equal"
    assert found.counts[0][0].kernels_us > found.counts[1][0].kernels_us
    text = str(found)
    assert "0, 1" in text
    assert "it fits on 1 card" in text
    assert "63 GB/s (torch-spyre docs, spyre_accelerator.md" in text
    assert "likely" in text


def test_the_smallest_number_of_cards() -> None:
    def card(rank: int, held: int) -> CardLoad:
        return CardLoad(rank, held, 1.0, 0, 0, 0.0)

    found = Cards(((card(0, 900),), (card(0, 450), card(1, 501)), (card(0, 300), card(1, 300), card(2, 300))), 500)
    assert found.smallest == 3
    assert replace(found, card_bytes=501).smallest == 2
    assert replace(found, card_bytes=299).smallest is None
    assert "none of these numbers of cards" in str(replace(found, card_bytes=299))


def test_numbers_that_divide_others_are_smaller_ones() -> None:
    assert with_smaller([4]) == [1, 2, 4]
    assert with_smaller([6, 4]) == [1, 2, 3, 4, 6]
    assert with_smaller([1]) == [1]


def test_mistakes() -> None:
    with pytest.raises(InputError, match=r"numbers of cards are positive, got \[2, 0\]"):
        cards(make, [2, 0])
    with pytest.raises(InputError, match="the function gives Tensor, expected a model and a tuple"):
        cards(lambda: torch.ones(3), [1])
    with as_rank(0), pytest.raises(InputError, match="this process has a process group"):
        cards(make, [1])

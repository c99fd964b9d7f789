"""The order of certainties, and the weakest of several."""

from __future__ import annotations

import pytest

from spyre_mlir.hw.certainty import Tag


def test_every_tag_is_weaker_than_the_next() -> None:
    assert Tag.INFERRED < Tag.LIKELY < Tag.CERTAIN
    assert not Tag.LIKELY < Tag.LIKELY
    assert not Tag.CERTAIN < Tag.INFERRED
    assert Tag.CERTAIN >= Tag.LIKELY
    assert sorted([Tag.CERTAIN, Tag.INFERRED, Tag.LIKELY]) == [Tag.INFERRED, Tag.LIKELY, Tag.CERTAIN]


@pytest.mark.parametrize(
    ("letter", "tag", "word"),
    [("I", Tag.INFERRED, "inferred"), ("L", Tag.LIKELY, "likely"), ("C", Tag.CERTAIN, "certain")],
)
def test_letters_and_words(letter: str, tag: Tag, word: str) -> None:
    assert Tag(letter) is tag
    assert tag.word == word


def test_the_weakest_claim_decides() -> None:
    assert Tag.weakest([Tag.CERTAIN, Tag.INFERRED, Tag.LIKELY]) is Tag.INFERRED
    assert Tag.weakest([Tag.CERTAIN, Tag.LIKELY]) is Tag.LIKELY


def test_no_claim_at_all_is_certain() -> None:
    assert Tag.weakest([]) is Tag.CERTAIN

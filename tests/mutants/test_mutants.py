"""Mutants of a Llama layer: nearly all are noticed without knowing the right output. See `python -m tests.mutants`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.__main__ import share, table
from tests.mutants.base import llama_layer
from tests.mutants.draw import KINDS, draw
from tests.mutants.image import Image
from tests.mutants.judge import EQUIVALENT, MISSED, Judge, Verdict

SAMPLE = 24
AIM, NAMED = 0.9, 0.95
SEED = 1  # not the one that checks were written against
UNAIDED = ("address", "extent", "layout", "lifetime")


@pytest.fixture(scope="module")
def layer(tmp_path_factory: pytest.TempPathFactory) -> Image:
    return llama_layer(tmp_path_factory.mktemp("mutants") / "bundle")


def of_kind(verdicts: list[Verdict], *kinds: str) -> list[Verdict]:
    return [v for v in verdicts if v.mutant.kind in kinds]


def test_a_draft_without_an_edit_is_the_bundle(layer: Image) -> None:
    judge = Judge(layer, naming=False)
    assert judge.unnoticed(layer.module, {})
    assert not judge.unnoticed(draw(layer, 6)[5].draft(layer).bundle()[0], {})


def test_a_sample_is_noticed(layer: Image) -> None:
    """The first mutants of the five hundred; without the static checks fewer are noticed."""
    drawn = draw(layer, SAMPLE)
    assert [sum(m.kind == kind for m in drawn) for kind in KINDS] == [SAMPLE // len(KINDS)] * len(KINDS)
    judge = Judge(layer, naming=False)
    verdicts = [judge.verdict(m) for m in drawn]
    assert share(of_kind(verdicts, *UNAIDED)) >= AIM, table(verdicts)
    assert not any(v.verdict == MISSED for v in verdicts), table(verdicts)
    assert any(v.verdict == EQUIVALENT for v in verdicts)


@pytest.mark.slow(reason="five hundred mutants; a few run by default")
def test_five_hundred_are_noticed(layer: Image) -> None:
    judge = Judge(layer)
    verdicts = [judge.verdict(m) for m in draw(layer, 500, SEED)]
    for kind in UNAIDED:
        assert share(of_kind(verdicts, kind)) >= AIM, table(verdicts)
    assert not any(v.verdict == MISSED for v in verdicts), table(verdicts)
    named = [v.named for v in verdicts if v.named is not None]
    assert sum(named) >= NAMED * len(named), table(verdicts)


@pytest.mark.slow(reason="a hundred and twenty mutants; a few run by default")
@pytest.mark.parametrize(("static", "names"), [(False, True), (True, False)])
def test_less_is_noticed_with_a_check_off(layer: Image, static: bool, names: bool, tmp_path: Path) -> None:
    drawn = draw(layer, 120)
    image = layer if names else llama_layer(tmp_path / "bundle", names=False)
    all_on, fewer = Judge(layer, naming=False), Judge(image, static=static, naming=False)
    before, after = ([judge.verdict(m) for m in drawn] for judge in (all_on, fewer))
    assert share(after) < share(before)

"""Losses against their formulas in numpy: targets left out, weights, and every reduction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spyre_mlir.ops.composed.nn.losses import IGNORED, MEAN, SUM
from tests.unit.ops.cases import Array, agree, budgets, check_samples, result, results

MODULE = "spyre_mlir.ops.composed.nn.losses"

RNG = np.random.default_rng(8)
NONE = 0
ROWS, PIXELS = RNG.normal(size=(4, 5)), RNG.normal(size=(2, 3, 2, 4))
WEIGHT = {5: np.array([0.5, 2.0, 1.5, 3.0, 0.25]), 3: np.array([0.5, 2.0, 0.0])}
TARGETS = {2: np.array([4, 1, 1, 0]), 4: RNG.integers(0, 3, (2, 2, 4)), 1: np.array(3)}
REDUCTIONS = [NONE, MEAN, SUM]


def likely(x: Array) -> Array:
    """The logarithm of a softmax over the classes."""
    at = min(1, x.ndim - 1)
    return x - np.log(np.exp(x).sum(at, keepdims=True))


def weighed(x: Array, target: Array, weight: Array | None, ignored: int) -> tuple[Array, Array]:
    """The loss and the weight of every element."""
    at = min(1, x.ndim - 1)
    kept = target != ignored
    place = np.expand_dims(np.where(kept, target, 0), at)
    counted = kept * (1.0 if weight is None else weight[np.where(kept, target, 0)])
    return -np.take_along_axis(x, place, at).squeeze(at) * counted, counted


def negative_likelihood(x: Array, target: Array, weight: Array | None, reduction: int, ignored: int) -> Array:
    losses, counted = weighed(x, target, weight, ignored)
    if reduction == NONE:
        return losses
    return losses.sum() / (counted.sum() if reduction == MEAN else 1.0)


def reduced(losses: Array, reduction: int) -> Any:
    return {NONE: losses, MEAN: losses.mean(), SUM: losses.sum()}[reduction]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("ignored", [IGNORED, 1, 0, 9])
@pytest.mark.parametrize("with_weight", [False, True])
@pytest.mark.parametrize("x", [ROWS, PIXELS, ROWS[0]])
def test_likelihood_of_classes(x: Array, with_weight: bool, ignored: int, reduction: int) -> None:
    target = TARGETS[x.ndim]
    weight = WEIGHT[x.shape[min(1, x.ndim - 1)]] if with_weight else None
    facts = {"reduction": reduction, "ignore_index": ignored}
    wanted = negative_likelihood(x, target, weight, reduction, ignored)
    agree(result("nll_loss_nd", x, target, weight, **facts), wanted)
    loss, total = results("nll_loss_forward", x, target, weight, **facts)
    agree(loss, wanted)
    agree(total, 0.0 if reduction == NONE else weighed(x, target, weight, ignored)[1].sum())
    wanted = negative_likelihood(likely(x), target, weight, reduction, ignored)
    agree(result("cross_entropy_loss", x, target, weight, **facts), wanted)


def test_targets_that_are_left_out_may_lie_outside() -> None:
    target = np.array([4, IGNORED, 1, IGNORED])
    wanted = negative_likelihood(ROWS, target, None, MEAN, IGNORED)
    agree(result("nll_loss", ROWS, target), wanted)
    agree(result("cross_entropy_loss", ROWS, target), negative_likelihood(likely(ROWS), target, None, MEAN, IGNORED))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("ignored", [IGNORED, 1])
@pytest.mark.parametrize("with_weight", [False, True])
@pytest.mark.parametrize("x", [ROWS, PIXELS])
def test_smoothed_targets(x: Array, with_weight: bool, ignored: int, reduction: int) -> None:
    target, at = TARGETS[x.ndim], 1
    weight = WEIGHT[x.shape[at]] if with_weight else None
    exact, counted = weighed(likely(x), target, weight, ignored)
    spread = np.ones(x.shape[at]) if weight is None else weight
    even = -np.tensordot(likely(x), spread, (at, 0)) * (target != ignored)
    losses = 0.7 * exact + 0.3 / x.shape[at] * even
    wanted = {NONE: losses, MEAN: losses.sum() / counted.sum(), SUM: losses.sum()}[reduction]
    facts = {"reduction": reduction, "ignore_index": ignored, "label_smoothing": 0.3}
    agree(result("cross_entropy_loss", x, target, weight, **facts), wanted)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.25])
@pytest.mark.parametrize("with_weight", [False, True])
def test_distributions_over_classes(with_weight: bool, smoothing: float, reduction: int) -> None:
    target = RNG.uniform(size=(4, 5))
    weight = WEIGHT[5] if with_weight else np.ones(5)
    losses = -(likely(ROWS) * ((1 - smoothing) * target + smoothing / 5) * weight).sum(1)
    given = (ROWS, target, weight) if with_weight else (ROWS, target)
    got = result("cross_entropy_loss", *given, reduction=reduction, label_smoothing=smoothing)
    agree(got, reduced(losses, reduction))


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_soft_margins(reduction: int) -> None:
    target = np.sign(RNG.normal(size=ROWS.shape))
    wanted = reduced(np.log1p(np.exp(-target * ROWS)), reduction)
    agree(result("soft_margin_loss", ROWS, target, reduction=reduction), wanted)
    if reduction == MEAN:
        agree(result("soft_margin_loss", ROWS, target), wanted)


def test_soft_margins_do_not_overflow() -> None:
    agree(result("soft_margin_loss", np.array([-900.0, 900.0]), np.array([1.0, 1.0]), reduction=NONE), [900.0, 0.0])


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("margin", [0.0, 0.4])
def test_cosines(margin: float, reduction: int) -> None:
    x, y = np.abs(RNG.normal(size=(2, 4, 5)))
    y[3] *= -1
    target = np.array([1, -1, -1, -1])
    cosine = (x * y).sum(1) / np.sqrt((x * x).sum(1) * (y * y).sum(1))
    losses = np.where(target == 1, 1 - cosine, np.maximum(cosine - margin, 0))
    given = x, y, target.astype(np.float64)
    agree(
        result("cosine_embedding_loss", *given, margin=margin, reduction=reduction),
        reduced(losses, reduction),
        rtol=1e-8,
    )
    if not margin and reduction == MEAN:
        agree(result("cosine_embedding_loss", *given), losses.mean(), rtol=1e-8)


def test_rows_of_zeros_have_the_cosine_0() -> None:
    zero, target = np.zeros((2, 3)), np.array([1.0, -1.0])
    agree(result("cosine_embedding_loss", zero, zero + 1, target, reduction=NONE), [1.0, 0.0])


def labelled(x: Array, target: Array) -> tuple[Array, Array]:
    """Per row what its labels lack to be 1 above every other class; and which classes are labels."""
    losses, named = np.zeros(len(x)), np.zeros(x.shape)
    for n, (row, labels) in enumerate(zip(x, target, strict=True)):
        end = np.flatnonzero(labels < 0)
        kept = labels[: end[0]] if end.size else labels
        named[n, kept] = 1
        others = [c for c in range(len(row)) if not named[n, c]]
        losses[n] = sum(max(0, 1 - row[k] + row[c]) for k in kept for c in others) / len(row)
    return losses, named


LABELS = np.array([[3, 0, -1, 1, 2], [-1, 2, 2, 2, 2], [4, 3, 2, 1, 0], [2, -7, 0, -1, 3]])


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_margins_of_several_labels(reduction: int) -> None:
    losses, named = labelled(ROWS, LABELS)
    agree(result("multilabel_margin_loss", ROWS, LABELS, reduction=reduction), reduced(losses, reduction))
    loss, truth = results("multilabel_margin_loss_forward", ROWS, LABELS, reduction=reduction)
    agree(loss, reduced(losses, reduction))
    agree(truth, named)


def test_margins_of_one_row() -> None:
    losses, named = labelled(ROWS[:1], LABELS[:1])
    agree(result("multilabel_margin_loss", ROWS[0], LABELS[0]), losses[0])
    agree(results("multilabel_margin_loss_forward", ROWS[0], LABELS[0], reduction=NONE)[1], named[0])
    agree(result("multilabel_margin_loss", np.array(0.5), np.array(0)), 0.0)


def test_torch_numbers_the_reductions_and_the_class_left_out() -> None:
    assert (MEAN, SUM, IGNORED) == (1, 2, -100)


def test_errors_that_are_allowed() -> None:
    classes = ("nll_loss", "nll_loss_forward", "cross_entropy_loss", "multilabel_margin_loss")
    wanted = dict.fromkeys((*classes, "multilabel_margin_loss_forward"), (16, False))
    wanted |= dict.fromkeys(("soft_margin_loss", "cosine_embedding_loss"), (16, True))
    assert budgets(MODULE) == wanted


def test_samples_fit() -> None:
    check_samples(MODULE)

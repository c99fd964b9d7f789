"""Losses that torch has no decomposition for, or none that keeps to the range of DL16.

All others arrive as differences, logarithms and means.
"""

from __future__ import annotations

from typing import Any

from spyre_mlir.ops.annotations import Lanes, Number
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.composed.nn.normalization import floored
from spyre_mlir.ops.composed.reductions.sums import mean_over
from spyre_mlir.ops.helpers.approximations import log_of_one_plus_exp
from spyre_mlir.ops.helpers.reduction_dims import positions
from spyre_mlir.ops.helpers.slicing import along
from spyre_mlir.ops.table import Sample

MEAN, SUM = 1, 2  # what ATen's `reduction` says; 0 keeps the elements
_EPSILON = 1e-12  # what torch adds to squares of sizes
IGNORED = -100  # the class that torch leaves out unless told otherwise


def _classes(b: Build, value: Any) -> int:
    """The dimension of the classes: the second, or the only one."""
    return min(1, len(b.shape(value)) - 1)


def _hits(b: Build, value: Any, target: Any, ignored: int) -> Any:
    """Where the class of each element is the target, unless that class is to be left out."""
    at, shape = _classes(b, value), b.shape(value)
    number = positions(b, shape, at)
    if 0 <= ignored < shape[at]:
        # No target has a number below 0: the ignored class finds none.
        number = b.call("where.self", b.call("eq.Scalar", number, ignored), b.full((), -1, "i64"), number)
    return b.call("eq.Tensor", b.call("unsqueeze", b.cast(target, "i64"), dim=at), number)


def _picked(b: Build, hits: Any, value: Any, at: int) -> Any:
    """The element that each target names; 0 where it names none."""
    return b.call("sum.dim_IntList", b.call("where.self", hits, value, 0.0), dim=(at,))


def _weights(b: Build, hits: Any, like: Any, weight: Any) -> Any:
    """What each element counts: the weight of its class, or 1; 0 if its class is left out."""
    at, rank = _classes(b, like), len(b.shape(like))
    if weight is None:
        counted = b.cast(hits, like=like)
        return b.call("sum.dim_IntList", counted, dim=(at,))
    return _picked(b, hits, along(b, weight, rank, at), at)


def _negative_likelihood(
    b: Build, self: Any, target: Any, weight: Any, reduction: int, ignored: int
) -> tuple[Any, Any]:
    """The loss of log-probabilities, and the weight of all elements together."""
    hits = _hits(b, self, target, ignored)
    at = _classes(b, self)
    weights = _weights(b, hits, self, weight)
    losses = b.call("neg", _picked(b, hits, self, at))
    losses = losses if weight is None else b.call("mul.Tensor", losses, weights)
    if reduction not in (MEAN, SUM):
        return losses, b.full((), 0.0, b.element(self))
    total, loss = b.call("sum.dim_IntList", weights), b.call("sum.dim_IntList", losses)
    return (b.call("div.Tensor", loss, total) if reduction == MEAN else loss), total


@ATEN.composed(aten=["nll_loss_nd", "nll_loss", "nll_loss2d"])
def nll_loss(
    b: Build,
    self: Lanes,
    target: Lanes,
    weight: Lanes | None = None,
    *,
    reduction: int = MEAN,
    ignore_index: int = IGNORED,
) -> Any:
    """The negative of the log-probability of each target; `reduction` is 0 for none, 1 for the mean, 2 for the sum."""
    return _negative_likelihood(b, self, target, weight, reduction, ignore_index)[0]


@ATEN.composed(aten=["nll_loss_forward", "nll_loss2d_forward"])
def nll_loss_forward(
    b: Build, self: Lanes, target: Lanes, weight: Lanes | None = None, *, reduction: int, ignore_index: int
) -> Any:
    """The loss of `nll_loss`, and the weight of all elements together."""
    return _negative_likelihood(b, self, target, weight, reduction, ignore_index)


@ATEN.composed(aten=["cross_entropy_loss"])
def cross_entropy_loss(
    b: Build,
    self: Lanes,
    target: Lanes,
    weight: Lanes | None = None,
    *,
    reduction: int = MEAN,
    ignore_index: int = IGNORED,
    label_smoothing: Number = 0.0,
) -> Any:
    """The negative log-probability, after a softmax, of classes, or of a distribution over them.

    `label_smoothing` is the part of the target that is spread over all classes.
    """
    at = _classes(b, self)
    likely = b.call("log_softmax.int", self, dim=at)
    if b.shape(target) == b.shape(self) and b.element(target) == b.element(self):
        return _of_distribution(b, likely, target, weight, reduction, float(label_smoothing))
    if label_smoothing == 0:
        return _negative_likelihood(b, likely, target, weight, reduction, ignore_index)[0]
    return _smoothed(b, likely, target, weight, reduction, ignore_index, float(label_smoothing))


def _weighted(b: Build, value: Any, weight: Any, at: int) -> Any:
    if weight is None:
        return value
    return b.call("mul.Tensor", value, along(b, weight, len(b.shape(value)), at))


def _of_distribution(b: Build, likely: Any, target: Any, weight: Any, reduction: int, smoothing: float) -> Any:
    at, shape = _classes(b, likely), b.shape(likely)
    if smoothing:
        target = b.call("mul.Tensor", target, 1.0 - smoothing)
        target = b.call("add.Tensor", target, smoothing / shape[at])
    terms = _weighted(b, b.call("mul.Tensor", likely, target), weight, at)
    return _reduced(b, b.call("neg", b.call("sum.dim_IntList", terms, dim=(at,))), reduction)


def _smoothed(b: Build, likely: Any, target: Any, weight: Any, reduction: int, ignored: int, smoothing: float) -> Any:
    at, shape = _classes(b, likely), b.shape(likely)
    hits = _hits(b, likely, target, ignored)
    weights = _weights(b, hits, likely, weight)
    exact = b.call("neg", _picked(b, hits, likely, at))
    exact = exact if weight is None else b.call("mul.Tensor", exact, weights)
    even = b.call("neg", b.call("sum.dim_IntList", _weighted(b, likely, weight, at), dim=(at,)))
    # A target that is left out has no even part either, though its weight may be 0 for another reason.
    left_out = b.call("eq.Scalar", b.cast(target, "i64"), ignored)
    even = b.call("where.self", left_out, 0.0, even)
    exact, even = (b.call("mul.Tensor", v, f) for v, f in ((exact, 1.0 - smoothing), (even, smoothing / shape[at])))
    losses = b.call("add.Tensor", exact, even)
    if reduction not in (MEAN, SUM):
        return losses
    loss = b.call("sum.dim_IntList", losses)
    return b.call("div.Tensor", loss, b.call("sum.dim_IntList", weights)) if reduction == MEAN else loss


@ATEN.composed(aten=["soft_margin_loss"], promote=True)
def soft_margin_loss(b: Build, self: Lanes, target: Lanes, *, reduction: int = MEAN) -> Any:
    """log(1 + e^(-target self)), without an exponential that leaves the range."""
    losses = log_of_one_plus_exp(b, b.call("neg", b.call("mul.Tensor", self, target)))
    return _reduced(b, losses, reduction)


def _reduced(b: Build, losses: Any, reduction: int) -> Any:
    if reduction == SUM:
        return b.call("sum.dim_IntList", losses)
    return mean_over(b, losses, None) if reduction == MEAN else losses


@ATEN.composed(aten=["cosine_embedding_loss"], promote=True)
def cosine_embedding_loss(
    b: Build, input1: Lanes, input2: Lanes, target: Lanes, *, margin: Number = 0.0, reduction: int = MEAN
) -> Any:
    """1 - the cosine where the target is 1, and the cosine above the margin where it is -1."""

    def dot(x: Any, y: Any) -> Any:
        return b.call("sum.dim_IntList", b.call("mul.Tensor", x, y), dim=(-1,))

    def size(x: Any) -> Any:
        return b.call("sqrt", b.call("add.Tensor", dot(x, x), floored(_EPSILON)))

    cosine = b.call("div.Tensor", dot(input1, input2), b.call("mul.Tensor", size(input1), size(input2)))
    alike, unlike = b.call("rsub.Scalar", cosine, 1.0), b.call("relu", b.call("sub.Tensor", cosine, float(margin)))
    unlike = b.call("where.self", b.call("eq.Scalar", target, -1), unlike, 0.0)
    return _reduced(b, b.call("where.self", b.call("eq.Scalar", target, 1), alike, unlike), reduction)


def _of_several_labels(b: Build, self: Any, target: Any, reduction: int) -> tuple[Any, Any]:
    """How far each label of a row is from being a margin of 1 above every other class, and which classes are labels.

    The labels of a row end at the first negative number. Torch's own decomposition takes what stands behind that for
    class 0, so this loss is not left to it.
    """
    shape = b.shape(self) or (1,)
    self, labels = (b.call("view", v, size=shape) for v in (self, target))
    at, count = len(shape) - 1, shape[-1]
    place = positions(b, shape, at)
    end = b.call("where.self", b.call("lt.Scalar", labels, 0), place, b.full((), count, "i64"))
    counted = b.call("lt.Tensor", place, b.call("amin", end, dim=(at,), keepdim=True))
    named = b.call("unsqueeze", b.call("where.self", counted, labels, b.full((), -1, "i64")), dim=at + 1)
    hits = b.call("eq.Tensor", named, positions(b, (*shape, count), at + 1))
    others, labelled = b.call("unsqueeze", self, dim=at), b.call("any.dim", hits, dim=(at,))
    picked = b.call("unsqueeze", _picked(b, hits, others, at + 1), dim=at + 1)
    missing = b.call("relu", b.call("add.Tensor", b.call("rsub.Scalar", picked, 1.0), others))
    apart = b.call("where.self", b.call("unsqueeze", labelled, dim=at), 0.0, missing)
    counting = b.call("where.self", b.call("unsqueeze", counted, dim=at + 1), apart, 0.0)
    losses = b.call("div.Tensor", b.call("sum.dim_IntList", counting, dim=(at, at + 1)), float(count))
    return _reduced(b, losses, reduction), b.cast(b.call("view", labelled, size=b.shape(target)), like=self)


@ATEN.composed(aten=["multilabel_margin_loss"])
def multilabel_margin_loss(b: Build, self: Lanes, target: Lanes, *, reduction: int = MEAN) -> Any:
    """What each label of a row lacks to be 1 above every class that is none; labels end at a negative number."""
    return _of_several_labels(b, self, target, reduction)[0]


@ATEN.composed(aten=["multilabel_margin_loss_forward"])
def multilabel_margin_loss_forward(b: Build, self: Lanes, target: Lanes, *, reduction: int) -> Any:
    """The loss of `multilabel_margin_loss`, and which classes are labels."""
    return _of_several_labels(b, self, target, reduction)


PLAIN = ((5, 7), (5,))
ATEN.samples(
    cosine_embedding_loss,
    *(Sample(((5, 7), (5, 7), (5,)), {"margin": 0.1, "reduction": n}, low=0.5) for n in (0, MEAN)),
    Sample(((7,), (7,), ()), {"reduction": SUM}, low=0.5),
)
ATEN.samples(
    soft_margin_loss, *(Sample(((5, 7), (5, 7)), {"reduction": n}, low=-9.0, high=9.0) for n in (0, MEAN, SUM))
)
for _entry in (multilabel_margin_loss, multilabel_margin_loss_forward):
    ATEN.samples(
        _entry,
        *(Sample(((5, 7), (5, 7)), {"reduction": n}) for n in (0, MEAN, SUM)),
        Sample(((7,), (7,)), {"reduction": 0}),
    )
ATEN.samples(
    nll_loss,
    Sample((*PLAIN, (7,)), {"reduction": 1, "ignore_index": 2}, low=0.1),
    Sample((*PLAIN, None), {"reduction": 0, "ignore_index": -100}),
    Sample((*PLAIN, None), {"reduction": 2, "ignore_index": -100}),
    Sample(((2, 5, 3, 4), (2, 3, 4), (5,)), {"reduction": 1, "ignore_index": 1}, low=0.1),
)
ATEN.samples(
    nll_loss_forward,
    Sample((*PLAIN, (7,)), {"reduction": 1, "ignore_index": 2}, low=0.1),
    Sample(((2, 5, 3, 4), (2, 3, 4), None), {"reduction": 2, "ignore_index": 1}),
)
ATEN.samples(
    cross_entropy_loss,
    Sample((*PLAIN, None)),
    Sample(((7,), ()), {"reduction": 0}),
    Sample((*PLAIN, (7,)), {"reduction": 0, "ignore_index": 3}, low=0.1),
    Sample(((2, 5, 3, 4), (2, 3, 4), None), {"reduction": 2}),
    Sample((*PLAIN, (7,)), {"label_smoothing": 0.1, "ignore_index": 3}, low=0.1),
    Sample(((5, 7), (5, 7), (7,)), {"label_smoothing": 0.1}, low=0.1),
    Sample(((5, 7), (5, 7)), {"reduction": 2}, low=0.1),
)

"""Losses that torch has no decomposition for, or none that keeps to the range of DL16.

All others arrive as differences, logarithms and means.
"""

from __future__ import annotations

from spyre_mlir.ops.annotations import Number
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.composed.nn.normalization import floored
from spyre_mlir.ops.composed.reductions.sums import mean_over
from spyre_mlir.ops.helpers.approximations import log_of_one_plus_exp
from spyre_mlir.ops.helpers.reduction_dims import positions
from spyre_mlir.ops.helpers.slicing import along
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value

MEAN, SUM = 1, 2  # what ATen's `reduction` says; 0 keeps the elements
_EPSILON = 1e-12  # what torch adds to squares of sizes
IGNORED = -100  # the class that torch leaves out unless told otherwise


def _classes(value: Value) -> int:
    """The dimension of the classes: the second, or the only one."""
    return min(1, value.rank - 1)


def _hits(b: Build, value: Value, target: Value, ignored: int) -> Value:
    """Where the class of each element is the target, unless that class is to be left out."""
    at, shape = _classes(value), value.shape
    number = positions(b, shape, at)
    if 0 <= ignored < shape[at]:
        # No target has a number below 0: the ignored class finds none.
        number = number.eq(ignored).where(b.full((), -1, "i64"), number)
    return b.cast(target, "i64").unsqueeze(at).eq(number)


def _picked(hits: Value, value: Value, at: int) -> Value:
    """The element that each target names; 0 where it names none."""
    return hits.where(value, 0.0).sum(at)


def _weights(b: Build, hits: Value, like: Value, weight: Value | None) -> Value:
    """What each element counts: the weight of its class, or 1; 0 if its class is left out."""
    at = _classes(like)
    return b.cast(hits, like=like).sum(at) if weight is None else _picked(hits, along(weight, like.rank, at), at)


def _negative_likelihood(
    b: Build, self: Value, target: Value, weight: Value | None, reduction: int, ignored: int
) -> tuple[Value, Value]:
    """The loss of log-probabilities, and the weight of all elements together."""
    hits = _hits(b, self, target, ignored)
    at = _classes(self)
    weights = _weights(b, hits, self, weight)
    losses = -_picked(hits, self, at)
    losses = losses if weight is None else losses * weights
    if reduction not in (MEAN, SUM):
        return losses, b.full((), 0.0, self.element)
    total, loss = weights.sum(), losses.sum()
    return (loss / total if reduction == MEAN else loss), total


@ATEN.composed(aten=["nll_loss_nd", "nll_loss", "nll_loss2d"])
def nll_loss(
    b: Build,
    self: Value,
    target: Value,
    weight: Value | None = None,
    *,
    reduction: int = MEAN,
    ignore_index: int = IGNORED,
) -> Value:
    """The negative of the log-probability of each target; `reduction` is 0 for none, 1 for the mean, 2 for the sum."""
    return _negative_likelihood(b, self, target, weight, reduction, ignore_index)[0]


@ATEN.composed(aten=["nll_loss_forward", "nll_loss2d_forward"])
def nll_loss_forward(
    b: Build, self: Value, target: Value, weight: Value | None = None, *, reduction: int, ignore_index: int
) -> tuple[Value, Value]:
    """The loss of `nll_loss`, and the weight of all elements together."""
    return _negative_likelihood(b, self, target, weight, reduction, ignore_index)


@ATEN.composed(aten=["cross_entropy_loss"])
def cross_entropy_loss(
    b: Build,
    self: Value,
    target: Value,
    weight: Value | None = None,
    *,
    reduction: int = MEAN,
    ignore_index: int = IGNORED,
    label_smoothing: Number = 0.0,
) -> Value:
    """The negative log-probability, after a softmax, of classes, or of a distribution over them.

    `label_smoothing` is the part of the target that is spread over all classes.
    """
    at = _classes(self)
    likely = b.call("log_softmax.int", self, dim=at)
    if target.shape == self.shape and target.element == self.element:
        return _of_distribution(likely, target, weight, reduction, float(label_smoothing))
    if label_smoothing == 0:
        return _negative_likelihood(b, likely, target, weight, reduction, ignore_index)[0]
    return _smoothed(b, likely, target, weight, reduction, ignore_index, float(label_smoothing))


def _weighted(value: Value, weight: Value | None, at: int) -> Value:
    return value if weight is None else value * along(weight, value.rank, at)


def _of_distribution(likely: Value, target: Value, weight: Value | None, reduction: int, smoothing: float) -> Value:
    at, shape = _classes(likely), likely.shape
    if smoothing:
        target = target * (1.0 - smoothing) + smoothing / shape[at]
    return _reduced(-_weighted(likely * target, weight, at).sum(at), reduction)


def _smoothed(
    b: Build, likely: Value, target: Value, weight: Value | None, reduction: int, ignored: int, smoothing: float
) -> Value:
    at, shape = _classes(likely), likely.shape
    hits = _hits(b, likely, target, ignored)
    weights = _weights(b, hits, likely, weight)
    exact = -_picked(hits, likely, at)
    exact = exact if weight is None else exact * weights
    even = -_weighted(likely, weight, at).sum(at)
    # A target that is left out has no even part either, though its weight may be 0 for another reason.
    left_out = b.cast(target, "i64").eq(ignored)
    even = left_out.where(0.0, even)
    losses = exact * (1.0 - smoothing) + even * (smoothing / shape[at])
    if reduction not in (MEAN, SUM):
        return losses
    loss = losses.sum()
    return loss / weights.sum() if reduction == MEAN else loss


@ATEN.composed(aten=["soft_margin_loss"], promote=True)
def soft_margin_loss(self: Value, target: Value, *, reduction: int = MEAN) -> Value:
    """log(1 + e^(-target self)), without an exponential that leaves the range."""
    return _reduced(log_of_one_plus_exp(-(self * target)), reduction)


def _reduced(losses: Value, reduction: int) -> Value:
    if reduction == SUM:
        return losses.sum()
    return mean_over(losses, None) if reduction == MEAN else losses


@ATEN.composed(aten=["cosine_embedding_loss"], promote=True)
def cosine_embedding_loss(
    b: Build, input1: Value, input2: Value, target: Value, *, margin: Number = 0.0, reduction: int = MEAN
) -> Value:
    """1 - the cosine where the target is 1, and the cosine above the margin where it is -1."""

    def dot(x: Value, y: Value) -> Value:
        return (x * y).sum(-1)

    def size(x: Value) -> Value:
        return (dot(x, x) + floored(_EPSILON)).sqrt()

    cosine = dot(input1, input2) / (size(input1) * size(input2))
    alike, unlike = b.call("rsub.Scalar", cosine, 1.0), b.call("relu", cosine - float(margin))
    unlike = target.eq(-1).where(unlike, 0.0)
    return _reduced(target.eq(1).where(alike, unlike), reduction)


def _of_several_labels(b: Build, self: Value, target: Value, reduction: int) -> tuple[Value, Value]:
    """How far each label of a row is from being a margin of 1 above every other class, and which classes are labels.

    The labels of a row end at the first negative number. Torch's own decomposition takes what stands behind that for
    class 0, so this loss is not left to it.
    """
    shape = self.shape or (1,)
    self, labels = self.view(*shape), target.view(*shape)
    at, count = len(shape) - 1, shape[-1]
    place = positions(b, shape, at)
    end = labels.lt(0).where(place, b.full((), count, "i64"))
    counted = place.lt(end.amin(at, keepdim=True))
    named = counted.where(labels, b.full((), -1, "i64")).unsqueeze(at + 1)
    hits = named.eq(positions(b, (*shape, count), at + 1))
    others, labelled = self.unsqueeze(at), b.call("any.dim", hits, dim=(at,))
    picked = _picked(hits, others, at + 1).unsqueeze(at + 1)
    missing = b.call("relu", b.call("rsub.Scalar", picked, 1.0) + others)
    apart = labelled.unsqueeze(at).where(0.0, missing)
    counting = counted.unsqueeze(at + 1).where(apart, 0.0)
    losses = counting.sum((at, at + 1)) / float(count)
    return _reduced(losses, reduction), b.cast(labelled.view(*target.shape), like=self)


@ATEN.composed(aten=["multilabel_margin_loss"])
def multilabel_margin_loss(b: Build, self: Value, target: Value, *, reduction: int = MEAN) -> Value:
    """Margins by which labels of a row fall short of 1 above all other classes; a negative number ends the labels."""
    return _of_several_labels(b, self, target, reduction)[0]


@ATEN.composed(aten=["multilabel_margin_loss_forward"])
def multilabel_margin_loss_forward(b: Build, self: Value, target: Value, *, reduction: int) -> tuple[Value, Value]:
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

"""Losses and histograms over rows of which data decides the number: padding is of no class, and in no bin.

Decision: docs/decisions/0192-a-bound-stands-for-sizes-that-data-decides.md
"""

from __future__ import annotations

from functools import partial
from math import inf
from typing import Any, cast

import torch
from torch.fx import Node

from spyre_mlir.frontend.data_sizes.masked.masking import Masking, argument_of, replace, shape_of_node
from spyre_mlir.frontend.data_sizes.masked.sized_reads import checked

aten = torch.ops.aten

OF_CLASSES: frozenset[object] = frozenset(
    {aten.cross_entropy_loss.default, aten.nll_loss.default, aten.nll_loss_nd.default, aten.nll_loss2d.default}
)
# How torch numbers what becomes of the losses of rows.
_NONE, _MEAN = 0, 1


def of_classes(masking: Masking, node: Node) -> bool:
    """Give padded rows the class that a loss leaves out."""
    target, rows = cast(Node, node.args[1]), masking.sized(node.args[1])
    if target.meta["val"].dtype.is_floating_point:  # a distribution: padding would count in the mean
        return False
    if classes := _classes(masking, node):
        return node.target is aten.cross_entropy_loss.default and _of_sized_classes(masking, node, classes)
    if rows:
        node.update_arg(1, masking.filled(node, target, rows, cast(int, argument_of(node, "ignore_index"))))
    return bool(rows)


def _classes(masking: Masking, node: Node) -> dict[int, Any]:
    """The dimension of the classes, if data decides how many there are, as in a batch of pairs."""
    rank = len(shape_of_node(node.args[0]))
    return masking.sized(node.args[0], (min(1, rank - 1),))


def _of_sized_classes(masking: Masking, node: Node, classes: dict[int, Any]) -> bool:
    """Write out a cross entropy: the logarithm of the sum of the classes' likelihoods, without that of the target."""
    value, target = cast("tuple[Node, Node]", node.args[:2])
    if argument_of(node, "label_smoothing") or isinstance(argument_of(node, "weight"), Node):
        return False
    ((at, _),), write = classes.items(), partial(masking.before, node)
    dtype, left_out = node.meta["val"].dtype, argument_of(node, "ignore_index")
    counts = masking.masked(
        node, write(aten.ne.Scalar, target, left_out), masking.sized(target), len(shape_of_node(target))
    )
    likely = write(aten.logsumexp.default, masking.filled(node, value, classes, -inf), [at])
    named = write(aten.where.ScalarOther, counts, target, 0)
    named.meta["val"] = target.meta["val"]
    named = checked(masking, node, named, shape_of_node(value)[at])
    last = write(aten.movedim.int, masking.filled(node, value, classes, 0.0), at, -1)
    hit = write(
        aten.eq.Tensor, write(aten.unsqueeze.default, named, -1), masking.places(node, shape_of_node(value)[at])
    )
    hit = masking.masked(node, hit, {0: classes[at]}, 1)
    picked = write(aten.sum.dim_IntList, write(aten.where.ScalarOther, hit, last, 0), [-1])
    made = write(aten.where.ScalarOther, counts, write(aten.sub.Tensor, likely, picked), 0)
    kind = argument_of(node, "reduction")
    if kind != _NONE:
        made = write(aten.sum.default, made)
    if kind == _MEAN:
        number = write(aten.to.dtype, write(aten.sum.default, counts), dtype)
        made = write(aten.div.Tensor, made, number)
    replace(node, made)
    return True


def histogram(masking: Masking, node: Node) -> bool:
    """Put padding outside of all bins."""
    value, sized = cast(Node, node.args[0]), masking.sized(node.args[0])
    least, most = (argument_of(node, name) for name in ("min", "max"))
    if not sized or least >= most:  # torch takes the ends from the data if they are equal
        return False
    node.update_arg(0, masking.filled(node, value, sized, 2 * most - least + 1))
    return True

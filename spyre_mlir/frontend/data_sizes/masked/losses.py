"""Losses and histograms over rows of which data decides the number: padding is of no class, and in no bin.

Decision: docs/decisions/0192-a-bound-stands-for-sizes-that-data-decides.md
"""

from __future__ import annotations

from typing import cast

import torch
from torch.fx import Node

from spyre_mlir.frontend.data_sizes.masked.masking import Masking, argument_of

aten = torch.ops.aten

OF_CLASSES: frozenset[object] = frozenset(
    {aten.cross_entropy_loss.default, aten.nll_loss.default, aten.nll_loss_nd.default, aten.nll_loss2d.default}
)


def of_classes(masking: Masking, node: Node) -> bool:
    """Give padded rows the class that a loss leaves out."""
    target, rows = cast(Node, node.args[1]), masking.sized(node.args[1])
    if target.meta["val"].dtype.is_floating_point:  # a distribution: padding would count in the mean
        return False
    if rows:
        node.update_arg(1, masking.filled(node, target, rows, cast(int, argument_of(node, "ignore_index"))))
    return bool(rows)


def histogram(masking: Masking, node: Node) -> bool:
    """Put padding outside of all bins."""
    value, sized = cast(Node, node.args[0]), masking.sized(node.args[0])
    least, most = (argument_of(node, name) for name in ("min", "max"))
    if not sized or least >= most:  # torch takes the ends from the data if they are equal
        return False
    node.update_arg(0, masking.filled(node, value, sized, 2 * most - least + 1))
    return True

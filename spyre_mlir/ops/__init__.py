"""The op table: one declaration says everything about an operation."""

from spyre_mlir.ops import (
    composite,
    contraction,
    creation,
    extremes,
    indexing,
    masks,
    movement,
    norms,
    pointwise,
    reduction,
    statistics,
    sums,
    trigonometry,
    truth,
    view,
)
from spyre_mlir.ops.aten import ATEN

__all__ = [
    "ATEN",
    "composite",
    "contraction",
    "creation",
    "extremes",
    "indexing",
    "masks",
    "movement",
    "norms",
    "pointwise",
    "reduction",
    "statistics",
    "sums",
    "trigonometry",
    "truth",
    "view",
]

"""The op table: one declaration says everything about an operation."""

from spyre_mlir.ops import (
    composite,
    contraction,
    convolution,
    creation,
    folding,
    grid_sampling,
    indexing,
    masks,
    movement,
    pointwise,
    pooling,
    recurrent,
    reduction,
    resampling,
    statistics,
    trigonometry,
    view,
)
from spyre_mlir.ops.aten import ATEN

__all__ = [
    "ATEN",
    "composite",
    "contraction",
    "convolution",
    "creation",
    "folding",
    "grid_sampling",
    "indexing",
    "masks",
    "movement",
    "pointwise",
    "pooling",
    "recurrent",
    "reduction",
    "resampling",
    "statistics",
    "trigonometry",
    "view",
]

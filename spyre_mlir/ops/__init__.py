"""The op table: one declaration says everything about an operation."""

from spyre_mlir.ops import (
    bags,
    composite,
    contraction,
    creation,
    gathering,
    indexing,
    masks,
    movement,
    pointwise,
    reduction,
    scattering,
    shaping,
    statistics,
    trigonometry,
    view,
)
from spyre_mlir.ops.aten import ATEN

__all__ = [
    "ATEN",
    "bags",
    "composite",
    "contraction",
    "creation",
    "gathering",
    "indexing",
    "masks",
    "movement",
    "pointwise",
    "reduction",
    "scattering",
    "shaping",
    "statistics",
    "trigonometry",
    "view",
]

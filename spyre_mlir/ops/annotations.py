"""Names for the annotations that op declarations use; each stands for one kind of argument."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NewType

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Lanes = NDArray[Any]
    LanesList = Sequence[Lanes]
    Ranks = Sequence[Lanes]
    Number = int | float
    Ints = tuple[int, ...]
    Floats = tuple[float, ...]
    Bools = tuple[bool, ...]
    DType = str
else:

    class _Numpy:
        """numpy, imported when a meaning first runs: text tools never need it, and it costs 0.1 s."""

        def __getattr__(self, name: str) -> Any:
            return getattr(importlib.import_module("numpy"), name)

    np = _Numpy()
    # Names of their own, so that annotations which Python evaluates say as much as those it keeps as text.
    Lanes, LanesList, Ranks = NewType("Lanes", object), NewType("LanesList", object), NewType("Ranks", object)
    Number, Ints, Floats = NewType("Number", object), NewType("Ints", object), NewType("Floats", object)
    Bools, DType = NewType("Bools", object), NewType("DType", object)

INF = float("inf")

__all__ = ["INF", "Bools", "DType", "Floats", "Ints", "Lanes", "LanesList", "Number", "Ranks", "erf", "np"]


def erf(x: Lanes) -> Lanes:
    """Error function in double precision, elementwise.

    `math.erf` of the C library through `numpy.frompyfunc` is exact but slow; a table of nodes would be
    less exact. Arrays here are test sized, so exactness wins.
    """
    import math

    return np.vectorize(math.erf, otypes=[np.float64])(x) if x.size else x.astype(np.float64)

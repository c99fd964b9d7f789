"""Names of annotations, numpy that waits until it is used, and the error function of the C library."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np

from spyre_mlir.ops import annotations
from spyre_mlir.ops.annotations import INF, erf
from spyre_mlir.ops.parameters import KINDS

SPELLINGS = {"Lanes", "LanesList", "Number", "Ints", "Floats", "Bools", "DType", "Ranks"}


def test_annotations_that_python_evaluates_say_what_the_text_says() -> None:
    assert set(KINDS) >= SPELLINGS
    assert {name: getattr(annotations, name).__name__ for name in SPELLINGS} == {name: name for name in SPELLINGS}


def test_every_name_is_there() -> None:
    assert set(annotations.__all__) == SPELLINGS | {"INF", "erf", "np"}
    assert all(hasattr(annotations, name) for name in annotations.__all__)


def test_numpy_is_imported_when_it_is_used() -> None:
    code = "import sys, spyre_mlir.ops.annotations as a; before = 'numpy' in sys.modules; print(before, a.np.add(1, 2))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "3"]


def test_infinity() -> None:
    assert math.inf == INF


def test_the_error_function_is_exact_in_double_precision() -> None:
    x = np.array([[-6.0, -0.5, 0.0], [1e-9, 0.75, 30.0]])
    got = erf(x)
    assert got.dtype == np.float64
    assert got.tolist() == [[math.erf(v) for v in row] for row in x]
    assert erf(np.array([1, 2])).tolist() == [math.erf(1), math.erf(2)]


def test_the_error_function_of_nothing_is_nothing() -> None:
    empty = erf(np.zeros((0, 3), np.float32))
    assert (empty.shape, empty.dtype) == ((0, 3), np.float64)

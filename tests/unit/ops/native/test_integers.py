"""The sum of 32-bit integers of the device."""

from __future__ import annotations

import numpy as np

from spyre_mlir.ops import ATEN
from spyre_mlir.ops.function_facts import Seen
from spyre_mlir.ops.hardware_functions import function_of
from spyre_mlir.ops.native.integers import ADD_WORDS, add_words, scale_and_shift


def test_it_is_the_function_on_integers_and_no_operator_of_torch() -> None:
    assert ATEN.by_opfunc("addi32toi32") is add_words
    assert ATEN.find(ADD_WORDS) is add_words
    known = function_of("addi32toi32")
    assert known is not None and known.seen is Seen.FRONT_END


def test_the_sum_is_exact() -> None:
    a, b = np.array([2.0**31 - 65537, -(2.0**31)]), np.array([65536.0, 2.0**31 - 1])
    assert add_words.meaning(a, b).tolist() == [2**31 - 1, -1]


def test_one_step_scales_and_shifts() -> None:
    assert ATEN.by_opfunc("batchnormfwd") is scale_and_shift
    x = np.array([0.25, -1.0], np.float32)
    assert scale_and_shift.meaning(x, np.float32(256), np.float32(-128)).tolist() == [-64.0, -384.0]

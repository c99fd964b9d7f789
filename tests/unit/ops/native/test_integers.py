"""The sum of 32-bit integers of the device."""

from __future__ import annotations

import numpy as np

from spyre_mlir.ops import ATEN
from spyre_mlir.ops.function_facts import Seen
from spyre_mlir.ops.hardware_functions import function_of
from spyre_mlir.ops.native.integers import ADD_WORDS, add_words


def test_it_is_the_function_on_integers_and_no_operator_of_torch() -> None:
    assert ATEN.by_opfunc("addi32toi32") is add_words
    assert ATEN.find(ADD_WORDS) is add_words
    known = function_of("addi32toi32")
    assert known is not None and known.seen is Seen.FRONT_END


def test_the_sum_is_exact() -> None:
    a, b = np.array([2.0**31 - 65537, -(2.0**31)]), np.array([65536.0, 2.0**31 - 1])
    assert add_words.meaning(a, b).tolist() == [2**31 - 1, -1]

"""Steps of a note: sizes with symbols become numbers, and what is no step is refused."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr, f32, i1, i64
from xdsl.ir import Attribute

from spyre_mlir.dialects.aten_arguments import to_attribute
from spyre_mlir.dialects.aten_sizes import SizeAttr
from spyre_mlir.errors import InputError
from spyre_mlir.machine.levels.index_steps import index_of


def step(call: str, kind: Attribute = i64, **given: object) -> Attribute:
    said = {name: to_attribute(value) for name, value in given.items()}
    return DictionaryAttr({"call": StringAttr(f"aten.{call}"), "as": kind, **said})


def test_steps_follow_each_other() -> None:
    by = ArrayAttr([step("mul", self="%0", other=3), step("sub", self="%1", other="%0")])
    np.testing.assert_array_equal(index_of(by, np.array([1, 5]), {}), [2, 10])


def test_sizes_with_symbols() -> None:
    by = ArrayAttr([step("expand", self="%0", size=[SizeAttr("2 * s0"), -1])])
    assert index_of(by, np.array([1, 5]), {"s0": 2}).shape == (4, 2)


def test_halves_of_sizes_are_no_integers() -> None:
    by = ArrayAttr([step("lt", i1, self="%0", other=SizeAttr("s0 / 2"))])
    np.testing.assert_array_equal(index_of(by, np.array([2, 3]), {"s0": 5}), [True, False])


@pytest.mark.parametrize(
    "wrong",
    [
        StringAttr("aten.mul"),
        step("sin", self="%0"),
        step("mul", self="%0"),
        step("neg", self="%1"),
        step("neg", f32, self="%0"),
    ],
)
def test_what_is_no_step(wrong: Attribute) -> None:
    with pytest.raises(InputError, match=r"of a note on indices cannot be taken"):
        index_of(ArrayAttr([wrong]), np.array([1]), {})

"""Steps of a note: sizes with symbols become numbers, and what is no step is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr, bf16, f32, i1, i64
from xdsl.ir import Attribute

from spyre_mlir.dialects.aten_arguments import to_attribute
from spyre_mlir.dialects.aten_sizes import SizeAttr
from spyre_mlir.errors import InputError
from spyre_mlir.machine.levels.index_steps import as_operand, index_of


def step(call: str, kind: Attribute = i64, **given: object) -> Attribute:
    said = {name: to_attribute(value) for name, value in given.items()}
    return DictionaryAttr({"call": StringAttr(f"aten.{call}"), "as": kind, **said})


def test_steps_follow_each_other() -> None:
    by = ArrayAttr([step("mul", self="%0", other=3), step("sub", self="%1", other="%0")])
    np.testing.assert_array_equal(index_of(by, np.array([1, 5]), {}), [2, 10])


def test_sizes_with_symbols() -> None:
    by = ArrayAttr([step("expand", self="%0", size=[SizeAttr("2 * s0"), -1])])
    assert index_of(by, np.array([1, 5]), {"s0": 2}).shape == (4, 2)


def test_other_arguments_by_name() -> None:
    by = ArrayAttr([step("where", condition="@mask", self="%0", other="@j"), step("cat", tensors=["%1", "@j"])])
    others = {"mask": np.array([True, False]), "j": np.array([7, 8])}
    np.testing.assert_array_equal(index_of(by, np.array([1, 5]), {}, others), [1, 8, 7, 8])


def test_floats_are_as_wide_as_in_the_program() -> None:
    by = ArrayAttr([step("mul", f32, self="%0", other=10.0), step("_to_copy", self="%1")])
    given = as_operand(np.array([0.7, 0.3]), f32)
    np.testing.assert_array_equal(index_of(by, given, {}), (torch.tensor([0.7, 0.3]) * 10).long().numpy())
    assert as_operand(np.array([1.0]), bf16).dtype.itemsize == 2
    assert as_operand(np.array([3]), i64).dtype == np.int64


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
        step("neg", StringAttr("i64"), self="%0"),
    ],
)
def test_what_is_no_step(wrong: Attribute) -> None:
    with pytest.raises(InputError, match=r"of a note on indices cannot be taken"):
        index_of(ArrayAttr([wrong]), np.array([1]), {})

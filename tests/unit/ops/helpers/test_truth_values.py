"""Comparisons and arithmetic of truth values, against truth tables."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from spyre_mlir.ops.helpers.truth_values import negated, on_truth
from tests.unit.ops.evaluation import a_value, made, run, same

LEFT, RIGHT = np.array([False, False, True, True]), np.array([False, True, False, True])
RULES: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "maximum": operator.or_,
    "minimum": operator.and_,
    "mul": operator.and_,
}


@pytest.mark.parametrize("name", RULES)
def test_operands_that_hold_truth_values(name: str) -> None:
    same(run(on_truth(name), LEFT, RIGHT)[0], RULES[name](LEFT, RIGHT))


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("truth", [True, False])
def test_a_truth_value_in_a_tensors_place(name: str, truth: bool) -> None:
    same(run(on_truth(name), truth, RIGHT)[0], RULES[name](np.full(4, truth), RIGHT))
    same(run(on_truth(name), LEFT, truth)[0], RULES[name](LEFT, np.full(4, truth)))


def test_not_is_a_choice() -> None:
    same(run(lambda b, x: negated(x), LEFT)[0], ~LEFT)
    assert made(lambda b, x: negated(x), LEFT) == ["where.self"]
    assert negated(a_value(True)) is False
    assert negated(a_value(False)) is True


@pytest.mark.parametrize(("left", "right"), [(LEFT, np.ones(4)), (np.ones(4), RIGHT), (np.ones(4), np.ones(4))])
def test_numbers_stay_with_the_entry(left: np.ndarray, right: np.ndarray) -> None:
    assert run(on_truth("mul"), left, right) == []

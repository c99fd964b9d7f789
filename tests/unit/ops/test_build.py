"""The protocol of builds, and that the builds of the compiler keep to it."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
import pytest

from spyre_mlir.dialects.aten_build import AtenBuild
from spyre_mlir.ops.build import Build
from tests.unit.ops.cases import agree, result_of_body, results_of_body

METHODS = ("call", "call_all", "cast", "rounded", "full", "iota")


@pytest.mark.parametrize("method", METHODS)
def test_builds_take_what_the_protocol_says(method: str) -> None:
    said, taken = (signature(getattr(kind, method)).parameters for kind in (Build, AtenBuild))
    assert [(p.name, p.kind, p.default) for p in said.values()] == [(p.name, p.kind, p.default) for p in taken.values()]


def test_a_protocol_says_what_a_body_may_call() -> None:
    assert set(METHODS) <= set(vars(Build)) | {"call"}


def test_constants_start_at_0_and_step_by_1_unless_told() -> None:
    agree(result_of_body(lambda b: b.iota(3, "i64")), [0, 1, 2])
    agree(result_of_body(lambda b: b.iota(3, "f32", start=5, step=-2)), [5.0, 3.0, 1.0])
    agree(result_of_body(lambda b: b.full((2, 1), 7, "i64")), [[7], [7]])


def test_a_value_is_cast_by_name_or_like_another() -> None:
    def body(b: Any, x: Any, y: Any) -> Any:
        return b.cast(x, "i64"), b.cast(y, like=x), b.cast(x, "i64", like=x), b.rounded(b.cast(y, "f32"))

    x, y = np.array([1.75, -2.5]), np.array([3])
    for got, wanted in zip(results_of_body(body, x, y), ([1, -2], [3.0], [1, -2], [3.0]), strict=True):
        agree(got, wanted)


def test_all_results_of_an_operation() -> None:
    values, places = results_of_body(lambda b, x: b.call_all("sort", x), np.array([3.0, 1.0, 2.0]))
    agree(values, [1.0, 2.0, 3.0])
    agree(places, [1, 2, 0])

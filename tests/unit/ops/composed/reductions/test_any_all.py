"""Whether any element is not 0, and whether all are, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spyre_mlir.ops.composed.reductions import any_all
from tests.unit.ops.evaluation import INF, NAN, budgets, calling, check_samples, defaults, made, result, same, types

X = np.array([[0.0, -2.0, -0.0], [NAN, 1.0, -INF], [0.0, 0.0, 0.0]])
RULES: dict[str, Any] = {"any": np.any, "all": np.all}
KINDS = [X, np.array([[0, -3, 2], [-1, -1, 5], [0, 0, 0]]), X != 0, (X < 0).astype(np.uint8) * 200]


@pytest.mark.parametrize("x", KINDS, ids=lambda x: x.dtype.name)
@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("keepdim", [True, False])
def test_questions_of_dimensions(name: str, x: np.ndarray, keepdim: bool) -> None:
    def wanted(axis: Any) -> np.ndarray:
        answer = RULES[name](x != 0, axis=axis, keepdims=keepdim)
        return answer.astype(np.int64) if x.dtype == np.uint8 else answer

    for dim in (-1, 0, 1):
        same(result(f"{name}.dim", x, dim=(dim,), keepdim=keepdim), wanted(dim))
    same(result(f"{name}.dims", x, dim=(1, -2), keepdim=keepdim), wanted((0, 1)))
    same(result(f"{name}.dims", x, dim=None, keepdim=keepdim), wanted(None))


@pytest.mark.parametrize("name", RULES)
def test_questions_of_all_elements(name: str) -> None:
    for x in (X[0], X[1], X[2], np.array(0.0), np.array(3)):
        same(result(name, x), RULES[name](x != 0))


@pytest.mark.parametrize("name", RULES)
def test_no_dimension_leaves_every_element_its_own_answer(name: str) -> None:
    same(result(f"{name}.dims", X, dim=()), X != 0)
    assert made(calling(f"{name}.dims", dim=()), X) == ["_to_copy"]
    assert types(calling(f"{name}.dims", dim=()), KINDS[3])[0][1] == "ui8"


@pytest.mark.parametrize(("name", "answer"), [("any", False), ("all", True)])
def test_nothing_has_a_neutral_answer(name: str, answer: bool) -> None:
    empty = np.zeros((2, 0, 3))
    same(result(f"{name}.dim", empty, dim=(1,)), np.full((2, 3), answer))
    same(result(f"{name}.dim", empty, dim=(-2,), keepdim=True), np.full((2, 1, 3), answer))
    same(result(f"{name}.dims", empty, dim=()), np.array(answer))
    same(result(name, empty.astype(np.uint8)), int(answer))


@pytest.mark.parametrize(("kind", "element"), [(np.uint8, "ui8"), (np.int8, "i1"), (np.float64, "i1")])
@pytest.mark.parametrize("name", RULES)
def test_bytes_are_answered_with_bytes(name: str, kind: Any, element: str) -> None:
    for shape in ((2, 3), (2, 0)):
        assert types(calling(f"{name}.dim", dim=(1,)), np.zeros(shape, kind)) == [((2,), element)]


def test_declarations() -> None:
    check_samples(any_all.__name__)
    assert budgets(any_all.__name__) == {"any_of": (0, False), "all_of": (0, False)}
    assert defaults(any_all.__name__) == {("dim", None), ("keepdim", False)}

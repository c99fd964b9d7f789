"""`map_op`: one hardware function for an operation, and declarations that do not fit the function."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

from spyre_mlir.errors import RegistrationError
from spyre_mlir.ops import ATEN, registry
from spyre_mlir.ops.annotations import Ints, Lanes
from spyre_mlir.ops.mapping import map_op
from spyre_mlir.ops.registry import HookKind
from spyre_mlir.ops.table import Family


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    with registry.isolated():
        yield


def fast_sigmoid(self: Lanes) -> Lanes:
    """1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-self))


@pytest.mark.parametrize(
    ("function", "hint"),
    [("sigmoyd", "did you mean sigmoid?"), ("xyzzy", "docs/reference/superdsc.md lists them")],
)
def test_a_hardware_function_that_does_not_exist_is_refused(function: str, hint: str) -> None:
    with pytest.raises(
        RegistrationError, match=f"mapped to the hardware function {function}, which does not"
    ) as refused:
        map_op("special_bessel_j1", function)
    assert refused.value.hint == hint


def test_an_operation_of_the_table_is_mapped_only_if_asked() -> None:
    with pytest.raises(
        RegistrationError, match=r"aten\.sigmoid is claimed by both .*activations\.sigmoid and .*fast_sig"
    ):
        map_op("aten.sigmoid", "sigmoid")(fast_sigmoid)
    table = ATEN.find("sigmoid")
    entry = map_op("aten::sigmoid", "sigmoid", override=True)(fast_sigmoid)
    assert entry.overloads == ("override::sigmoid",)
    assert entry is not table is ATEN.find("sigmoid")
    assert len(registry.find(HookKind.DECOMPOSITION, "sigmoid")) == 1


def test_override_of_an_operation_that_is_free_maps_it() -> None:
    assert map_op("special_bessel_j1", "sigmoid", override=True)(fast_sigmoid).overloads == ("special_bessel_j1",)


def whole(self: Lanes) -> Lanes:
    return np.sum(self)


def over(self: Lanes, *, dim: Ints) -> Lanes:
    return np.sum(self, axis=tuple(dim))


def kept(self: Lanes, *, keepdim: bool = False) -> Lanes:
    return np.sum(self, keepdims=keepdim)


def total(self: Lanes, *, dim: Ints, keepdim: bool = False) -> Lanes:
    return np.sum(self, axis=tuple(dim), keepdims=keepdim)


@pytest.mark.parametrize(
    ("function", "missing"),
    [(whole, "no parameter dim and no parameter keepdim"), (over, "no parameter keepdim"), (kept, "no parameter dim")],
)
def test_a_reduction_takes_what_it_folds(function: object, missing: str) -> None:
    with pytest.raises(RegistrationError) as refused:
        map_op("tried::total", "sum", combine="arith.addf")(function)  # pyright: ignore[reportArgumentType]
    said = rf"tried::total: .*test_mapping\.{function.__name__} has {missing}, and a reduction has both"  # pyright: ignore
    assert re.fullmatch(said, refused.value.message)
    assert (refused.value.hint or "").startswith(
        "declare it as (self: Lanes, *, dim: Ints, keepdim: bool = False); an operation without them is decomposed"
    )
    assert ATEN.find("tried::total") is None


@pytest.mark.parametrize(
    ("opfunc", "combine", "message", "hint"),
    [
        ("sum", "arith.mulf", "sum has combine='arith.addf', got 'arith.mulf'", "write combine='arith.addf'"),
        ("sum", None, "sum has combine='arith.addf', got None", "write combine='arith.addf'"),
        ("exp", "arith.addf", "exp has no combine: it folds nothing, got 'arith.addf'", "leave combine out"),
    ],
)
def test_a_function_folds_as_it_is_said_to(opfunc: str, combine: str | None, message: str, hint: str) -> None:
    with pytest.raises(RegistrationError, match=re.escape(message)) as refused:
        map_op("tried::total", opfunc, combine=combine)
    assert refused.value.hint == hint


def test_a_reduction_is_declared() -> None:
    entry = map_op("tried::total", "sum", combine="arith.addf")(total)
    assert (entry.family, entry.combine, ATEN.find("tried::total")) == (Family.REDUCTION, "arith.addf", entry)

"""Every meaning in the op table against torch eager in float64, on every sample."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from spyre_mlir.errors import ConstraintError
from spyre_mlir.machine.levels.aten import evaluate
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.annotations import erf
from spyre_mlir.ops.array_views import ArrayView
from spyre_mlir.ops.composed.nn.paged_attention import COMPUTE, COMPUTE_WITH_SINKS, STORE
from spyre_mlir.ops.native import activations, pointwise
from spyre_mlir.ops.parameters import ArgKind
from spyre_mlir.ops.table import Family, OpEntry, Sample
from tests.end_to_end.ops import cases
from tests.unit.ops.test_table import OF_SMALL_NUMBERS

GOOD = cases.good_cases()
BAD = [(e, s) for e in ATEN for s in e.samples if s.breaks is not None]


@pytest.mark.parametrize(("entry", "overload", "sample"), GOOD, ids=cases.case_id)
def test_meaning_is_that_of_torch(entry: OpEntry, overload: str, sample: Sample) -> None:
    given = cases.arguments(entry, overload, sample)
    tensors = [given[p.name] for p in entry.params if p.is_tensor]
    rest = {p.name: given[p.name] for p in entry.params if not p.is_tensor}
    if entry.composed:
        results = evaluate(entry, given)
    elif entry.family is Family.VIEW:
        results = [entry.meaning(ArrayView(tensors[0]), **rest).array]
    else:
        results = [np.asarray(entry.meaning(*tensors, **rest))]
    for got, wanted in zip(results, cases.expected(overload, given), strict=True):
        assert got.shape == wanted.shape
        np.testing.assert_allclose(
            got.astype(np.float64),
            wanted.astype(np.float64),
            rtol=max(1e-12, entry.tolerance),
            atol=max(1e-12, entry.tolerance),
        )


@pytest.mark.parametrize(("entry", "sample"), BAD, ids=cases.case_id)
def test_bad_sample_breaks_the_constraint_it_names(entry: OpEntry, sample: Sample) -> None:
    names = [p.name for p in entry.params if p.is_tensor]
    lists = {p.name for p in entry.params if p.kind is ArgKind.TENSORS}
    if entry.composed:
        arrays = {
            n: [np.zeros(t) for t in s] if n in lists else np.zeros(s)
            for n, s in zip(names, sample.shapes, strict=False)
        }
        call = partial(evaluate, entry, {p.name: p.default for p in entry.params} | arrays | dict(sample.attributes))
    elif entry.shape is not None:
        # A list of tensors is a list of shapes.
        shapes = {n: list(s) if n in lists else s for n, s in zip(names, sample.shapes, strict=False)}
        call = partial(entry.shape, **shapes, **sample.attributes)
        if sample.low == sample.high:  # its numbers break the constraint, and its shapes do not
            call()
            call = partial(entry.meaning, *(np.full(s, sample.low) for s in sample.shapes), **sample.attributes)
    else:
        call = partial(entry.meaning, *(np.zeros(s) for s in sample.shapes), **sample.attributes)
    with pytest.raises(ConstraintError, match=f"^\\[SPY-C001\\] {sample.breaks}: "):
        call()


def test_every_overload_is_compared_with_torch() -> None:
    compared = {o for _, o, _ in GOOD}
    # `squeeze` without dimensions has no argument for the sample's; tested below.
    # torch has no `spyre::resample`: every interpolation is compared instead.
    # What transformers and ibm-fms define is compared where it is composed.
    # 8-bit floats are compared in machine/test_small_floats.py.
    small = {o for e in ATEN if e.name in OF_SMALL_NUMBERS for o in e.overloads}
    # What several ranks call is compared in end_to_end/ranks.
    small |= {o for e in ATEN if e.family is Family.COLLECTIVE for o in e.overloads}
    of_packages = {"transformers::grouped_mm_fallback", "moe::moe_mm", STORE, COMPUTE, COMPUTE_WITH_SINKS}
    elsewhere = {"squeeze", "spyre::resample", *of_packages, *cases.ELSEWHERE, *small}
    assert {o for e in ATEN for o in e.overloads} - compared == elsewhere


def test_squeeze_without_dimensions() -> None:
    squeeze = ATEN.find("squeeze")
    assert squeeze is not None
    assert squeeze.meaning(ArrayView(np.zeros((3, 1, 4, 1)))).shape == (3, 4)


def test_sigmoid_of_large_numbers_does_not_overflow() -> None:
    np.testing.assert_array_equal(activations.sigmoid.meaning(np.array([-1000.0, 0.0, 1000.0])), [0.0, 0.5, 1.0])


def test_clamp_takes_the_maximum_if_the_bounds_cross() -> None:
    np.testing.assert_array_equal(pointwise.clamp.meaning(np.array([0.0, 5.0]), min=3, max=1), [1.0, 1.0])


def test_erf_of_nothing_is_nothing() -> None:
    assert erf(np.zeros((0, 3))).shape == (0, 3)

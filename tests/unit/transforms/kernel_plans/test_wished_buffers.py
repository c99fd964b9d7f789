"""Buffers that plans have in the scratchpads where any plan can."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.planning.divisions import OUTSIDE, Kernel, Prices, divide_within
from spyre_mlir.transforms.kernel_plans.wished_buffers import (
    STORED_WIDE_US,
    WideWeights,
    not_wished,
    without_impossible,
)
from tests.unit.planning.test_divisions import candidate
from tests.unit.transforms.kernel_loops.test_row_blocks import product
from tests.unit.transforms.levels import ops


def test_only_what_fits_nowhere_is_given_up() -> None:
    """The second buffer is larger than the scratchpads of all cores; the first is not."""
    size, large = 1_000_000, SPYRE.lx_usable_bytes * 33
    first = Kernel((OUTSIDE, 0), (candidate("rows", 32, size, size),), required=frozenset({0}), wished=frozenset({0}))
    reader = replace(first, operands=(0, OUTSIDE))
    second = Kernel(
        (OUTSIDE, 1), (candidate("rows", 32, large, large),), required=frozenset({1}), wished=frozenset({1})
    )
    found = without_impossible([first, reader, second, replace(second, operands=(1, OUTSIDE))], Prices())
    assert [k.wished for k in found] == [{0}, {0}, frozenset(), frozenset()]
    assert [k.required for k in found] == [{0}, {0}, frozenset(), frozenset()]


@pytest.mark.parametrize(
    ("made", "read", "twice"),
    [("rows", "rows", False), ("rows", "columns", False), ("rows", "both", False), ("both", "both", True)],
)
def test_it_is_given_up_where_kernels_see_other_slices(made: str, read: str, twice: bool) -> None:
    """As the search finds it, which takes longer."""
    size = 1_000_000
    rows, columns = (candidate(view, 32, size, size) for view in ("rows", "columns"))
    mixed = replace(rows, views=("rows", "columns", "rows"), sizes=rows.sizes[:1] * 3)
    choices = {"rows": (rows,), "columns": (columns,), "both": (columns, rows)}
    wished = frozenset({0})
    kernels = [Kernel((OUTSIDE, 0), choices[made], required=wished, wished=wished)]
    kernels += [Kernel((0, OUTSIDE), choices[read], required=wished, wished=wished)]
    if twice:  # one operand is seen by rows, another by columns
        kernels += [Kernel((0, 0, OUTSIDE), (mixed,), required=wished, wished=wished)]
    possible = divide_within(kernels, inf) is not None
    assert possible == (read in (made, "both") and not twice)
    assert [bool(k.wished) for k in without_impossible(kernels, Prices())] == [possible] * len(kernels)


def test_a_hint_is_no_wish() -> None:
    both = Kernel((0, 1), (), required=frozenset({0, 1}), wished=frozenset({1}))
    assert (not_wished(both).required, not_wished(both).wished) == ({0}, frozenset())


def test_a_loop_has_both_the_kernel_that_writes_one_and_its_product() -> None:
    convert, multiplied, _ = ops(product(2048), KernelOp)
    weight = convert.output
    for wide in (WideWeights(stored={convert: frozenset({weight})}), WideWeights(held={weight})):
        for op in (convert, multiplied):
            assert wide.saved_us([op], [op.operands], set()) is None
        both = wide.saved_us([convert, multiplied], [convert.operands, multiplied.operands], {weight})
        assert both == (STORED_WIDE_US if wide.stored else 0)

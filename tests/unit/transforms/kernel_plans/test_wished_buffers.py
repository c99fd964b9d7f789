"""Buffers that plans have in the scratchpads where any plan can."""

from __future__ import annotations

from dataclasses import replace

from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.planning.divisions import OUTSIDE, Kernel, Prices
from spyre_mlir.transforms.kernel_plans.wished_buffers import not_wished, without_impossible
from tests.unit.planning.test_divisions import candidate


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


def test_a_hint_is_no_wish() -> None:
    both = Kernel((0, 1), (), required=frozenset({0, 1}), wished=frozenset({1}))
    assert (not_wished(both).required, not_wished(both).wished) == ({0}, frozenset())

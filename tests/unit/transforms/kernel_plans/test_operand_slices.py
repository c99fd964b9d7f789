"""Slices of a kernel's operands under its divisions."""

from __future__ import annotations

import pytest

from spyre_mlir.dialects.spyre.attributes import DeviceTensor
from spyre_mlir.dialects.spyre.core_view import CoreDivision, LocalSlices
from spyre_mlir.hw.sticks import IndexMap
from spyre_mlir.transforms.kernel_plans import operand_slices
from tests.unit.transforms.kernel_loops.test_row_blocks import product
from tests.unit.transforms.kernel_plans.test_kernel_choices import chosen


def test_slices_that_several_cores_would_need_are_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cores that divide the columns of a product need the same rows of its left operand, so no scratchpad holds it."""
    asked, local_slices = list[str](), operand_slices.local_slices

    def watched(tensor: DeviceTensor, index: IndexMap, division: CoreDivision) -> LocalSlices | None:
        splits = {name: split for name, _, _, split in division.loops if split > 1}
        asked.extend(set(splits) - {name for e in index for name, _ in e.terms})
        return local_slices(tensor, index, division)

    monkeypatch.setattr(operand_slices, "local_slices", watched)
    choices, found = chosen(product(64, weight="f16", columns=1024))
    op = next(op for op in found if op.is_product)
    choices.divide(op)
    by_splits = {tuple(c.splits.values()): c for c in choices.candidates(op)}
    assert [view is None for view in by_splits[4, 8, 1].views] == [True, True, False]
    assert [view is None for view in by_splits[32, 1, 1].views] == [False, True, False]
    left, _, result = (operand_slices._walked_once(index.data) for index in op.maps.data)
    assert (left, result) == ({"m", "k"}, {"m", "n"})
    assert asked == []

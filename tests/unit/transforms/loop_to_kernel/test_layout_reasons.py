"""Reasons that are noted on request: at nests by the choice of layouts, at kernels by the conversion."""

from __future__ import annotations

import pytest

from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.dialects.spyre.layout_choices import WHY, LayoutChoice
from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.hw.sticks import UNIT
from spyre_mlir.text.render import module_text
from spyre_mlir.transforms.loop_to_kernel.layout_reasons import LayoutReason
from tests.unit.transforms.buffer_layouts.test_choose_layouts import filled, product, relu_and_sum, saying
from tests.unit.transforms.levels import ops, passed

CHOOSE, CONVERT = "choose-layouts", "convert-spyre-loop-to-spyre-kernel"
LANES = (LayoutChoice("n", 1), LayoutChoice("m", 0), LayoutChoice("none", UNIT))


def at_nests(text: str, *, repair: bool = True) -> list[LayoutReason | None]:
    return [LayoutReason.taken_from(op) for op in ops(passed(text, CHOOSE, why=True, repair=repair), NestOp)]


def at_kernels(text: str) -> list[tuple[str, LayoutReason | None]]:
    module = passed(module_text(passed(text, CHOOSE, why=True)), CONVERT, why=True)
    return [(op.function_name, LayoutReason.taken_from(op)) for op in ops(module, KernelOp)]


def test_nothing_is_noted_that_nobody_asked_for() -> None:
    module = passed(relu_and_sum(), CHOOSE, CONVERT)
    assert not any(WHY in op.attributes for op in module.walk())


def test_a_choice_by_cost_lists_the_legal_layouts() -> None:
    relu, total = at_nests(relu_and_sum(), repair=False)
    assert relu == LayoutReason("cost", legal=LANES) and str(relu) == "by cost, of 3 legal ones"
    assert total is not None and total.by == "cost" and len(total.legal) == 3


def test_a_choice_by_trials_lists_the_legal_layouts() -> None:
    relu, _ = at_nests(relu_and_sum())
    assert relu == LayoutReason("trial", legal=LANES) and str(relu) == "quickest in trials, of 3 legal ones"


@pytest.mark.parametrize(
    ("said", "by"),
    [(saying("stick 0"), "text"), ("attributes {spyre.hint = {layout = #spyre.layout<stick 0>}}", "hint")],
)
def test_the_text_and_hints_are_told_apart(said: str, by: str) -> None:
    (relu, _) = at_nests(relu_and_sum(said))
    assert relu == LayoutReason(by, legal=LANES)


def test_what_has_no_choice_is_forced() -> None:
    assert at_nests(product("")) == [LayoutReason("forced", "a product has its columns in the lanes")]


def test_kernels_have_the_reason_of_the_tensor_that_they_write() -> None:
    (name, relu), *rest = at_kernels(
        relu_and_sum(saying("lanes n")).replace('arith.addf" {', f'arith.addf" {saying("lanes m")} {{')
    )
    assert name == "relufwd" and relu is not None
    assert (relu.by, relu.chosen) == ("text", LayoutChoice("n", 1, (1, 0)))
    (restickify, why), (_, total) = rest
    assert restickify == "ReStickifyOpHBM" and why is not None and total is not None
    assert why.by == "inserted" and why.text.endswith(
        "reads it with dimension 0 in the sticks, and it has dimension 1 in the sticks"
    )
    assert total.chosen is not None and total.chosen.lanes == "m"
    assert relu.op is not None and total.op is not None and relu.op < total.op


def test_the_kernels_of_a_filled_tensor_have_its_reason() -> None:
    found = [why for _, why in at_kernels(filled())]
    assert len({None if why is None else why.op for why in found}) == 1
    assert [why.by for why in found if why is not None] == ["cost", "cost"]


def test_a_note_is_read_back() -> None:
    whole = LayoutReason("inserted", "max reads it", LANES, 3, LayoutChoice("n", 1, (1, 0)))
    (op,) = ops(passed(product("")), NestOp)
    op.attributes[WHY] = whole.attribute
    assert LayoutReason.taken_from(op) == whole and WHY not in op.attributes
    assert LayoutReason.taken_from(op) is None

"""Kernels as the planner sees them: their divisions, work and slices, against hand counts."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.hw.cost_parameters import CALIBRATED
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.planning.divisions import OUTSIDE, DividedKernel
from spyre_mlir.transforms.kernel_plans import kernel_choices
from spyre_mlir.transforms.kernel_plans.kernel_choices import KernelChoices
from tests.unit.transforms.kernel_loops.test_row_blocks import product
from tests.unit.transforms.levels import ops, passed
from tests.unit.transforms.test_place_lx import softmax


def chosen(module: ModuleOp) -> tuple[KernelChoices, list[KernelOp]]:
    return KernelChoices(SPYRE, narrow=False), ops(module, KernelOp)


def test_a_softmax_in_numbers() -> None:
    choices, found = chosen(passed(softmax(8192, 1024), "divide-work"))
    kernels, buffers = choices.sequence(found)
    # x is read twice and may be copied; the result goes to the host.
    assert [k.operands for k in kernels] == [(0, 1), (0, 1, 2), (2, 3), (3, 4), (3, 4, OUTSIDE)]
    assert [k.copied for k in kernels] == [{0}, {0}, *[frozenset()] * 3]
    assert len(buffers) == 5
    exp = kernels[2]
    # 8,192 rows and 16 sticks over 32 cores, the usual division first.
    splits = [tuple(c.splits.values()) for c in exp.candidates]
    assert splits[0] == (32, 1) and sorted(splits) == [(2, 16), (4, 8), (8, 4), (16, 2), (32, 1)]
    assert {prod(s) for s in splits} == {32}
    assert exp.candidates[0].sizes == (256 * 2048, 256 * 2048)
    assert exp.candidates[0].in_place == {0}
    # Equal slices have equal numbers in all kernels.
    assert exp.candidates[0].views[0] == kernels[1].candidates[0].views[2]
    assert len({c.views for c in exp.candidates}) == len(exp.candidates)


def test_a_buffer_of_two_launches_stays_outside() -> None:
    choices, found = chosen(passed(softmax(8192, 1024), "divide-work"))
    kernels, buffers = choices.sequence(found, {op: int(number > 2) for number, op in enumerate(found)})
    assert [k.operands for k in kernels] == [(0, 1), (0, 1, 2), (2, OUTSIDE), (OUTSIDE, 3), (OUTSIDE, 3, OUTSIDE)]
    assert len(buffers) == 4


def test_short_kernels_and_fixed_ones_have_no_choice() -> None:
    choices, found = chosen(passed(softmax(64, 128), "divide-work"))
    assert {len(choices.candidates(op)) for op in found} == {1}
    choices, found = chosen(passed(softmax(8192, 1024), "divide-work"))
    choices.fixed.add(found[2])
    kernels, _ = choices.sequence(found)
    # Rows alone are divided where they are reduced.
    assert [len(k.candidates) for k in kernels] == [1, 5, 1, 1, 5]
    assert all(d.split in (1, 32) for op in found for d in op.space.data)  # as they were


def test_what_is_known_of_equal_kernels_is_shared_and_nothing_else() -> None:
    choices, found = chosen(passed(softmax(8192, 1024), "divide-work"))
    choices.fixed.add(found[2])
    before = choices.candidates(found[2])
    others, equal = choices.of_others(narrow=False), ops(passed(softmax(8192, 1024), "divide-work"), KernelOp)
    assert others.candidates(equal[2]) is before and others.prices is choices.prices
    assert not others.fixed and len(others.sequence(equal)[0][2].candidates) == 5
    assert len(choices.of_others(narrow=True).candidates(equal[2])) == 6, "columns alone, too"


def test_refused_divisions_are_all_others() -> None:
    """8,192 rows and 16 sticks: 20 divisions by powers of two within 32 cores, of which five take all cores."""
    choices, found = chosen(passed(softmax(8192, 1024), "divide-work"))
    exp = found[2]
    considered = choices.candidates(exp)
    refused = choices.refusals(exp, considered)
    assert len(considered) + len(refused) == 6 + 5 + 4 + 3 + 2
    assert {reason for _, reason in refused} == {"too few cores are busy"}
    given = choices.refusals(exp, considered[:1], "because")
    assert {reason for _, reason in given} == {"because"} and len(given) == 19
    choices.fixed.add(exp)
    assert {reason for _, reason in choices.refusals(exp, considered[:1])} == {"the program gives the division"}


def test_beside_weights_of_few_bits_cores_may_have_columns_of_their_own() -> None:
    """16 sticks of columns, one on each of 16 cores: fewer than a kernel otherwise has."""
    _, found = chosen(passed(softmax(8192, 1024), "divide-work"))
    usual, beside = (KernelChoices(SPYRE, narrow=narrow).candidates(found[2]) for narrow in (False, True))
    assert [c.splits for c in beside] == [*[c.splits for c in usual], {"m": 1, "n": 16}]


def test_short_kernels_may_have_more_cores() -> None:
    """200 rows are 25 times 8, and 32 is 4 slices of rows times the 8 sticks; what reduces a row has rows alone."""
    choices, found = chosen(passed(softmax(200, 512), "divide-work"))
    splits = [[tuple(c.splits.values()) for c in choices.candidates(op)] for op in found]
    assert splits == [[(25, 1)], *[[(25, 1), (4, 8), (8, 4)]] * 2, [(25, 1)], [(25, 1), (4, 8), (8, 4)]]


def test_short_products_may_have_other_slices() -> None:
    """32 cores that divide 64 rows read the whole weight each; four that divide them leave eight to divide columns."""
    choices, found = chosen(product(64, weight="f16", columns=1024))
    op = next(op for op in found if op.is_product)
    choices.divide(op)
    times = {tuple(c.splits.items()): choices.prices.us(c, frozenset()) for c in choices.candidates(op)}
    usual, few = (("m", 32), ("n", 1), ("k", 1)), (("m", 4), ("n", 8), ("k", 1))
    assert next(iter(times)) == usual and times[few] < times[usual] / 1.5


def test_the_floor_is_the_time_with_everything_at_hand() -> None:
    choices, found = chosen(passed(softmax(8192, 1024), "divide-work"))
    outside = sum(choices.floor_us(op, frozenset()) for op in found)
    inside = sum(choices.floor_us(op, frozenset(range(len(op.operands)))) for op in found)
    # Five kernels of 8,388,608 elements on 32 vector units of 70.4 elements a nanosecond.
    assert inside < outside and inside >= 5 * 8192 * 1024 / 32 / 70.4 / 1000 * 0.99


def test_no_loop_gives_a_product_more_rows() -> None:
    """So few rows leave the array as empty as they do in one piece: 256 x 64 multiply-adds for each of 8 rows."""
    choices, found = chosen(product(8, weight="f16"))
    op = next(op for op in found if op.is_product)
    floor = choices.floor_us(op, frozenset(range(len(op.operands))))
    assert floor == pytest.approx(8 * 256 * 64 / 1140 / 32 / 1000 / (8 / 64) ** 0.35)


def test_no_trip_is_quicker_than_its_floor() -> None:
    """A fourth of the rows: the floor is that of a program with a fourth of them, whatever stays in the scratchpads."""
    choices, found = chosen(passed(softmax(8192, 1024), "divide-work"))
    _, small = chosen(passed(softmax(2048, 1024), "divide-work"))
    for op, trip in zip(found, small, strict=True):
        held = frozenset(range(len(op.operands)))
        for local in (frozenset[int](), frozenset({0}), held):
            floor = choices.trip_floor_us(op, {"m": 4}, local)
            times = [choices.prices.us(c, local) for c in choices.candidates(trip)]
            assert 0 < floor <= min(times) * (1 + 1e-9)
        assert choices.trip_floor_us(op, {"m": 4}, held) < choices.trip_floor_us(op, {}, held)


def test_a_kernel_may_have_the_few_cores_that_reduce_what_it_makes() -> None:
    """Columns of 16 sticks are reduced on 16 cores; a kernel before them may have 32, in other slices."""
    t = "!spyre.tensor<[1024, 1024] x SEN169_FP16, order [1, 0], stick 1, hbm>"
    row = "!spyre.tensor<[1024] x SEN169_FP16, order [0], stick 0, hbm>"
    text = f"""func.func @main(%x: tensor<1024x1024xf16>) -> tensor<1024xf16> {{
    %0 = spyre.kernel.to_device %x : tensor<1024x1024xf16> to {t}
    %1 = spyre.kernel.alloc : {t}
    spyre.kernel.compute "exp" [m = 1024, n = 1024] ins(%0[m, n] : {t}) outs(%1[m, n] : {t})
    %2 = spyre.kernel.alloc : {row}
    spyre.kernel.compute "max" [m = 1024, n = 1024] ins(%1[m, n] : {t}) outs(%2[n] : {row})
    %3 = spyre.kernel.from_device %2 : {row} to tensor<1024xf16>
    func.return %3 : tensor<1024xf16>
    }}"""
    choices, found = chosen(passed(text, "divide-work"))
    alone = choices.candidates(found[0])
    kernels, _ = choices.sequence(found)
    assert {tuple(c.splits.values()) for c in kernels[1].candidates} == {(1, 16), (1, 8), (1, 4)}
    assert {tuple(c.splits.values()) for c in kernels[0].candidates[len(alone) :]} == {(1, 16), (1, 8), (1, 4)}
    assert {c.views[1] for c in kernels[0].candidates[len(alone) :]} == {c.views[0] for c in kernels[1].candidates}
    # What a text says stays.
    choices.fixed.add(found[0])
    assert [len(k.candidates) for k in choices.sequence(found)[0]] == [1, 1]


def test_any_plan_knows_what_others_have_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    def candidates(**altered: float) -> tuple[DividedKernel, ...]:
        found = ops(passed(softmax(8192, 1024), "divide-work"), KernelOp)
        return KernelChoices.known(SPYRE, replace(CALIBRATED, **altered), narrow=False).candidates(found[2])

    first = candidates()
    assert candidates() is first and candidates(kernel_fixed_us=1.0) is not first
    monkeypatch.setattr(kernel_choices, "MOST_KNOWN", 0)
    assert candidates() is not first, "too much was known, and all is forgotten"


def test_equal_slices_have_equal_numbers_and_others_do_not() -> None:
    choices = KernelChoices(SPYRE)
    rows, columns, again, others = map(choices._number, ("rows", "columns", "rows", "all"))
    assert rows == again and len({rows, columns, others}) == 3

"""Explanations against the compiled program and its timeline, and against divisions counted by hand."""

from __future__ import annotations

import re
from itertools import product
from math import prod

import pytest

from spyre_mlir.compiled import CompiledModel
from spyre_mlir.report.explanation import plan_prices
from spyre_mlir.report.explanation.explained import ExplainedKernel


@pytest.fixture(autouse=True)
def no_other_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans that `test_plan_prices.py` looks at are not made here."""
    monkeypatch.setattr(plan_prices, "MOST_PLANNED", 0)


def kernels(program: CompiledModel, *names: str) -> list[ExplainedKernel]:
    return [kernel for name in names for kernel in program.explain(name).kernels]


def test_the_plan_is_that_of_the_compiled_program(gated: CompiledModel) -> None:
    """Divisions, memories, addresses and times of all kernels, held against the text and the timeline."""
    timed = gated.timeline().kernels
    found = kernels(gated, *(f"sdsc_{n}" for n in range(len(timed))))
    lines = [line for line in gated.mlir("spyre.kernel").splitlines() if "spyre.kernel.compute" in line]
    assert [k.function for k in found] == re.findall(r'compute "(\w+)"', "\n".join(lines))
    for kernel, line, time in zip(found, lines, timed, strict=True):
        loops = dict(re.findall(r"(\w+) = \d+ over (\d+)", line))
        assert {name: str(n) for name, n in kernel.chosen.division.items() if n > 1} == loops
        assert [o.memory for o in kernel.operands] == re.findall(r", (hbm|lx)>", line)
        assert [f"%{o.value}[" in line for o in kernel.operands] == [True] * len(kernel.operands)
        assert kernel.chosen.price.total == pytest.approx(time.cost.total)
        assert max(kernel.chosen.price.pt, kernel.chosen.price.sfp) == pytest.approx(time.cost.compute)
        assert kernel.chosen.price.hbm == pytest.approx(time.cost.memory)
        assert kernel.chosen.differs == ()
    assert [k.chosen.block_us for k in found] == pytest.approx([gated.timeline().kernels_us] * len(found))


def test_only_products_use_the_pe_arrays(gated: CompiledModel) -> None:
    down, silu = kernels(gated, "down", "silu")
    assert down.chosen.price.pt > 0 == down.chosen.price.sfp
    assert silu.chosen.price.sfp > 0 == silu.chosen.price.pt


def test_the_next_best_are_slower_and_say_what_else_changes(gated: CompiledModel) -> None:
    (silu,) = kernels(gated, "aten.silu")
    chosen, (second, third) = silu.chosen, silu.others
    assert chosen.block_us <= second.block_us <= third.block_us
    assert len({tuple(p.division.items()) for p in (chosen, second, third)}) == 3
    # The two products cannot both follow another division of what stands between them.
    assert any(change.startswith("has %") and change.endswith("in HBM") for change in second.differs)
    assert any(change.startswith("divides sdsc_0 batchmatmul") for change in second.differs)


def test_every_division_is_considered_or_refused_with_a_reason(gated: CompiledModel) -> None:
    """m = 512 rows, n = 256 in 4 sticks, k = 1024 in 16 sticks: all powers of two within 32 cores."""
    (down,) = kernels(gated, "sdsc_2")
    ways = [w for w in product((1, 2, 4, 8, 16, 32), (1, 2, 4), (1, 2, 4, 8, 16)) if prod(w) <= 32]
    refused = {entry.reason: entry.divisions for entry in down.refused}
    assert down.considered + sum(map(len, refused.values())) == len(ways)
    assert len(refused["too few cores are busy"]) == sum(prod(w) < 28 for w in ways)
    slow = next(divisions for reason, divisions in refused.items() if "slower" in reason)
    assert {d["k"] > 4 for d in slow} == {True}
    assert down.whole == {}


def test_loops_that_stay_whole_have_a_reason(gated: CompiledModel) -> None:
    (maximum,) = kernels(gated, "max")
    assert list(maximum.whole) == ["r"] and "reduces" in maximum.whole["r"]
    assert {d["r"] for entry in maximum.refused for d in entry.divisions} == {1}


def test_memories_have_reasons(gated: CompiledModel) -> None:
    up, divided = kernels(gated, "sdsc_0", "realdiv")
    assert [o.reason for o in up.operands] == ["comes from the host"] * 2 + ["its kernels see the same slices of it"]
    assert divided.operands[-1].reason == "it goes to the host"
    # 512 x 1024 numbers of two bytes over 32 cores.
    assert up.operands[-1].core_bytes == 512 * 1024 * 2 // 32
    assert up.operands[-1].address is not None and up.operands[0].address is None


def test_loops_that_were_tried_are_listed(rows: CompiledModel) -> None:
    """Four blocks of 16,384 rows fit, see `tests/unit/transforms/test_plan.py`."""
    (maximum,) = kernels(rows, "max")
    assert (maximum.runs, maximum.trips) == (4, (4,))
    taken = [loop for loop in maximum.tried if loop.taken]
    assert [(list(loop.trips.values()), loop.kernels) for loop in taken] == [([4], 5)]
    assert taken[0].us is not None and taken[0].us < taken[0].usual_us
    assert taken[0].us == pytest.approx(rows.timeline().kernels_us, rel=0.01)
    assert all(loop.said for loop in maximum.tried) and len(maximum.tried) > 1
    copied, *_ = maximum.operands
    assert copied.reason == "a copy of what several kernels read"
    assert maximum.chosen.price.copies == pytest.approx(kernels(rows, "identity")[0].chosen.price.total)


def test_a_kernel_that_the_planner_does_not_divide(rows: CompiledModel) -> None:
    (copy,) = kernels(rows, "identity")
    assert copy.others == () and copy.considered == 1
    assert {entry.reason for entry in copy.refused} == {"the planner does not divide it"}


def test_kernels_of_regions_count_their_calls(layers: CompiledModel) -> None:
    (linear,) = kernels(layers, "batchmatmul")
    assert linear.runs == 2
    assert "(layers.0.linear) and 1 more" in linear.source
    assert kernels(layers, "layers.1.linear") == [linear]


def test_more_kernels_than_are_explained_at_once(layers: CompiledModel) -> None:
    found = layers.explain("exp")
    assert (len(found.kernels), len(found.more)) == (12, 8)
    assert "8 more go by 'exp': " + ", ".join(found.more) in str(found)


def test_a_short_kernel_has_its_usual_division(layers: CompiledModel) -> None:
    exp, *_ = kernels(layers, "exp")
    reasons = [entry.reason for entry in exp.refused]
    assert "the kernel is too short for another that is on no more cores" in reasons and exp.considered == 1


def test_inserted_kernels_name_their_readers(hinted_columns: CompiledModel) -> None:
    """The input is placed with rows in its sticks, and the hint wants columns there."""
    relaid, *_ = kernels(hinted_columns, "ReStickifyOpHBM")
    line = r"at conftest\.py:\d+ reads it with dimension 0 in the sticks, and it has dimension 1 in the sticks"
    assert re.fullmatch(rf"inserted: relufwd {line}", relaid.layout)
    assert relaid.layouts == ()


def test_a_layout_that_nobody_chose_says_what_forces_it(gated: CompiledModel) -> None:
    (product,) = kernels(gated, "sdsc_0")
    assert product.layout == "forced: a product has its columns in the lanes" and product.layouts == ()


def test_reasons_follow_kernels_into_loops(rows: CompiledModel) -> None:
    (maximum,) = kernels(rows, "max")
    assert maximum.runs == 4 and maximum.layout.startswith("by cost")

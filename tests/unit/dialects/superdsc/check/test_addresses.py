"""Rules about addresses, each at the last value that keeps it and the first one that breaks it.

The addition of (128, 256) halves has four sticks in a row of 512 bytes: one stick of every row lies behind the other,
so a core with four rows takes 4 sticks, 4 times, 16384 bytes apart: 3 * 16384 + 512 = 49664 bytes from end to end.
"""

from __future__ import annotations

from itertools import product

import pytest

from spyre_mlir.dialects.superdsc.check import addresses
from spyre_mlir.dialects.superdsc.check.addresses import RULES, _meet, misplaced, overlaps
from tests.unit.backend.check.cases import ADD, ADD1, BIAS, LX, RESTICK, SEGMENT, SUM_ROWS, put
from tests.unit.dialects.superdsc.check.cases import (
    Change,
    assert_as_published,
    assert_right_files_keep,
    found,
    sdsc,
    starts,
    symbolic,
    told,
    update,
)

LX_BYTES, USABLE = 2 * 1024 * 1024, 1_589_376


def at(number: int, core: int) -> str:
    return f"scheduleTree_[{number}].startAddressCoreCorelet_.data_.[{core}, 0, 0]"


def one_start(number: int, core: int, address: str) -> Change:
    return put(lambda f: f.start(number), f"[{core}, 0, 0]", address)


def test_rules_are_the_published_ones() -> None:
    names = "start-per-core start-aligned start-symbol segment span starts-follow-slices outputs-disjoint scratchpad"
    assert_as_published(RULES, f"{names} scratchpad-budget scratchpad-starts operands-overlap back-gap")


def test_right_files_keep_the_rules() -> None:
    assert_right_files_keep(RULES)


def test_there_is_one_start_per_core() -> None:
    path = at(0, 32).removesuffix(".[32, 0, 0]")
    expected = [(path, "32 start addresses, one per core", "33")]
    assert found(addresses.start_per_core, ADD, one_start(0, 32, "0")) == expected


def test_starts_are_whole_sticks() -> None:
    """1600 is twelve sticks and a half; ids are no addresses."""
    crooked = one_start(0, 3, "1600")
    expected = [(at(0, 3), "a multiple of 128 bytes", '"1600"', "the stick starts at 1536")]
    assert found(addresses.start_aligned, ADD, crooked) == expected
    assert found(addresses.start_aligned, ADD, crooked, symbolic(0)) == []


def test_symbolic_starts_are_negative_and_others_not() -> None:
    what = "an address; ids need isStartAddrSymbolic_ 1"
    assert found(addresses.start_symbol, ADD, one_start(0, 3, "-4")) == [(at(0, 3), what, '"-4"')]
    ids = starts(0, lambda core: -1 - core)
    assert found(addresses.start_symbol, ADD, ids, symbolic(0)) == []
    wrong = found(addresses.start_symbol, ADD, ids, symbolic(0), one_start(0, 5, "0"))
    assert wrong == [(at(0, 5), "a negative symbol id", '"0"')]


def test_scratchpads_have_no_symbolic_starts() -> None:
    wrong = found(addresses.start_symbol, LX, symbolic(0), starts(0, lambda core: -1))
    assert wrong == [("scheduleTree_[0].isStartAddrSymbolic_", "a given address in a scratchpad", "1")]


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (SEGMENT - 65536, None),
        (SEGMENT - 65536 + 128, "65536 bytes before the end of segment 0"),
        (7 * SEGMENT - 65536, None),
        (7 * SEGMENT - 128, "65536 bytes before the end of segment 6"),
        (7 * SEGMENT, "an address in segments 0 to 6"),
    ],
)
def test_an_operand_lies_in_one_segment_of_the_users(address: int, expected: str | None) -> None:
    """One core has all of the 65,536 bytes."""
    moved = starts(1, lambda core: address)
    wrong = [] if expected is None else [(at(1, 0), expected, f'"{address}"')]
    assert found(addresses.segment, ADD1, moved) == wrong
    assert found(addresses.segment, ADD1, moved, symbolic(1)) == []
    assert found(addresses.segment, ADD1, moved, update(lambda f: f.node(1), component_="lx")) == []


def _rows(count: int) -> Change:
    return put(lambda f: f.dsc["N_"], "mb_", count)


def test_a_core_reaches_256_mib_less_4_kib() -> None:
    """524,280 rows of 512 bytes are 268,431,360 bytes."""
    limit = "at most 268431360 bytes from a core's first to its last of operand"
    hint = "split an outer dim further"
    assert found(addresses.span, ADD1, _rows(524280)) == []
    wrong = found(addresses.span, ADD1, _rows(524281))
    assert wrong == [(f"scheduleTree_[{n}]", f"{limit} {n}", "268431872", hint) for n in range(3)]
    gathered = update(lambda f: f.node(1), indirectAllocType_="value_tensor")
    local = update(lambda f: f.node(0), component_="lx")
    wrong = found(addresses.span, ADD1, _rows(524281), gathered, local)
    assert [place for place, *_ in wrong] == ["scheduleTree_[2]"]


def test_starts_lie_as_far_apart_as_slices() -> None:
    """Core 3 begins three slices of 512 bytes behind core 0."""
    wrong = [(at(0, 3), "1536, where slice {'mb': 3, 'out': 0} begins", "2048")]
    assert found(addresses.starts_follow_slices, ADD, one_start(0, 3, "2048")) == wrong
    gathered = update(lambda f: f.node(0), indirectAllocType_="value_tensor")
    assert found(addresses.starts_follow_slices, ADD, one_start(0, 3, "2048"), gathered) == []
    assert found(addresses.starts_follow_slices, ADD, one_start(0, 3, "2048"), symbolic(0)) == []


def test_cut_sticks_have_no_starts_to_follow() -> None:
    """128 columns over four cores are half a stick each: the operand with columns in its sticks is left alone."""
    wrong = found(addresses.starts_follow_slices, RESTICK, put(lambda f: f.dsc["N_"], "out_", 128))
    assert wrong
    assert {place.partition(".")[0] for place, *_ in wrong} == {"scheduleTree_[1]"}


def test_addresses_may_be_given_from_outside() -> None:
    view = sdsc(ADD)
    operand = view.dscs[0].operands[0]
    assert list(misplaced(operand, [4096 + 512 * core for core in range(32)])) == []
    moved = [4096 + 512 * core + 128 * (core == 31) for core in range(32)]
    wrong = [told(one, view) for one in misplaced(operand, moved)]
    assert wrong == [(at(0, 31), "19968, where slice {'mb': 31, 'out': 0} begins", "20096")]


def test_results_of_cores_lie_apart() -> None:
    """Results of 512 bytes each, 384 apart: every one but the first runs into its neighbour."""
    crowded = starts(2, lambda core: 2 * SEGMENT + 384 * core)
    expected = "an address whose result leaves that of core {} alone"
    wrong = [(at(2, n), expected.format(n - 1), f"{2 * SEGMENT + 384 * n}") for n in range(1, 32)]
    assert found(addresses.outputs_disjoint, ADD, crowded) == wrong
    assert found(addresses.outputs_disjoint, ADD, crowded, symbolic(2)) == []
    assert found(addresses.outputs_disjoint, ADD, crowded, update(lambda f: f.node(2), component_="lx")) == []
    gathered = update(lambda f: f.node(2), indirectAllocType_="value_tensor")
    assert found(addresses.outputs_disjoint, ADD, crowded, gathered) == []


def test_cores_that_add_up_one_result_share_its_bytes() -> None:
    """Eight cores share each of four result sticks; two with different columns may not."""
    output = sdsc(SUM_ROWS).dscs[0].output
    assert list(overlaps(output, [128 * (core // 8) for core in range(32)])) == []
    (wrong, *_) = overlaps(output, [0] * 32)
    assert wrong.path.endswith(at(1, 8))
    assert wrong.expected == "an address whose result leaves that of core 0 alone"


@pytest.mark.parametrize("steps", [[], [(128, 3)], [(1024, 2), (128, 3)], [(4096, 2), (512, 3), (128, 4)]])
def test_boxes_meet_where_they_share_a_stick(steps: list[tuple[int, int]]) -> None:
    """Against all sticks of both boxes."""
    box = {sum(t) for t in product(*([step * k for k in range(count)] for step, count in steps))}
    for delta in range(-9216, 9217, 128):
        assert _meet(delta, steps) == any(delta + stick in box for stick in box), delta


def test_a_gap_that_leaves_nothing_of_a_dim_is_no_step() -> None:
    """128 rows and a gap of -128: columns lie on each other."""
    nothing = update(lambda f: f.node(2), backGapCore_={"mb": {"-1": "-128"}})
    assert found(addresses.outputs_disjoint, ADD, nothing) == []
    assert found(addresses.outputs_disjoint, ADD, nothing, starts(2, lambda core: 384 * core)) != []


@pytest.mark.parametrize(("rule", "limit"), [("scratchpad", LX_BYTES), ("scratchpad_budget", USABLE)])
def test_buffers_end_within_the_scratchpad(rule: str, limit: int) -> None:
    """512 rows of two sticks: 131,072 bytes."""
    keeps, breaks = starts(0, lambda core: limit - 131072), starts(0, lambda core: limit - 131072 + 128)
    assert found(getattr(addresses, rule), LX, keeps) == []
    wrong = found(getattr(addresses, rule), LX, breaks)
    text = (f"131072 bytes within {limit}", f'"{limit - 131072 + 128}"', "use device memory")
    assert wrong == [(at(0, core), *text) for core in range(32)]
    assert found(getattr(addresses, rule), LX, breaks, symbolic(0)) == []
    assert found(getattr(addresses, rule), LX, breaks, update(lambda f: f.node(0), padding_={})) == []


def test_buffers_start_at_one_address_in_all_scratchpads() -> None:
    wrong = found(addresses.scratchpad_starts, LX, one_start(1, 3, "262144"))
    assert wrong == [(at(1, 3), "131072, as on the other cores", '"262144"')]
    assert found(addresses.scratchpad_starts, LX, one_start(1, 3, "262144"), symbolic(1)) == []


@pytest.mark.parametrize(
    ("source", "target", "clash"),
    [(0, 131072, False), (0, 130944, True), (131072, 0, False), (130944, 0, True), (0, 0, True)],
)
def test_a_result_of_other_strides_lies_apart_from_inputs(source: int, target: int, clash: bool) -> None:
    moved = starts(0, lambda core: source), starts(1, lambda core: target)
    wrong = [(at(1, 0), f"bytes apart from those of operand 0 at {source}", f'"{target}"')] if clash else []
    assert found(addresses.operands_overlap, LX, *moved) == wrong


@pytest.mark.parametrize(("shift", "clash"), [(0, False), (128, True), (512, False), (-128, True)])
def test_a_result_may_take_an_inputs_place_exactly(shift: int, clash: bool) -> None:
    wrong = found(addresses.operands_overlap, ADD, starts(2, lambda core: SEGMENT + 512 * core + shift))
    text = f"bytes apart from those of operand 1 at {SEGMENT}"
    assert wrong == ([(at(2, 0), text, f'"{SEGMENT + shift}"')] if clash else [])


@pytest.mark.parametrize(
    ("change", "clash"),
    [
        (lambda f: None, True),
        (update(lambda f: f.node(1), backGapCore_={"out": {"-1": "0"}}), True),
        (update(lambda f: f.node(1), backGapCore_={"out": {"-1": "64"}}), False),
        (update(lambda f: f.node(2), backGapCore_={"mb": {"-1": "64"}}), False),
        (update(lambda f: f.node(1), component_="lx"), False),
        (update(lambda f: f.node(1), indirectAllocType_="value_tensor"), False),
        (update(lambda f: f.node(2), padding_={}), False),
        (symbolic(1), False),
        (symbolic(2), False),
    ],
)
def test_what_may_lie_in_gaps_or_elsewhere_is_let_be(change: Change, clash: bool) -> None:
    """The bias of 512 bytes lies where the result of core 0 begins."""
    wrong = found(addresses.operands_overlap, BIAS, starts(1, lambda core: 2 * SEGMENT), change)
    text = f"bytes apart from those of operand 1 at {2 * SEGMENT}"
    assert wrong == ([(at(2, 0), text, f'"{2 * SEGMENT}"')] if clash else [])


@pytest.mark.parametrize(
    ("file", "gap", "place", "expected", "got"),
    [
        (BIAS, {"mb": {"-1": "64"}}, "mb", "a dim of the operand, ['out']", "mb"),
        (BIAS, {"out": {"0": "64"}}, "out.0", "the key -1, or in a scratchpad one per core", "0"),
        (BIAS, {"out": {"-1": "32"}}, "out.-1", "whole sticks of 64", '"32"'),
        (BIAS, {"out": {"-1": "-32"}}, "out.-1", "whole sticks of 64", '"-32"'),
        (BIAS, {"out": {"-1": "-64"}}, "out.-1", "no negative gap", '"-64"'),
        (BIAS, {"out": {"-1": "0"}}, "", "", ""),
        (BIAS, {"out": {"-1": "128"}}, "", "", ""),
        (LX, {"out": {"31": "3", "-1": "3"}}, "", "", ""),
        (LX, {"out": {"32": "3"}}, "out.32", "the key -1, or in a scratchpad one per core", "32"),
    ],
)
def test_gaps_belong_to_the_operand(file: str, gap: dict[str, object], place: str, expected: str, got: str) -> None:
    """The stick of the bias runs along out, that of the result in the scratchpad along x."""
    wrong = found(addresses.back_gap, file, update(lambda f: f.node(1), backGapCore_=gap))
    assert wrong == ([(f"scheduleTree_[1].backGapCore_.{place}", expected, got)] if place else [])

"""Bounds: hand arithmetic, and all ways of loading the tensors of small programs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spyre_mlir.hw.cost_parameters import CALIBRATED, PEAK
from spyre_mlir.planning.bounds import Step, bounds, serial_us

MB = 1_000_000
SFU, PE, LX, HBM = 32 * 70.4, 32 * 1140, 32 * 547, 150.0  # calibrated, per nanosecond


def test_a_chain_waits_for_its_vector_unit() -> None:
    """64 functions of [2048, 4096]: the first loads, the last stores, each computes all elements."""
    elements = 2048 * 4096
    ends = [Step(elements=elements, loads={"x": 2 * elements}, local=2 * elements)]
    ends.append(Step(elements=elements, stores=2 * elements, local=2 * elements))
    inner = [Step(elements=elements, local=4 * elements)] * 62
    found = bounds([ends[0], *inner, ends[1]])
    assert found.serial == pytest.approx((4 * elements / HBM + 62 * elements / SFU) / 1000)
    assert found.roofline == pytest.approx(4 * elements / HBM / 1000)
    assert found.bytes == 4 * elements


def test_a_product_hides_its_weights() -> None:
    macs, weights = 512 * 4096 * 4096, 2 * 4096 * 4096
    step = Step(macs=macs, loads={"w": weights}, local=512 * 4096 * 4)
    assert serial_us([step]) == pytest.approx(max(macs / PE, weights / HBM) / 1000)
    assert serial_us([step], PEAK) == pytest.approx(max(macs / 32 / 1536, weights / 204.8) / 1000)


def test_a_scratchpad_may_be_the_slowest() -> None:
    step = Step(elements=MB, local=8 * MB)
    assert serial_us([step]) == pytest.approx(8 * MB / LX / 1000)
    assert 8 * MB / LX > MB / SFU


def test_a_tensor_of_several_steps_is_loaded_in_one_of_them() -> None:
    slow, quick = Step(elements=100 * MB, loads={"x": MB}), Step(elements=MB, loads={"x": MB})
    # All of it hides behind the slow step.
    assert serial_us([quick, slow]) == pytest.approx((MB + 100 * MB) / SFU / 1000)
    assert bounds([quick, slow]).bytes == MB


def test_a_step_that_needs_the_result_of_a_reader_comes_too_late_to_load() -> None:
    quick = Step(elements=MB, loads={"x": MB})
    slow = Step(elements=100 * MB, loads={"x": MB}, after=frozenset({0}))
    assert serial_us([quick, slow]) == pytest.approx((MB / HBM + 100 * MB / SFU) / 1000)
    # It may load what the reader before it does not need.
    less = replace(quick, loads={"x": MB // 2})
    assert serial_us([less, slow]) == pytest.approx((MB + 100 * MB) / SFU / 1000)


def test_a_step_behind_another_one_still_follows_its_readers() -> None:
    between = Step(elements=MB, after=frozenset({0}))
    program = [Step(loads={"x": MB}), between, Step(elements=100 * MB, loads={"x": MB}, after=frozenset({1}))]
    assert serial_us(program) == pytest.approx((MB / HBM + 101 * MB / SFU) / 1000)


@st.composite
def programs(draw: st.DrawFn) -> list[Step]:
    made = list[Step]()
    for number in range(draw(st.integers(1, 4))):
        one = st.builds(
            Step,
            elements=st.integers(0, 5000),
            loads=st.dictionaries(st.sampled_from("abc"), st.sampled_from([60, 300, 400]), max_size=3),
            stores=st.integers(0, 400),
            local=st.integers(0, 4000),
            after=st.frozensets(st.sampled_from(range(number))) if number else st.just(frozenset[int]()),
        )
        made.append(draw(one))
    return made


@settings(max_examples=300, deadline=None)
@given(programs())
def test_no_way_of_loading_is_shorter(program: list[Step]) -> None:
    least = min(_time(program, choice) for choice in _choices(program)) / 1000
    assert serial_us(program) <= least * (1 + 1e-9)
    if all(len(_readers(program, tensor)) == 1 for step in program for tensor in step.loads):
        assert serial_us(program) == pytest.approx(least)


def _readers(program: Sequence[Step], tensor: Hashable) -> list[int]:
    return [n for n, step in enumerate(program) if tensor in step.loads]


def _choices(program: Sequence[Step]) -> list[Mapping[Hashable, int]]:
    """In which step each tensor is loaded, in all orders of the steps."""
    tensors = sorted({str(tensor) for step in program for tensor in step.loads})
    found = list[Mapping[Hashable, int]]()
    for order in permutations(range(len(program))):
        if all(order.index(before) < order.index(n) for n, step in enumerate(program) for before in step.after):
            ways = product(*(_loading(program, order, tensor) for tensor in tensors))
            found += [dict(zip(tensors, way, strict=True)) for way in ways]
    return found


def _loading(program: Sequence[Step], order: Sequence[int], tensor: Hashable) -> list[int]:
    """The first reader; any, if the first one needs less than another one."""
    readers = _readers(program, tensor)
    first = min(readers, key=order.index)
    return [first] if program[first].loads[tensor] == max(program[n].loads[tensor] for n in readers) else readers


def _time(program: Sequence[Step], choice: Mapping[Hashable, int]) -> float:
    size = {t: max(s.loads.get(t, 0) for s in program) for t in choice}
    total = 0.0
    for number, step in enumerate(program):
        moved = step.stores + sum(size[tensor] for tensor, where in choice.items() if where == number)
        total += max(step.elements / SFU, step.local / LX, moved / HBM)
    return total


def test_the_profiles_of_the_model_are_those_of_the_oracle() -> None:
    assert (CALIBRATED.hbm_gb_per_s, CALIBRATED.pe_mac_per_ns_per_core) == (HBM, PE / 32)
    assert (CALIBRATED.sfu_elements_per_ns_per_core, CALIBRATED.lx_gb_per_s_per_core) == (SFU / 32, LX / 32)

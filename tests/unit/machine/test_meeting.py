"""Ranks that take turns, by calls made by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import AnyFloat, TensorType, f16, f32

from spyre_mlir.dialects.host_call import HostCall, OperandSlot
from spyre_mlir.errors import FaultKind, InputError, MachineFault
from spyre_mlir.machine.meeting import Meeting, here

Array = np.ndarray[Any, Any]


def called(
    name: str, x: Array, where: str, element: AnyFloat = f32, *, wide: bool = True, **arguments: object
) -> Array:
    type_ = TensorType(element, x.shape)
    said = {"input": OperandSlot(0), "group_name": "g", **arguments}
    meet = here()
    assert meet is not None
    (result,) = meet(HostCall(f"_c10d_functional::{name}", said, (type_,), (type_,), f"{name} at {where}"), [x], wide)
    return result


def reduced(rank: int, ranks: Sequence[int]) -> Array:
    return called("all_reduce", np.array([10.0**rank]), f"m.py:{rank}", reduce_op="sum", ranks=tuple(ranks))


def faulted(*ranks: Callable[[], object]) -> MachineFault:
    with pytest.raises(MachineFault) as fault:
        Meeting(len(ranks)).run(ranks)
    return fault.value


def test_groups_meet_by_themselves() -> None:
    groups = [(0, 2), (1, 3), (0, 2), (1, 3)]
    results = Meeting(4).run([lambda n=n: reduced(n, groups[n]) for n in range(4)])
    assert [r.tolist() for r in results] == [[101], [1010], [101], [1010]]


def test_ranks_run_in_order_and_one_at_a_time() -> None:
    seen: list[str] = []

    def rank(number: int) -> None:
        for step in range(2):
            seen.append(f"{number}{step}")
            reduced(number, (0, 1, 2))

    Meeting(3).run([lambda n=n: rank(n) for n in range(3)])
    assert seen == ["00", "10", "20", "01", "11", "21"]


def test_two_groups_in_another_order_wait_for_each_other() -> None:
    fault = faulted(lambda: reduced(0, (0, 1)), lambda: reduced(1, (1, 2)), lambda: reduced(2, (0, 2)))
    assert fault.kind is FaultKind.DEADLOCK
    assert "rank 0 waits for ranks 0, 1 in all_reduce at m.py:0" in fault.message
    assert "rank 1 waits for ranks 1, 2 in all_reduce at m.py:1" in fault.message
    assert "rank 2 waits for ranks 0, 2 in all_reduce at m.py:2" in fault.message


def test_a_member_that_the_run_does_not_have() -> None:
    fault = faulted(lambda: reduced(0, (0, 1)))
    assert fault.kind is FaultKind.DEADLOCK


def test_shapes_that_differ() -> None:
    def rank(number: int) -> Array:
        return called("all_reduce", np.ones(3 + number), f"m.py:{number}", reduce_op="sum", ranks=(0, 1))

    fault = faulted(lambda: rank(0), lambda: rank(1))
    assert fault.kind is FaultKind.MISMATCHED_COLLECTIVE
    assert "rank 0 has shape ((3,),) in all_reduce at m.py:0" in fault.message
    assert "rank 1 has shape ((4,),) in all_reduce at m.py:1" in fault.message


def test_parts_of_other_sizes_than_expected() -> None:
    def rank(number: int, sent: tuple[int, int], expected: tuple[int, int]) -> Array:
        x = np.arange(float(sum(sent)))
        sizes = {"input_split_sizes": sent, "output_split_sizes": expected}
        return called("all_to_all_single", x, f"m.py:{number}", ranks=(0, 1), **sizes)

    right = Meeting(2).run([lambda: rank(0, (1, 2), (1, 3)), lambda: rank(1, (3, 1), (2, 1))])
    assert [r.tolist() for r in right] == [[0, 0, 1, 2], [1, 2, 3]]
    fault = faulted(lambda: rank(0, (1, 2), (1, 2)), lambda: rank(1, (3, 1), (2, 1)))
    assert fault.kind is FaultKind.MISMATCHED_COLLECTIVE
    assert "rank 0 of the group expects (1, 2) rows and is sent (1, 3)" in fault.message


def test_the_first_rank_that_fails_ends_the_others() -> None:
    def fails() -> None:
        raise InputError("no such file")

    with pytest.raises(InputError, match="rank 1: no such file"):
        Meeting(2).run([lambda: reduced(0, (0, 1)), fails])


def test_outside_of_a_meeting() -> None:
    assert here() is None


def sums_of_halves(rows: Sequence[Sequence[float]], *, wide: bool) -> list[list[float]]:
    def of_rank(row: Sequence[float]) -> list[float]:
        return called("all_reduce", np.array(row), "m.py:1", f16, wide=wide, reduce_op="sum", ranks=(0, 1, 2)).tolist()

    return Meeting(3).run([partial(of_rank, row) for row in rows])


def test_sums_are_rounded_one_by_one_in_the_order_of_a_ring() -> None:
    """Of half precision, 2049 is 2048: so it counts whether both ones are added first, as for the first rank's part."""
    rows = [[2048.0] * 6, [1.0] * 6, [1.0] * 6]
    assert sums_of_halves(rows, wide=False) == [[2050.0] * 2 + [2048.0] * 4] * 3
    assert sums_of_halves(rows, wide=True) == [[2050.0] * 6] * 3


def test_parts_of_large_sums_are_those_of_segments_of_a_megabyte() -> None:
    """10,485,774 bytes are four such segments for each of three ranks: 436,908 elements each, rounded up."""
    large = [np.full(5_242_887, number) for number in (2048.0, 1.0, 1.0)]
    made = Meeting(3).run(
        [partial(called, "all_reduce", x, "m.py:1", f16, wide=False, reduce_op="sum", ranks=(0, 1, 2)) for x in large]
    )
    assert [int((x == 2050.0).sum()) for x in made] == [4 * 436_908] * 3

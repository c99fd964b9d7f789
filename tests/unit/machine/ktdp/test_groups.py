"""Groups of cores: who is in which, and when what they give each other is there."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import AffineSetAttr, TensorType, f16

from spyre_mlir.dialects.ktdp.cores import InterTileProduceOp, InterTileReduceOp
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.machine.ktdp.groups import Exchange, holds
from spyre_mlir.machine.ktdp.values import Data
from tests.unit.machine.ktdp.ktir_programs import attribute

TENSOR = TensorType(f16, [2])


def set_of(text: str) -> AffineSetAttr:
    return attribute(f"affine_set<{text}>")


FOURS = set_of("(i)[g] : (i - 4 * g >= 0, -i + 4 * g + 3 >= 0)")
FIRSTS = set_of("(i)[g] : (i - 4 * g == 0)")
TWO_GROUPS = set_of("(g) : (g >= 0, -g + 1 >= 0)")
PRODUCE = InterTileProduceOp(FOURS, TENSOR, TWO_GROUPS)
REDUCE = InterTileReduceOp.create(
    operands=[PRODUCE.future, PRODUCE.future],
    properties={"consumer_tiles_per_group": FIRSTS},
    result_types=[TENSOR],
)


@pytest.mark.parametrize(
    ("rule", "cores"),
    [("i - 2 * g >= 0", [2, 3, 4]), ("i - 2 * g <= 0", [0, 1, 2]), ("i - 2 * g == 0", [2]), ("i >= 2 * g", [2, 3, 4])],
)
def test_cores_that_a_rule_lets_in(rule: str, cores: list[int]) -> None:
    assert [core for core in range(5) if holds(set_of(f"(i)[g] : ({rule})"), core, 1)] == cores


def test_a_core_obeys_all_rules() -> None:
    assert [core for core in range(12) if holds(FOURS, core, 1)] == [4, 5, 6, 7]


def test_groups_and_their_cores() -> None:
    assert Exchange(8).members(TWO_GROUPS, FOURS) == {0: [0, 1, 2, 3], 1: [4, 5, 6, 7]}
    assert Exchange(6).members(TWO_GROUPS, FOURS) == {0: [0, 1, 2, 3], 1: [4, 5]}
    odd = set_of("(g) : (g >= 1, -g + 3 >= 0, g mod 2 - 1 == 0)")
    assert Exchange(20).members(odd, FIRSTS) == {1: [4], 3: [12]}
    exchange = Exchange(8)
    assert exchange.members(TWO_GROUPS, FOURS) is exchange.members(TWO_GROUPS, FOURS)


def test_a_core_in_two_groups_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="a core in two groups") as caught:
        Exchange(8).members(TWO_GROUPS, set_of("(i)[g] : (i - g >= 0, -i + g + 1 >= 0)"))
    assert caught.value.hint == "make groups disjoint"


def test_producers_and_consumers_have_groups_of_their_own() -> None:
    exchange = Exchange(9)
    assert [exchange.group(PRODUCE, core) for core in range(9)] == [0, 0, 0, 0, 1, 1, 1, 1, None]
    found = [exchange.consumer_group(REDUCE, PRODUCE, core) for core in range(9)]
    assert found == [0, None, None, None, 1, None, None, None, None]


def test_a_group_is_ready_when_all_its_producers_have_sent() -> None:
    exchange = Exchange(8)
    assert exchange.sent == 0
    for sent, core in enumerate((6, 4, 7), 1):
        exchange.publish(PRODUCE, 1, 1, core, Data(np.asarray([core, 0])), np.zeros(8, np.int64))
        assert exchange.sent == sent
        assert not exchange.ready(PRODUCE, 1, 1)
    exchange.publish(PRODUCE, 1, 1, 5, Data(np.asarray([5, 0])), np.zeros(8, np.int64))
    assert exchange.ready(PRODUCE, 1, 1)
    assert not exchange.ready(PRODUCE, 1, 0)
    assert not exchange.ready(PRODUCE, 2, 1)
    assert [partial.values.tolist() for partial in exchange.partials(PRODUCE, 1, 1)] == [[4, 0], [5, 0], [6, 0], [7, 0]]
    assert exchange.partials(PRODUCE, 2, 1) == []


def test_who_receives_knows_what_the_producers_had_done() -> None:
    """A core that publishes at its time 3 is known with time 4: what it did at 3 lies behind."""
    exchange = Exchange(3)
    mine = np.asarray([3, 0, 7])
    exchange.publish(PRODUCE, 1, 0, 0, Data(np.zeros(2)), mine)
    assert mine.tolist() == [3, 0, 7]
    exchange.publish(PRODUCE, 1, 0, 1, Data(np.zeros(2)), np.asarray([1, 5, 2]))
    theirs = np.asarray([0, 9, 1])
    exchange.learn(PRODUCE, 1, 0, theirs)
    assert theirs.tolist() == [4, 9, 7]
    exchange.learn(PRODUCE, 2, 0, theirs)
    assert theirs.tolist() == [4, 9, 7]


def test_who_is_no_consumer_gets_no_value() -> None:
    nothing = Exchange(8).nothing(REDUCE)
    assert nothing.values.shape == (2,)
    assert nothing.defined is not None
    assert not nothing.defined.any()

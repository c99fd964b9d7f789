"""A hash is computed once per object, and changes nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace

from spyre_mlir.hw.hashed_once import hashed_once

COMPUTED: list[int] = []


class Counted(int):
    def __hash__(self) -> int:
        COMPUTED.append(int(self))
        return super().__hash__()


@hashed_once
@dataclass(frozen=True)
class Pair:
    one: Counted
    other: int = 0


def test_a_hash_is_computed_once() -> None:
    pair = Pair(Counted(3))
    COMPUTED.clear()
    assert hash(pair) == hash(pair) == hash((3, 0))
    assert COMPUTED == [3]


def test_equal_objects_stay_equal_whether_hashed_or_not() -> None:
    hashed, fresh = Pair(Counted(4)), Pair(Counted(4))
    assert len({hashed, fresh}) == 1
    assert hashed == Pair(Counted(4))
    assert repr(hashed) == repr(Pair(Counted(4)))


def test_a_changed_copy_has_a_hash_of_its_own() -> None:
    pair = Pair(Counted(5), 1)
    assert hash(pair) == hash((5, 1))
    assert hash(replace(pair, other=2)) == hash((5, 2))

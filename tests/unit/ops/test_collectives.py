"""Which operators are collectives."""

from spyre_mlir.ops import ATEN
from spyre_mlir.ops.collectives import NAMES, NAMESPACE, WAIT, is_collective, overloads
from spyre_mlir.ops.table import Family


def test_collectives_are_those_of_the_table() -> None:
    declared = {overload for entry in ATEN if entry.family is Family.COLLECTIVE for overload in entry.overloads}
    assert declared == {overload for name in NAMES for overload in overloads(name)}
    assert all(map(is_collective, declared))


def test_a_wait_meets_no_rank() -> None:
    assert not is_collective(f"{NAMESPACE}::{WAIT}")
    assert not is_collective("all_reduce")

"""The table of ATen operations: one table, which every family has filled."""

from __future__ import annotations

from spyre_mlir.ops import ATEN
from spyre_mlir.ops.aten import ATEN as DECLARED
from spyre_mlir.ops.table import Family, Table


def test_the_package_gives_the_table_under_its_own_name() -> None:
    assert ATEN is DECLARED
    assert isinstance(ATEN, Table)
    assert ATEN.dialect == "aten"


def test_every_family_fills_it() -> None:
    assert {entry.family for entry in ATEN} == set(Family)

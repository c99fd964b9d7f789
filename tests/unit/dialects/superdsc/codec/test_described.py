"""Descriptors of ops with a skeleton in common: those that `describe` gives each by itself."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from spyre_mlir.dialects.superdsc.codec import described as module
from spyre_mlir.dialects.superdsc.codec.describe import describe_json
from spyre_mlir.dialects.superdsc.codec.described import described
from spyre_mlir.dialects.superdsc.codec.mirror import sdsc_from_json
from spyre_mlir.dialects.superdsc.dialect.ops import SdscOp
from spyre_mlir.errors import ReadError
from tests.paths import DATA
from tests.unit.dialects.superdsc.cases import CASES, Case

START = "startAddressCoreCorelet_"


def load(name: str) -> dict[str, Any]:
    return json.loads((DATA / f"{name}.json").read_text())


def op_of(value: dict[str, Any]) -> SdscOp:
    ((root, fields),) = value.items()
    return sdsc_from_json(root, fields)


def moved(value: dict[str, Any], change: Callable[[int], int], number: int) -> dict[str, Any]:
    """The same operation with another number, at other addresses."""
    ((root, fields),) = copy.deepcopy(value).items()
    for dsc in fields["dscs_"]:
        for body in dsc.values():
            for node in body["scheduleTree_"]:
                data = node[START]["data_"]
                node[START]["data_"] = {core: str(change(int(address))) for core, address in data.items()}
    return {f"{number}_{root.partition('_')[2]}": fields}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.file.rpartition("/")[2])
def test_ops_of_one_skeleton_differ_in_number_and_addresses(case: Case) -> None:
    first = load(case.file)
    for number, step in ((3, 128), (4, 1 << 20)):
        # Symbols are negative, addresses those of sticks.
        other = moved(first, lambda at, step=step: at - 5 if at < 0 else at + step, number)
        found, expected = described(op_of(other)), describe_json(other)
        assert found == expected
        assert (found.index, found.slices) == (number, expected.slices)
        assert [x.slices for x in found.operands] == [x.slices for x in expected.operands]


def test_an_op_of_a_known_skeleton_is_not_described(monkeypatch: pytest.MonkeyPatch) -> None:
    first = load(CASES[0].file)
    described(op_of(first))

    def forbidden(_: SdscOp) -> None:
        raise AssertionError("described")

    monkeypatch.setattr(module, "describe", forbidden)
    assert described(op_of(moved(first, lambda at: at - 5 if at < 0 else at + 256, 9))).index == 9


def test_addresses_of_no_stick_are_refused_whatever_was_described_before() -> None:
    value = load("superdsc_real/06_ReStickifyOpLx_lx")
    described(op_of(value))
    with pytest.raises(ReadError):
        described(op_of(moved(value, lambda at: at + 1, 5)))

"""Files that differ in their number and start addresses only: read once, and never mistaken for one another."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spyre_mlir.backend import twins
from spyre_mlir.backend.json_file import dump_text
from spyre_mlir.backend.twins import read_descriptor
from spyre_mlir.dialects.superdsc.codec.describe import describe_json
from spyre_mlir.errors import ReadError
from spyre_mlir.hw.spec import SPYRE
from tests.unit.machine.programs import dsc_of, load

ADD = "a32_add_128x256_32core"
START = "startAddressCoreCorelet_"


@pytest.fixture(autouse=True)
def fresh() -> None:
    twins._read.clear()  # pyright: ignore[reportPrivateUsage]


def file(folder: Path, value: dict[str, Any], name: str = "sdsc_0.json") -> Path:
    path = folder / name
    path.write_text(dump_text(value), encoding="utf-8")
    return path


def moved(value: dict[str, Any], by: int, number: int = 7) -> dict[str, Any]:
    """The same operation at other addresses, with another number."""
    changed = copy.deepcopy(value)
    for node in dsc_of(changed)["scheduleTree_"]:
        data = node[START]["data_"]
        node[START]["data_"] = {core: str(int(address) + by) for core, address in data.items()}
    ((root, fields),) = changed.items()
    return {f"{number}_{root.partition('_')[2]}": fields}


def forbidden(*_: object) -> None:
    raise AssertionError("read in full")


def test_a_twin_is_not_read_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    value = load(ADD)
    assert read_descriptor(file(tmp_path, value), SPYRE) == describe_json(value)
    monkeypatch.setattr(twins, "read_json", forbidden)
    other = moved(value, 1 << 20)
    found, expected = read_descriptor(file(tmp_path, other, "sdsc_7.json"), SPYRE), describe_json(other)
    assert found == expected
    assert (found.index, found.slices) == (7, expected.slices)
    assert found.operands[1].start[3] == expected.operands[1].start[3] != describe_json(value).operands[1].start[3]


def _size(value: dict[str, Any]) -> None:
    dsc_of(value)["N_"]["mb_"] *= 2


def _function(value: dict[str, Any]) -> None:
    dsc_of(value)["computeOp_"][0]["opFuncName"] = "sub"


def _slices(value: dict[str, Any]) -> None:
    table = next(iter(value.values()))["coreIdToWkSlice_"]
    table["0"], table["1"] = table["1"], table["0"]


@pytest.mark.parametrize("change", [_size, _function, _slices])
def test_any_other_difference_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[dict[str, Any]], None]
) -> None:
    value = load(ADD)
    read_descriptor(file(tmp_path, value), SPYRE)
    change(value)
    monkeypatch.setattr(twins, "read_json", forbidden)
    with pytest.raises(AssertionError, match="read in full"):
        read_descriptor(file(tmp_path, moved(value, 128)), SPYRE)


@pytest.mark.parametrize("by", [1, -(1 << 40)])
def test_wrong_addresses_are_refused_as_in_the_first_file(tmp_path: Path, by: int) -> None:
    value = load(ADD)
    read_descriptor(file(tmp_path, value), SPYRE)
    with pytest.raises(ReadError, match=r"start address of core .*, which is no multiple|negative ids need") as caught:
        read_descriptor(file(tmp_path, moved(value, by), "sdsc_1.json"), SPYRE)
    assert "sdsc_1.json" in (caught.value.where or "")


@pytest.mark.parametrize("text", ["0128", "+128", "128.0", " 128"])
def test_numbers_spelled_in_another_way_are_read_in_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    value = load(ADD)
    read_descriptor(file(tmp_path, value), SPYRE)
    dsc_of(value)["scheduleTree_"][0][START]["data_"]["[0, 0, 0]"] = text
    monkeypatch.setattr(twins, "read_json", forbidden)
    with pytest.raises(AssertionError, match="read in full"):
        read_descriptor(file(tmp_path, value), SPYRE)


def test_numbers_in_an_object_further_inside_are_not_taken_for_addresses(tmp_path: Path) -> None:
    value = load(ADD)
    for node in dsc_of(value)["scheduleTree_"]:
        held = node[START].pop("data_")
        node[START] |= {"more": {"data_": dict(held)}, "data_": held}
    assert read_descriptor(file(tmp_path, value), SPYRE) == describe_json(value)
    for node in dsc_of(value)["scheduleTree_"]:
        node[START]["more"]["data_"] = dict.fromkeys(node[START]["data_"], "0")
    assert read_descriptor(file(tmp_path, value), SPYRE) == describe_json(value)


def test_another_card_is_another_check(tmp_path: Path) -> None:
    path = file(tmp_path, load(ADD))
    read_descriptor(path, SPYRE)
    with pytest.raises(ReadError, match="numCoresUsed_ is 32, the card has 16 cores"):
        read_descriptor(path, replace(SPYRE, cores_per_card=16))


def test_only_so_many_files_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(twins, "_KEPT", 1)
    one, other = file(tmp_path, load(ADD)), file(tmp_path, load("d32_clamp_128x256"), "sdsc_1.json")
    for path in (one, other):
        read_descriptor(path, SPYRE)
    monkeypatch.setattr(twins, "read_json", forbidden)
    read_descriptor(other, SPYRE)
    with pytest.raises(AssertionError, match="read in full"):
        read_descriptor(one, SPYRE)

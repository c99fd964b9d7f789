"""How two readings of a file's addresses are compared, and which files count as the same."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, OpClass
from spyre_mlir.hw.spec import SPYRE
from tests import conftest, emitted
from tests.emitted import (
    SEGMENT_BYTES,
    assert_same,
    check_built_once,
    content_key,
    descriptor_key,
    is_chosen,
    key_of,
    let_pass,
)

if TYPE_CHECKING:
    from spyre_mlir.dialects.superdsc.dialect.ops import SdscOp

COORDS = {"mb": np.asarray([0, 0, 1, 1]), "out": np.asarray([2, 3, 2, 3])}
ADDRESSES = np.asarray([0, 2, 4, 6])


def reordered(order: list[int]) -> dict[str, np.ndarray]:
    return {name: values[order] for name, values in COORDS.items()}


def test_the_order_of_elements_does_not_matter() -> None:
    assert_same("file", COORDS, ADDRESSES, reordered([3, 1, 0, 2]), ADDRESSES[[3, 1, 0, 2]])
    assert_same("file", {}, np.asarray([8]), {}, np.asarray([8]))


@pytest.mark.parametrize(
    ("order", "addresses"),
    [
        ([0, 1, 2, 3], [0, 2, 4, 8]),  # another address
        ([0, 1, 3, 2], [0, 2, 4, 6]),  # two exchanged
        ([0, 0, 1, 2], [0, 0, 2, 4]),  # an element twice, one not at all
        ([0, 1, 2], [0, 2, 4]),
    ],
)
def test_a_difference_is_seen(order: list[int], addresses: list[int]) -> None:
    with pytest.raises(AssertionError):
        assert_same("file", COORDS, ADDRESSES, reordered(order), np.asarray(addresses))


def test_a_share_is_chosen_by_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [sha256(str(n).encode()).hexdigest() for n in range(400)]
    monkeypatch.setattr(emitted, "SHARE", 4)
    assert 60 < sum(map(is_chosen, keys)) < 140
    monkeypatch.setattr(emitted, "SHARE", 1)
    assert all(map(is_chosen, keys))


def test_the_number_of_an_operation_does_not_choose() -> None:
    third = Descriptor(3, "add", "sfp", OpClass.POINTWISE, (), ())
    assert descriptor_key(third) == descriptor_key(replace(third, index=4)) != descriptor_key(replace(third, unit="pt"))


def test_an_operation_outside_the_share_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(emitted, "sdsc_to_json", str)
    monkeypatch.setattr(emitted, "check_value", lambda name, value, spec: written.append(value))
    descriptor = Descriptor(0, "add", "sfp", OpClass.POINTWISE, (), ())
    op = cast("SdscOp", SimpleNamespace(root_key="0_add"))
    for share, least, most in ((1, 40, 40), (4, 3, 20)):
        monkeypatch.setattr(emitted, "SHARE", share)
        written.clear()
        for mask in range(40):
            check_built_once(op, replace(descriptor, mask_constant=mask))
        assert least <= len(written) <= most


@dataclass
class Started:
    """What is read of a run's configuration."""

    args_source: pytest.Config.ArgsSource
    markexpr: str = "not slow and not long"

    @property
    def option(self) -> Started:
        return self


@pytest.mark.parametrize(
    ("started", "share"),
    [
        (Started(pytest.Config.ArgsSource.TESTPATHS), "12"),
        (Started(pytest.Config.ArgsSource.TESTPATHS, "slow"), None),
        (Started(pytest.Config.ArgsSource.ARGS), None),
    ],
)
def test_a_run_of_some_tests_checks_all(started: Started, share: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {})
    conftest.pytest_configure(cast("pytest.Config", started))
    assert os.environ.get("SPYRE_TESTS_SHARE") == share


FILE = {"3_add": {"start": ["-7", "-8"], "factor": -1}}


def test_number_symbols_and_segment_make_no_other_file() -> None:
    other = {"12_add": {"start": ["-1", "-2"], "factor": -1}}
    assert key_of(FILE, {-7: 128, -8: 64}) == key_of(other, {-1: SEGMENT_BYTES + 128, -2: SEGMENT_BYTES + 64})


@pytest.mark.parametrize(
    ("other", "symbols"),
    [
        ({"3_add": {"start": ["-7", "-8"], "factor": -1}}, {-7: 64, -8: 128}),
        ({"3_add": {"start": ["-7", "-8"], "factor": -1}}, {-7: SEGMENT_BYTES + 128, -8: 64}),
        ({"3_add": {"start": ["-8", "-7"], "factor": -1}}, {-7: 128, -8: 64}),
        ({"3_add": {"start": ["-7", "-7"], "factor": -1}}, {-7: 128, -8: 64}),
        ({"3_add": {"start": ["-7", "-8"], "factor": -2}}, {-7: 128, -8: 64}),
        ({"3_mul": {"start": ["-7", "-8"], "factor": -1}}, {-7: 128, -8: 64}),
        ({"third_add": {"start": ["-7", "-8"], "factor": -1}}, {-7: 128, -8: 64}),
    ],
)
def test_everything_else_makes_another_file(other: dict[str, Any], symbols: dict[int, int]) -> None:
    assert key_of(other, symbols) != key_of(FILE, {-7: 128, -8: 64})


def test_what_is_right_for_one_card_is_looked_at_for_another() -> None:
    large = replace(SPYRE, cores_per_card=64)
    assert key_of(FILE, {}) == key_of(FILE, {}, SPYRE) != key_of(FILE, {}, large)


def written(directory: Path, files: dict[str, bytes]) -> str:
    for name, content in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(content)
    return content_key(directory)


def test_directories_of_the_same_files_have_one_key(tmp_path: Path) -> None:
    files = {"bundle.mlir": b"a", "launch_0/sdsc_0.json": b"b"}
    key = written(tmp_path / "one", files)
    assert written(tmp_path / "two", files) == key
    for number, other in enumerate(
        [files | {"bundle.mlir": b"c"}, files | {"weights": b""}, {"bundle.mlir": b"a", "launch_1/sdsc_0.json": b"b"}]
    ):
        assert written(tmp_path / f"other {number}", other) != key
    with let_pass("dead-store"):
        assert content_key(tmp_path / "one") != key

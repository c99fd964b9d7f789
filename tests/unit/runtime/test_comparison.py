"""A bundle on the stand-in of a card, held against the machine."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from spyre_mlir.errors import InputError
from spyre_mlir.runtime import compare_with_card, comparison, find_card
from spyre_mlir.runtime.finding import CardSoftware

pytestmark = pytest.mark.usefixtures("stand_in")
FUNCTIONS = ["batchmatmul", "add", "relufwd"]
X = np.random.default_rng(1).uniform(-1, 1, (64, 128)).astype(np.float32)


def test_every_kernel_agrees(card: CardSoftware, apart: Path) -> None:
    found = compare_with_card(apart, card, {"x": X})
    assert found, str(found)
    assert [kernel.function for kernel in found.kernels] == FUNCTIONS
    assert [kernel.verdict for kernel in found.kernels] == ["agrees"] * 3
    assert 0 < max(kernel.error or 0.0 for kernel in found.kernels) < 1e-3
    assert "3 kernels: 3 agrees" in str(found)
    assert all("conftest.py" in kernel.source for kernel in found.kernels)


def test_a_wrong_kernel_is_named_and_later_ones_do_not_inherit_it(
    card: CardSoftware, apart: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN_IS_WRONG_AT", "sdsc_1")
    found = compare_with_card(apart, card, {"x": X})
    assert not found
    assert [kernel.verdict for kernel in found.kernels] == ["agrees", "differs", "agrees"]


@pytest.mark.parametrize(
    ("got", "expected", "written", "error"),
    [
        ([1.0, 2.0], [1.0, 4.0], [True, True], 0.5),
        ([1.0, 5.0], [1.0, np.nan], [True, True], np.inf),
        ([1.0, np.nan], [1.0, np.nan], [True, True], 0.0),
        ([np.nan, 1.0], [1.0, 1.0], [True, True], np.inf),
        ([-np.inf, 1.0], [np.inf, 1.0], [True, True], np.inf),
        ([1.0, 5.0], [1.0, np.nan], [True, False], 0.0),
    ],
)
def test_numbers_that_are_none_agree_or_differ(
    got: list[float], expected: list[float], written: list[bool], error: float
) -> None:
    assert comparison._error(np.array(got), np.array(expected), np.array(written)) == error


def test_a_failing_and_a_dying_step_leave_the_others(
    card: CardSoftware, apart: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN_FAILS_AT", "sdsc_0")
    monkeypatch.setenv("STAND_IN_DIES_AT", "sdsc_1")
    found = compare_with_card(apart, card)
    assert [kernel.verdict for kernel in found.kernels] == ["failed", "failed", "agrees"]
    assert found.kernels[0].reason == "RuntimeError: the stand-in was told to fail"
    assert "ended by signal 9" in found.kernels[1].reason


def test_kernels_tied_by_scratchpads_go_together(card: CardSoftware, tied: Path, tmp_path: Path) -> None:
    found = compare_with_card(tied, card, {"x": X}, keep=tmp_path / "kept")
    assert found
    assert [kernel.verdict for kernel in found.kernels] == ["not seen"] * 2 + ["agrees"]
    assert [path.name for path in sorted(tmp_path.glob("kept/*/"))] == ["step_0_sdsc_0-sdsc_2"]


def test_a_bundle_of_public_files_only(card: CardSoftware, apart: Path, tmp_path: Path) -> None:
    for path in [apart / "bundle.mlir", *apart.glob("sdsc_*.json")]:
        shutil.copy(path, tmp_path)
    found = compare_with_card(tmp_path, card)
    assert [kernel.verdict for kernel in found.kernels] == ["agrees"] * 3


def test_compilation_alone(apart: Path) -> None:
    card = find_card(runs=False)
    assert card.python is None
    found = compare_with_card(apart, card)
    assert found
    assert {kernel.verdict for kernel in found.kernels} == {"compiled"}


def test_what_a_transfer_cannot_hold_is_not_run(apart: Path) -> None:
    found = compare_with_card(apart, find_card(runs=False), {"x": X * 1e6})
    assert found.kernels[0].verdict == "not run"
    assert "are beyond float16" in found.kernels[0].reason


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"inputs": {"z": X}}, "the program has no argument 'z'"),
        ({"tolerance": -1.0}, r"a tolerance of -1\.0"),
        ({"tolerance": float("nan")}, "a tolerance of nan"),
    ],
)
def test_bad_input(changed: dict[str, object], message: str, apart: Path) -> None:
    with pytest.raises(InputError, match=message):
        compare_with_card(apart, find_card(runs=False), **changed)  # type: ignore[arg-type]


def test_the_place_for_steps_is_new(apart: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    with pytest.raises(InputError, match="the place for the steps is not empty"):
        compare_with_card(apart, find_card(runs=False), keep=tmp_path)

"""Runs of a bundle that somebody else wrote: two additions on two cores, by hand; and the stand-in of a card."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from spyre_mlir.cli import run as run_tool
from spyre_mlir.cli.run_external import NOT_KNOWN, foreign_at, run_foreign_files
from spyre_mlir.errors import InputError
from spyre_mlir.machine.bundle.external_bundle import ExternalProgram, ExternalTensor, described, random_value
from spyre_mlir.machine.faults import FaultLog
from spyre_mlir.machine.options import MachineOptions
from tests.card.conftest import stand_in
from tests.paths import DATA
from tests.unit.backend.check.bundles import write

__all__ = ["stand_in"]
BYTES = 128 * 256 * 2
A, B, C = "sdsc_0.Tensor0", "sdsc_0.Tensor1", "sdsc_1.Tensor2"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("bundles") / "bundle")


@pytest.fixture
def program(directory: Path) -> ExternalProgram:
    found = foreign_at(directory)
    assert found is not None
    return found


def test_a_bundle_without_our_files_is_one_of_others(program: ExternalProgram) -> None:
    """The second addition reads what the first one wrote, and the second operand of the first."""
    assert [step.name for step in program.steps] == ["sdsc_0", "sdsc_1"]
    assert [tensor.name for tensor in program.inputs] == [A, B]
    assert [tensor.name for tensor in program.results] == [C]


def test_a_file_alone_is_a_program() -> None:
    found = foreign_at(DATA / "superdsc_worked/a1_add_128x256_1core.json")
    assert found is not None
    assert [step.name for step in found.steps] == ["a1_add_128x256_1core"]


@pytest.mark.parametrize("ours", ["program.mlir", "manifest.json"])
def test_a_bundle_of_ours_is_not(ours: str, directory: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(directory, tmp_path / "bundle")
    assert foreign_at(copy) is not None
    (copy / ours).touch()
    assert foreign_at(copy) is None


def test_anything_else_is_not(tmp_path: Path) -> None:
    assert foreign_at(tmp_path) is None
    assert foreign_at(tmp_path / "none.json") is None
    (tmp_path / "bundle.mlir").mkdir()
    assert foreign_at(tmp_path) is None
    (tmp_path / "a.mlir").touch()
    assert foreign_at(tmp_path / "a.mlir") is None


def test_a_run_on_values_that_are_given(program: ExternalProgram) -> None:
    given = {A: np.full((128, 256), 3.0), "Tensor1": np.full((128, 256), 0.5)}
    account, results, seen = run_foreign_files(program, given, 0, MachineOptions(), FaultLog())
    assert {name: np.unique(value).tolist() for name, value in results.items()} == {C: [4.0]}
    assert results[C].shape == (128, 256)
    assert [(one.name, one.function, np.unique(one.values).tolist()) for one in seen] == [
        ("sdsc_0", "add", [3.5]),
        ("sdsc_1", "add", [4.0]),
    ]
    assert [one.op for one in seen] == [step.op for step in program.steps]
    lines = account.splitlines()
    assert lines[:5] == [
        "ran 2 launches of 2 files",
        f"  sdsc_0: add on 2 cores, reads {2 * BYTES:,} bytes, writes {BYTES:,}",
        f"  sdsc_1: add on 2 cores, reads {2 * BYTES:,} bytes, writes {BYTES:,}",
        f"  together {4 * BYTES:,} bytes read, {2 * BYTES:,} written",
        "inputs:",
    ]
    first, second = described(program.inputs)
    assert lines[5:8] == [f"  {first}, given", f"  {second}, given", "results:"]
    assert lines[8:9] == [f"  {line}" for line in described(program.results)]
    assert account.endswith(f"\n{NOT_KNOWN}")
    assert len(lines) == 9 + NOT_KNOWN.count("\n")


def test_what_is_not_given_is_random_from_the_seed(program: ExternalProgram) -> None:
    values: dict[int, list[float]] = {}
    for seed in (0, 0, 1):
        account, results, _ = run_foreign_files(program, {A: np.zeros((128, 256))}, seed, MachineOptions(), FaultLog())
        first, second = described(program.inputs)
        assert account.splitlines()[5:7] == [f"  {first}, given", f"  {second}, random"]
        found = results[C].ravel().tolist()
        assert values.setdefault(seed, found) == found
    assert values[0] != values[1]
    # The only random value is the second operand, which is added twice.
    tensor: ExternalTensor = program.inputs[1]
    expected = random_value(tensor, np.random.default_rng(1))
    np.testing.assert_allclose(np.reshape(values[1], (128, 256)), 2 * expected, atol=2**-8)


def test_one_launch_of_one_file_on_one_core() -> None:
    found = foreign_at(DATA / "superdsc_worked/a1_add_128x256_1core.json")
    assert found is not None
    account, _, _ = run_foreign_files(found, {}, 0, MachineOptions(), FaultLog())
    first, second, *_ = account.splitlines()
    assert first == "ran 1 launch of 1 file"
    assert second.startswith("  a1_add_128x256_1core: add on 1 core, reads ")


def test_the_run_is_told_where_faults_go(program: ExternalProgram) -> None:
    """Numbers beyond DLFloat16 are kept in the log that was given."""
    met = FaultLog()
    given = {A: np.full((128, 256), 6e9), B: np.full((128, 256), 6e9)}
    run_foreign_files(program, given, 0, MachineOptions(numerics="device"), met)
    assert met.overflows


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x", "the bundle has no input 'x'"),
        ("sdsc_1.Tensor1", "the bundle has no input 'sdsc_1.Tensor1'"),
        ("Tensor2", "the bundle has no input 'Tensor2'"),
    ],
)
def test_a_value_of_no_input_is_refused(name: str, message: str, program: ExternalProgram) -> None:
    with pytest.raises(InputError) as caught:
        run_foreign_files(program, {name: np.zeros(1)}, 0, MachineOptions(), FaultLog())
    assert (caught.value.message, caught.value.hint) == (message, f"its inputs are {A}, {B}")


def test_a_value_of_several_inputs_is_refused(program: ExternalProgram) -> None:
    """Apart, the additions have a first operand each."""
    twice = ExternalProgram((program.steps[1], program.steps[0]))
    with pytest.raises(InputError) as caught:
        run_foreign_files(twice, {"Tensor0": np.zeros(1)}, 0, MachineOptions(), FaultLog())
    assert caught.value.message == "the bundle has several inputs 'Tensor0'"


def test_a_program_without_inputs_says_so() -> None:
    with pytest.raises(InputError) as caught:
        run_foreign_files(ExternalProgram(()), {"x": np.zeros(1)}, 0, MachineOptions(), FaultLog())
    assert caught.value.hint == "its inputs are none"


@pytest.mark.usefixtures("stand_in")
def test_verdicts_and_exit_codes(
    bundle: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_tool.run([str(bundle), "--card", "run"]) == 0
    assert "card: 3 kernels: 2 not seen, 1 agrees" in capsys.readouterr().out
    monkeypatch.setenv("STAND_IN_IS_WRONG_AT", "sdsc_0")
    assert run_tool.run([str(bundle), "--card", "run"]) == 3
    assert "1 differs" in capsys.readouterr().out


@pytest.mark.usefixtures("stand_in")
def test_compilation_alone_by_a_card(bundle: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run_tool.run([str(bundle), "--card", "compile", "--card-keep", str(tmp_path / "steps")]) == 0
    assert "3 compiled" in capsys.readouterr().out
    assert list(tmp_path.glob("steps/*/spyreCodeDir/spyrecode.json"))


def test_without_a_card(refused: Callable[..., str], bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    refused(run_tool.run, [bundle, "--card", "run"], "no back-end compiler", "no module 'torch_spyre'", code=2)


def test_what_cannot_be_given_to_a_card(refused: Callable[..., str], bundle: Path) -> None:
    refused(run_tool.run, [bundle / "program.mlir", "--card", "run"], "a card is given bundle directories")
    refused(run_tool.run, [bundle, "--card", "run", "--bisect"], "--card compares in device numerics")

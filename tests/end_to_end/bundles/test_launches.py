"""Programs of several launches, or of none, on disk: a folder per launch, and everything that reads them."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from xdsl.dialects.builtin import ModuleOp

import spyre_mlir
from spyre_mlir.backend.check import check_bundle
from spyre_mlir.backend.stored import read_bundle
from spyre_mlir.backend.translate import directory_to_module, module_to_directory
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import ReadError, UnsupportedError
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.universe import make_context

pytestmark = pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")
SCRIPT = "import sys; from spyre_mlir.cli.run import run; sys.exit(run(sys.argv[1:]))"


class Waves(torch.nn.Module):
    """Kernels, a host step, kernels; a weight for the device and one for the host."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.inner, self.own = torch.nn.Linear(16, 16), torch.nn.Parameter(torch.randn(16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.special.bessel_j1(self.inner(x)) @ self.inner.weight) + torch.special.i1e(self.own)


class Alone(torch.nn.Module):
    """Nothing for the device."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.special.bessel_j1(x)


def compiled(model: torch.nn.Module) -> tuple[CompiledModel, torch.Tensor]:
    x = torch.linspace(-2, 2, 64).reshape(4, 16)
    made = spyre_mlir.compile(model, (x,))
    assert isinstance(made, CompiledModel)
    return made, x


@pytest.fixture(scope="module")
def waves() -> tuple[CompiledModel, torch.Tensor]:
    return compiled(Waves())


@pytest.fixture
def saved(waves: tuple[CompiledModel, torch.Tensor], tmp_path: Path) -> Path:
    return waves[0].save(tmp_path / "waves", levels=True)


def run_in_another_process(directory: Path, x: torch.Tensor, *options: str, python: Sequence[str]) -> np.ndarray:
    np.save(directory.parent / "x.npy", x.numpy())
    out = directory.parent / "results"
    words = [str(directory), "--input", f"x={directory.parent / 'x.npy'}", "--output", str(out), *options]
    done = subprocess.run([*python, "-c", SCRIPT, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return np.load(next(out.glob("*.npy")))


def test_a_folder_per_launch(saved: Path) -> None:
    assert not (saved / "bundle.mlir").exists()
    for number in (0, 1):
        folder = saved / f"launch_{number}"
        assert "func.func @sdsc_bundle(" in (folder / "bundle.mlir").read_text()
        assert list(folder.glob("sdsc_*.json"))
    names = [p.name for p in saved.glob("launch_*/sdsc_*.json")]
    assert sorted(names) == sorted(f"sdsc_{n}.json" for n in range(len(names)))
    assert not check_bundle(saved, make_context())


def test_another_process_runs_it(waves: tuple[CompiledModel, torch.Tensor], saved: Path, python: list[str]) -> None:
    model, x = waves
    got = run_in_another_process(saved, x, "--numerics", "device", python=python)
    assert np.array_equal(got, model(x).detach().numpy())


def test_a_program_of_the_host_alone(tmp_path: Path, python: list[str]) -> None:
    model, x = compiled(Alone())
    assert model.verify(x)
    assert "kernels" in str(model.report())
    directory = model.save(tmp_path / "alone")
    assert not list(directory.rglob("sdsc_*.json"))
    assert not check_bundle(directory, make_context())
    got = run_in_another_process(directory, x, python=python)
    assert np.allclose(got, torch.special.bessel_j1(x.double()).numpy())


def test_the_same_directory_is_written_again(waves: tuple[CompiledModel, torch.Tensor], saved: Path) -> None:
    before = {p.relative_to(saved): p.read_bytes() for p in saved.rglob("*") if p.is_file()}
    waves[0].save(saved, levels=True)
    assert before == {p.relative_to(saved): p.read_bytes() for p in saved.rglob("*") if p.is_file()}


def test_a_missing_folder_is_named(saved: Path) -> None:
    shutil.rmtree(saved / "launch_1")
    with pytest.raises(ReadError, match="cannot be read") as error:
        read_bundle(saved, make_context())
    assert "launch_1" in str(error.value)
    assert check_bundle(saved, make_context())


def test_a_missing_file_is_named(saved: Path) -> None:
    gone = next((saved / "launch_1").glob("sdsc_*.json"))
    gone.unlink()
    with pytest.raises(ReadError, match=gone.name):
        read_bundle(saved, make_context())


def test_public_files_as_one_module_and_back(saved: Path, tmp_path: Path) -> None:
    module = directory_to_module(saved, make_context())
    assert isinstance(module, ModuleOp)
    module_to_directory(module, tmp_path / "again", "a test")
    for folder in ("launch_0", "launch_1"):
        for path in (saved / folder).glob("sdsc_*.json"):
            assert (tmp_path / "again" / folder / path.name).read_text() == path.read_text()
        assert "@sdsc_bundle(" in (tmp_path / "again" / folder / "bundle.mlir").read_text()


def test_the_divergence_is_found_behind_a_host_step(waves: tuple[CompiledModel, torch.Tensor]) -> None:
    model, x = waves
    path = max((model.bundle_directory() / "launch_1").glob("sdsc_*.json"))
    kept = path.read_text()
    try:
        path.write_text(kept.replace('"add"', '"sub"'))
        model.reload()
        outcome = model.verify(x)
        assert not outcome
        assert outcome.divergence is not None
        assert outcome.divergence.file == path.name
    finally:
        path.write_text(kept)
        model.reload()


def test_probes_reach_every_launch(waves: tuple[CompiledModel, torch.Tensor]) -> None:
    model, x = waves
    count = len(list(model.bundle_directory().glob("launch_*/sdsc_*.json")))
    last = model.probe(f"sdsc_{count - 1}", x)
    assert np.allclose(last, Waves().double()(x.double()).detach().numpy(), atol=1e-5)
    assert model.probe("spyre.kernel:%" + _host_value(model), x).shape == (4, 16)


def _host_value(model: CompiledModel) -> str:
    text = model.mlir("spyre.kernel")
    line = next(line for line in text.splitlines() if '"aten.special_bessel_j1"' in line)
    return line.split("=")[0].strip().removeprefix("%")


def test_nobody_runs_a_host_step_without_an_executor(waves: tuple[CompiledModel, torch.Tensor]) -> None:
    model, x = waves
    module = model._lowered.modules["spyre.loop"]  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(UnsupportedError, match="has no host to run"):
        run_function(module, model._inputs((x,), {}))  # pyright: ignore[reportPrivateUsage]

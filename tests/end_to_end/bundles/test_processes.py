"""Bundles that other processes write: killed at any point, and under other orders of sets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.paths import ROOT
from tests.unit.backend.llama_layers import llama_layer


@pytest.fixture(scope="module")
def layer_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A Llama layer at the superdsc level, and its values, as files that need no torch."""
    compiled, _ = llama_layer()
    folder = tmp_path_factory.mktemp("layer")
    (folder / "module.mlir").write_text(compiled.mlir("superdsc"))
    values = {name: value.detach().numpy() for name, value in compiled._program.values.items()}
    np.savez(folder / "values.npz", **values)
    return folder / "module.mlir", folder / "values.npz"


def killed(files: tuple[Path, Path], folder: Path, times: int, seed: int) -> list[str]:
    words = [*map(str, files), str(folder), str(times), str(seed)]
    command = [sys.executable, "-m", "tests.end_to_end.bundles.killed_writer", *words]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()


def test_a_killed_writer_leaves_no_bundle_or_a_whole_one(layer_files: tuple[Path, Path], tmp_path: Path) -> None:
    left = killed(layer_files, tmp_path, 6, 0)
    assert len(left) == 6
    assert set(left) <= {"none", "old", "new"}


@pytest.mark.slow(reason="fifty processes; the default run kills six")
def test_a_writer_killed_at_fifty_points(layer_files: tuple[Path, Path], tmp_path: Path) -> None:
    left = killed(layer_files, tmp_path, 50, 1)
    assert len(left) == 50
    assert set(left) == {"none", "old", "new"}  # early, late, and in place of an older one


WRITE = """
import sys
from pathlib import Path
import numpy as np
from spyre_mlir.backend.directory import write_bundle
from spyre_mlir.pipeline import lower
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context
module = parse_module(Path(sys.argv[1]).read_bytes(), make_context(), "layer.mlir")
with np.load(sys.argv[2]) as stored:
    values = {name: stored[name] for name in stored.files}
write_bundle(Path(sys.argv[3]), lower(module, make_context()).modules["superdsc"], values)
"""


def test_two_processes_write_the_same_bytes(layer_files: tuple[Path, Path], tmp_path: Path) -> None:
    """Lowered from aten and written under two orders of sets."""
    (tmp_path / "aten.mlir").write_text(llama_layer()[0].mlir("aten"))
    for seed in ("1", "4242"):
        words = [str(tmp_path / "aten.mlir"), str(layer_files[1]), str(tmp_path / seed)]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", WRITE, *words], cwd=ROOT, env=environment, check=True)
    first, second = ({p.name: p.read_bytes() for p in (tmp_path / seed).iterdir()} for seed in ("1", "4242"))
    assert sorted(first) == sorted(second)
    assert [name for name in first if first[name] != second[name]] == []

"""The tools as people start them: xDSL's own xdsl-opt finds us, and a checkout's launchers work from anywhere."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SOFTMAX = """\
func.func @main(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %0 = aten.softmax.int(%x) {dim = -1 : i64} : (tensor<4x64xf32>) -> tensor<4x64xf32>
  func.return %0 : tensor<4x64xf32>
}
"""


def shell(command: list[str], path: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def installed(tmp_path: Path) -> str:
    """A search path on which the project is installed, as an editable install would do it."""
    metadata = tmp_path / "site" / "spyre_mlir-0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: spyre-mlir\nVersion: 0\n")
    groups = {"console_scripts": PROJECT["scripts"], **PROJECT["entry-points"]}
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in entries.items()) for group, entries in groups.items()]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    return f"{metadata.parent}{os.pathsep}{ROOT}"


def test_plain_xdsl_opt_runs_our_passes(installed: str, tmp_path: Path) -> None:
    (tmp_path / "softmax.mlir").write_text(SOFTMAX)
    command = [sys.executable, "-P", "-m", "xdsl.tools.xdsl_opt", "softmax.mlir", "-p", "decompose-aten"]
    done = shell(command, installed, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "aten.softmax" not in done.stdout
    assert "aten.exp" in done.stdout


@pytest.mark.parametrize("name", PROJECT["scripts"])
def test_scripts_exist(name: str) -> None:
    module, _, function = PROJECT["scripts"][name].partition(":")
    code = f"import sys; from {module} import {function}; sys.exit({function}(['--help']))"
    done = shell([sys.executable, "-c", code], str(ROOT), ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    assert name in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="the launchers are shell scripts")
@pytest.mark.parametrize("name", PROJECT["scripts"])
def test_launchers_work_from_any_directory(name: str, tmp_path: Path) -> None:
    # Without a .venv in the checkout the launchers take python3 of the path.
    (tmp_path / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (tmp_path / "python3").chmod(0o755)
    (tmp_path / "link").symlink_to(ROOT / "tools" / name)
    (tmp_path / "xdsl.py").write_text("raise SystemExit('a file of the working directory was imported')")
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("PYTHONPATH", None)
    command = [str(tmp_path / "link"), "--help"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert name in done.stdout

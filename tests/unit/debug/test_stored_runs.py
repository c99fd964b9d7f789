"""Runs of bundles from disk: a kernel by hand, and a host step that torch computes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from spyre_mlir.backend.stored import StoredBundle, read_bundle
from spyre_mlir.backend.translate import module_to_directory
from spyre_mlir.debug.stored_runs import launch_probes, stored_program
from spyre_mlir.errors import InputError
from spyre_mlir.machine.bundle.host_program import run_program
from spyre_mlir.machine.options import MachineOptions
from spyre_mlir.universe import make_context
from tests.unit.backend.programs import HOST, bundle, host, kernel, read

STEP = f'%s = spyre.kernel.host "aten.neg" because "…" (%2) {{self = #aten.operands<1>}} : ({HOST}) -> {HOST}'
PROGRAM = (
    host("sdsc_bundle")
    .replace("%x :", "%x segment 1 :")
    .replace("kernel.alloc :", "kernel.alloc segment 2 :")
    .replace("func.return %2", f"{STEP}\n  func.return %s")
)
MANIFEST = {
    "format": "spyre-mlir bundle",
    "version": 1,
    "arguments": [],
    "weights": {},
    "files": {"sdsc_0.json": {"labels": {"mb": "m", "out": "n"}}},
    "launches": [{"file": "sdsc_0.json", "kernel": {"loops": {"m": [10, 2], "n": [128, 1]}}}],
}
X = np.linspace(-1, 1, 64 * 128).reshape(64, 128)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A bundle that computes the positive part of its input, which the host negates."""
    module_to_directory(read(kernel("0_relufwd") + bundle("sdsc_0.json")), tmp_path / "b", "m.mlir")
    (tmp_path / "b" / "program.mlir").write_text(PROGRAM)
    return tmp_path / "b"


def stored(directory: Path) -> StoredBundle:
    return read_bundle(directory, make_context())


def test_a_bundle_from_disk_runs_with_its_host_steps(directory: Path) -> None:
    read_from = stored(directory)
    program = stored_program(read_from)
    assert (program.host, program.bundle) == (read_from.program, read_from.bundle)
    (result,) = run_program(program, [X], MachineOptions())
    np.testing.assert_allclose(result, -np.maximum(X, 0), atol=2e-3)


def test_a_bundle_without_a_host_program_cannot_be_run(directory: Path) -> None:
    (directory / "program.mlir").unlink()
    with pytest.raises(InputError) as caught:
        stored_program(stored(directory))
    assert caught.value.message == "the bundle has no program.mlir, so it is not known what its arguments are"
    assert (caught.value.where, caught.value.hint) == (str(directory), "write it with spyre-compile")


@pytest.mark.parametrize("rows", [64, 10])
def test_what_every_launch_left_behind_is_cut_where_the_manifest_knows_how(rows: int, directory: Path) -> None:
    if rows < 64:
        (directory / "manifest.json").write_text(json.dumps(MANIFEST))
    (one,) = launch_probes(stored(directory), [X], MachineOptions())
    assert (one.name, one.function) == ("sdsc_0", "relufwd")
    np.testing.assert_allclose(one.values, np.maximum(X, 0)[:rows], atol=2e-3)

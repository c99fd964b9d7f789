"""A new element-by-element operation is one declaration: import, loops, kernels, files and machine follow from it."""

from __future__ import annotations

import subprocess
import sys

from spyre_mlir.ops import ATEN
from tests.paths import ROOT


def test_one_declaration_reaches_every_level() -> None:
    assert ATEN.find("special_spherical_bessel_j0") is None, "the test needs an operation that the table lacks"
    command = [sys.executable, "-m", "tests.end_to_end.ops.one_more_op"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert 'superdsc.sdsc @"0_besselfwd"' in done.stdout

"""`import spyre_mlir.device` switches the device on, and nothing before it does."""

from __future__ import annotations

import subprocess

from tests.paths import ROOT

SCRIPT = """
import torch, spyre_mlir
from spyre_mlir.torch_device import is_on
print(is_on(), hasattr(torch, "spyre"))
import spyre_mlir.device
print(is_on(), torch.spyre.device_count(), torch.ones(2, device="spyre").device)
"""


def test_the_device_is_on_after_the_import_and_not_before(python: list[str]) -> None:
    done = subprocess.run([*python, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("False False\nTrue 1 spyre:0\n", "")

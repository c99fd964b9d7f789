"""The two functions of torch-spyre's runtime that launch a kernel, as published; a stand-in."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import torch

from tests.card.stand_in import launch_directory


def prepare_kernel(spyrecode_dir: str) -> Path:
    """Take the directory that the back end left; a plan is the bundle's directory here."""
    return Path(spyrecode_dir).parent


def launch_jobplan(plan: Path, tensors: Sequence[torch.Tensor]) -> None:
    """Run a plan. Tests can have it fail, or die, at a step whose name contains a word."""
    if (word := os.environ.get("STAND_IN_FAILS_AT")) and word in plan.name:
        raise RuntimeError("the stand-in was told to fail")
    if (word := os.environ.get("STAND_IN_DIES_AT")) and word in plan.name:
        os.kill(os.getpid(), signal.SIGKILL)
    launch_directory(plan, tensors)
    if (word := os.environ.get("STAND_IN_IS_WRONG_AT")) and word in plan.name:
        for tensor in tensors:
            tensor.view(-1)[3] += 1

"""Script that runs compiled steps on a card: `python launch_script.py STEPS.txt`, one directory a line.

An interpreter with torch-spyre runs it, which need not have this package: it imports nothing of ours. Each argument
is sent as a tensor of one dimension, which lies in device memory stick after stick; so lies what comes back.

One process has the card at a time, and a fault leaves its stream unusable: the script ends at the first step that
fails, with the reason in `error.txt`, and is started anew for the rest.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

DEVICE = "spyre"
# Where the back-end compiler leaves its program; torch-spyre execution/kernel_runner.py, certain.
CODE = "spyreCodeDir"


def run_step(directory: Path, native: Any) -> None:
    """Run one step: `native` has `prepare_kernel` and `launch_jobplan`, as `torch_spyre._C` does."""
    count = len(list(directory.glob("argument_*.npy")))
    host: list[Any] = [np.load(directory / f"argument_{n}.npy") for n in range(count)]
    tensors = [torch.as_tensor(value).to(DEVICE) for value in host]
    native.launch_jobplan(native.prepare_kernel(str(directory / CODE)), tensors)
    for number, tensor in enumerate(tensors):
        np.save(directory / f"result_{number}.npy", tensor.to("cpu").numpy())


def main(argv: Sequence[str]) -> int:
    """Run the steps that a file lists; return 1 at the first that fails."""
    importlib.import_module("torch_spyre")
    native = importlib.import_module("torch_spyre._C")
    for line in Path(argv[0]).read_text(encoding="utf-8").splitlines():
        directory = Path(line)
        try:
            run_step(directory, native)
        except Exception as error:  # noqa: BLE001 - the runtime's classes of errors are not public; the user reads its message
            (directory / "error.txt").write_text(f"{type(error).__name__}: {error}\n", encoding="utf-8")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

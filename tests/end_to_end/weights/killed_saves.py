"""Saves a model bound to a checkpoint in children that are killed at chosen steps; run as a program of its own.

Arguments: a folder, and how many steps. A child is killed at one of its steps, evenly spread over all: a piece of a
tensor half written, a text half written, a file synced, a folder moved. Prints per child `none`, `whole` or what is
there. The program has no threads, so that its children may be forks.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn

import spyre_mlir
from spyre_mlir.backend.whole_files import digest


class Steps:
    """Counts steps, and ends the process at one of them, before it is done or half done."""

    def __init__(self, last: int | None) -> None:
        self.count, self._last = 0, last

    def step(self, half: Callable[[], object]) -> None:
        self.count += 1
        if self.count == self._last:
            half()
            os.kill(os.getpid(), signal.SIGKILL)

    def install(self) -> None:
        write, text, sync, rename = digest.Summed.write, Path.write_text, os.fsync, Path.rename
        remove = shutil.rmtree

        def summed(file: Any, data: Any) -> int:
            self.step(lambda: (write(file, data[: len(data) // 2]), file._file.flush()))
            return write(file, data)

        def texted(path: Path, data: str, *args: Any, **kwargs: Any) -> int:
            self.step(lambda: text(path, data[: len(data) // 2], *args, **kwargs))
            return text(path, data, *args, **kwargs)

        def synced(file: int) -> None:
            self.step(lambda: None)
            sync(file)

        def renamed(path: Path, target: Any) -> Path:
            self.step(lambda: None)
            return rename(path, target)

        def removed(path: Path, **options: Any) -> None:
            self.step(lambda: None)
            remove(path, **options)

        shutil.rmtree = removed  # type: ignore
        digest.Summed.write, Path.write_text, os.fsync, Path.rename = summed, texted, synced, renamed  # type: ignore


def model() -> nn.Module:
    layers = nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 512))
    return layers.to(torch.bfloat16)


def contents(directory: Path) -> dict[str, bytes]:
    return {str(p.relative_to(directory)): p.read_bytes() for p in sorted(directory.rglob("*")) if p.is_file()}


def main(folder: str, points: str) -> None:
    place, times = Path(folder), int(points)
    torch.manual_seed(0)
    save_file(model().state_dict(), place / "model.safetensors")
    with torch.device("meta"):
        weightless = model()
    x = torch.zeros(64, 512, dtype=torch.bfloat16)
    bound = spyre_mlir.compile(weightless, (x,)).bind(place / "model.safetensors")
    whole = contents(bound.save(place / "whole"))
    counter = Steps(None)
    counter.install()
    bound.save(place / "counted")
    # A child begins with one step more: it removes the folder of the child before.
    total, target = counter.count + 1, place / "bundle"
    assert total >= times
    for number in range(times):
        child = os.fork()
        if child == 0:
            steps = Steps(1 + number * (total - 1) // (times - 1))
            counter.step = steps.step  # type: ignore[method-assign]
            bound.save(target)
            os._exit(1)
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status)
        left = contents(target) if target.exists() else None
        print("none" if left is None else "whole" if left == whole else "broken", "killed" if killed else "not killed")
    bound.save(target)
    left = sum(path.name.startswith(".bundle") for path in place.iterdir())
    print("in the end", "whole" if contents(target) == whole else "broken", "left over", left)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Writes a bundle again and again in children that are killed at random times; run as a program of its own.

Arguments: a module at the superdsc level, its values (.npz), a folder, how many times, a seed. Prints per child what it
left: `none`, `old` or `new`. The program has no threads, so that its children may be forks.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np

from spyre_mlir.backend.directory import write_bundle
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def main(module_file: str, values_file: str, folder: str, times: str, seed: str) -> None:
    module = parse_module(Path(module_file).read_bytes(), make_context(), module_file)
    with np.load(values_file) as stored:
        values = {name: stored[name] for name in stored.files}
    place, chance = Path(folder), random.Random(int(seed))
    other = {name: value + 1 for name, value in values.items()}
    start = time.perf_counter()
    write_bundle(place / "new", module, values)
    seconds = time.perf_counter() - start
    write_bundle(place / "old", module, other)
    whole = {name: contents(place / name) for name in ("new", "old")}
    assert whole["new"] != whole["old"]
    target = place / "bundle"
    for number in range(int(times)):
        shutil.rmtree(target, ignore_errors=True)
        if number % 2:
            shutil.copytree(place / "old", target)
        child = os.fork()
        if child == 0:
            write_bundle(target, module, values)
            os._exit(0)
        time.sleep(chance.uniform(0, 1.2 * seconds))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        left = contents(target) if target.exists() else None
        print(next((name for name, files in whole.items() if files == left), "none" if left is None else "broken"))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Compiling twice gives the same text, whatever the order of sets and dictionaries."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from random import Random

from spyre_mlir.text.render import module_text
from tests.paths import ROOT
from tests.property.levels import PASSES, apply
from tests.property.programs import build

SEEDS = range(12)


def compiled(seed: int) -> str:
    """Text of one random program after every pass."""
    module = build(Random(seed)).module()
    for name in PASSES:
        apply(module, name)
    return module_text(module)


def fingerprint() -> str:
    return hashlib.sha256("\n".join(map(compiled, SEEDS)).encode()).hexdigest()


def test_twice_in_one_process() -> None:
    assert [compiled(seed) for seed in SEEDS] == [compiled(seed) for seed in SEEDS]


def test_with_other_hash_seeds() -> None:
    found = {fingerprint()}
    for hash_seed in ("0", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [
            sys.executable,
            "-c",
            "from tests.property.test_determinism import fingerprint; print(fingerprint())",
        ]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
        found.add(done.stdout.strip())
    assert len(found) == 1

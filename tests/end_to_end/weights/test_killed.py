"""Bundles with weights from a checkpoint are there as a whole or not at all, wherever their writer dies."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.paths import ROOT

POINTS = 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the writers are forks")
def test_a_writer_killed_at_twenty_points_leaves_no_bundle_or_a_whole_one(tmp_path: Path, python: list[str]) -> None:
    command = [*python, "-m", "tests.end_to_end.weights.killed_saves", str(tmp_path), str(POINTS)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    *points, end = done.stdout.splitlines()
    found = Counter(points)
    assert found.keys() == {"none killed", "whole killed"}
    assert found.total() == POINTS
    # What a dead writer leaves is removed by the next one, unless it died before it said whose it is.
    assert end in ("in the end whole left over 0", "in the end whole left over 1")

"""Damaged files end as a message, a warning, or a program that is as good as the old one; seldom as another program.

Measured in a process of its own, which is given 1 GB of memory and ends if one file takes more than 20 seconds of
processor time.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from functools import cache
from typing import Any

import pytest

from tests.corruptions import DIFFERENT, REJECTED, SAME, TEXTS, VALUES, WARNED, corruption
from tests.paths import ROOT

GIGABYTE = 1 << 30


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (GIGABYTE, GIGABYTE))


@cache
def measured(count: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.corruptions", str(count)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        preexec_fn=limit_memory,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "count", [40, pytest.param(1000, marks=pytest.mark.slow(reason="a larger draw of the same corruptions"))]
)
def test_most_damage_is_noticed(count: int) -> None:
    """At most 15 % of the corruptions leave a valid but different program; the table names their fields."""
    table = measured(count)
    assert sum(table["classes"].values()) == count
    assert set(table["classes"]) <= {REJECTED, WARNED, DIFFERENT, SAME}
    assert table["classes"].get(DIFFERENT, 0) <= 0.15 * count, table["different"]
    assert sum(map(len, table["different"].values())) == table["classes"].get(DIFFERENT, 0)
    assert table["megabytes"] < 1024


def test_text_that_no_reader_takes_is_always_rejected() -> None:
    kinds = measured(150)["kinds"]
    for kind in ("truncation", "duplicate key", "deep nesting"):
        assert kinds[kind][REJECTED] == sum(kinds[kind].values()) > 0


def test_seeds_fix_the_damage() -> None:
    drawn = [corruption(seed) for seed in range(40)]
    assert drawn == [corruption(seed) for seed in range(40)]
    assert {one.kind for one in drawn} > set(TEXTS)
    assert {one.kind for one in drawn} <= {*VALUES, *TEXTS}

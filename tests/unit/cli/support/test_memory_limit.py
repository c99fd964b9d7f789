"""Limits on memory: sizes, what the machine has, and what is asked of the system."""

from __future__ import annotations

import argparse
import resource
from pathlib import Path

import pytest

from spyre_mlir.cli.support import memory_limit
from spyre_mlir.cli.support.memory_limit import (
    add_memory_limit,
    limit_memory,
    machine_memory,
    memory_restored,
    memory_to_spare,
    size,
)

FREE = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", 1),
        ("4096", 4096),
        ("2K", 2048),
        ("2k", 2048),
        ("800M", 800 * 1024**2),
        ("16G", 16 * 1024**3),
        ("1t", 1024**4),
    ],
)
def test_sizes(text: str, number: int) -> None:
    assert size(text) == number


@pytest.mark.parametrize("text", ["", "0", "0G", "G", "-1", "1.5G", "1P", "²", "16GB", "1 G"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"is no size such as 800M or 16G$") as caught:
        size(text)
    assert str(caught.value).startswith(repr(text))


def test_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    parser = argparse.ArgumentParser()
    add_memory_limit(parser)
    assert parser.parse_args([]).memory_limit is None
    assert parser.parse_args(["--memory-limit", "256M"]).memory_limit == 256 * 1024**2
    assert " ".join(parser.format_help().split()).endswith(
        "--memory-limit SIZE fail when more memory than this is requested, such as 800M or 16G "
        "(default: all memory of the machine)"
    )


def test_a_limit_leaves_the_tools_what_they_take() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"^255M is less than .*, expected 256M or more$"):
        memory_limit.limit_size("255M")
    with pytest.raises(argparse.ArgumentTypeError, match="is no size"):
        memory_limit.limit_size("1X")


@pytest.mark.parametrize(
    ("given", "memory"), [(None, 8192), ("max\n", 8192), ("4096\n", 4096), ("100000\n", 8192), ("-1\n", 8192)]
)
def test_a_container_may_have_less_than_the_machine(
    given: str | None, memory: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sysconf", {"SC_PHYS_PAGES": 4, "SC_PAGE_SIZE": 2048}.__getitem__)
    path = tmp_path / "memory.max"
    if given is not None:
        path.write_text(given)
    monkeypatch.setattr(memory_limit, "_CGROUP", path)
    assert machine_memory() == memory


class Limits:
    """The system's limits, without the system."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, soft: int, hard: int) -> None:
        self.now = (soft, hard)
        monkeypatch.setattr("resource.getrlimit", self.get)
        monkeypatch.setattr("resource.setrlimit", self.set)
        monkeypatch.setattr(memory_limit, "machine_memory", lambda: 5000)

    def get(self, which: int) -> tuple[int, int]:
        assert which == resource.RLIMIT_DATA
        return self.now

    def set(self, which: int, limits: tuple[int, int]) -> None:
        assert which == resource.RLIMIT_DATA
        self.now = limits


@pytest.mark.parametrize(
    ("hard", "limit", "soft"),
    [(FREE, 300, 300), (FREE, None, 5000), (200, 300, 200), (400, 300, 300), (400, None, 400), (9000, None, 5000)],
)
def test_the_limit_is_what_is_wanted_and_allowed(
    hard: int, limit: int | None, soft: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = Limits(monkeypatch, 100, hard)
    limit_memory(limit)
    assert limits.now == (soft, hard)


def test_room_is_made_up_to_the_hard_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(monkeypatch, 100, 400)
    memory_to_spare()
    assert limits.now == (400, 400)


def test_the_limit_is_as_it_was_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(monkeypatch, 100, 400)
    with memory_restored():
        limit_memory(300)
        assert limits.now == (300, 400)
    assert limits.now == (100, 400)

    def fail() -> None:
        limit_memory(200)
        raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"), memory_restored():
        fail()
    assert limits.now == (100, 400)

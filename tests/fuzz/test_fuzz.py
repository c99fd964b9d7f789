"""A hundred damaged files and command lines in every run, ten thousand in the suite; and texts that took for ever."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from xdsl.utils.exceptions import ParseError, VerifyException

from spyre_mlir.errors import SpyreError
from spyre_mlir.text.render import parse_module, verify_module
from spyre_mlir.universe import make_context
from tests.fuzz.cases import Corpus, corpus
from tests.fuzz.soup import MEGABYTE, SOUPS
from tests.fuzz.worker import Outcome, outcomes, preload

SMALL, MANY = 100, 10_000
SHARDS = 20
HANGS = 120  # seconds; what took exponential time takes days


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    made = corpus(tmp_path_factory.mktemp("corpus"))
    preload()
    return made


def wrong(seeds: range, files: Corpus) -> list[Outcome]:
    found = list(outcomes(seeds, files))
    assert [one.seed for one in found] == list(seeds)
    return [one for one in found if not one.good]


def test_a_hundred_cases(files: Corpus) -> None:
    assert wrong(range(SMALL), files) == []


@pytest.mark.slow(reason="ten thousand cases; a hundred run by default")
@pytest.mark.parametrize("shard", range(SHARDS))
def test_ten_thousand_cases(shard: int, files: Corpus) -> None:
    size = MANY // SHARDS
    assert wrong(range(shard * size, (shard + 1) * size), files) == []


def test_a_case_that_dies_is_named_and_the_next_ones_run(files: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    from tests.fuzz import worker

    real = worker.case

    def dies(seed: int, files: Corpus, folder: Path) -> tuple[str, str, list[str]]:
        if seed == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(seed, files, folder)

    monkeypatch.setattr(worker, "case", dies)
    found = list(outcomes(range(3), files))
    assert [one.good for one in found] == [True, False, True]
    assert found[1].message == "dies of SIGKILL"


@contextmanager
def no_hang() -> Iterator[None]:
    """Ends the test run where something hangs within one step of the interpreter, as a regular expression does."""
    signal.alarm(HANGS)
    try:
        yield
    finally:
        signal.alarm(0)


def parse(text: str) -> None:
    with suppress(ParseError, SpyreError, VerifyException, RecursionError), no_hang():
        verify_module(parse_module(text, make_context()))


@pytest.mark.parametrize("name", SOUPS)
def test_soup_is_read_or_refused(name: str) -> None:
    parse(SOUPS[name](20_000))


@pytest.mark.slow(reason="texts of a megabyte; shorter ones run by default")
@pytest.mark.parametrize("name", SOUPS)
def test_a_megabyte_of_soup_is_read_or_refused(name: str) -> None:
    parse(SOUPS[name](MEGABYTE))

"""Calls of one program from several threads."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.errors import OverflowFault
from spyre_mlir.runtime.one_at_a_time import OneAtATime
from tests.functions import FunctionModel

THREADS, CALLS = 4, 10


@pytest.fixture(autouse=True)
def switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def in_threads(work: Callable[[int], object]) -> list[object]:
    start = Barrier(THREADS)

    def run(thread: int) -> list[object]:
        start.wait()
        return [work(thread) for _ in range(CALLS)]

    with ThreadPoolExecutor(THREADS) as pool:
        return [result for results in pool.map(run, range(THREADS)) for result in results]


class Counted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(x)
        return self.count * 1


def test_every_call_reads_what_the_one_before_wrote() -> None:
    model = Counted()
    compiled = spyre_mlir.compile(model, (torch.ones(4),))
    seen = in_threads(lambda _: compiled(torch.ones(4))[0].item())
    assert sorted(seen) == list(range(1, THREADS * CALLS + 1))  # pyright: ignore[reportArgumentType]


def test_an_overflow_is_that_of_its_call() -> None:
    compiled = spyre_mlir.compile(FunctionModel(lambda x: x * x), (torch.ones(4),), on_overflow="raise")

    def overflows(thread: int) -> bool:
        try:
            compiled(torch.full((4,), 1e6 if thread % 2 else 1.0))
        except OverflowFault:
            return thread % 2 == 1
        return thread % 2 == 0

    assert all(in_threads(overflows))


def test_the_same_thread_may_take_it_again() -> None:
    turns = OneAtATime()
    with turns, turns:
        pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_fork_has_a_lock_of_its_own() -> None:
    turns = OneAtATime()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(turns.__enter__).result()
        if (child := os.fork()) == 0:
            with turns:
                os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        pool.submit(turns.__exit__, None, None, None).result()

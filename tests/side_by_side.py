"""Runs a function over many things in processes side by side."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

import torch

T = TypeVar("T")
R = TypeVar("R")


def side_by_side(function: Callable[[T], R], things: Sequence[T], jobs: int, per_process: int) -> Iterator[tuple[T, R]]:
    """Every thing and its result, in order; processes are made anew after so many things, for the memory they keep.

    The executor's own `max_tasks_per_child` hangs in some versions of Python 3.11.
    """
    context = multiprocessing.get_context("spawn")
    for start in range(0, len(things), jobs * per_process):
        part = things[start : start + jobs * per_process]
        with ProcessPoolExecutor(jobs, context, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            yield from zip(part, pool.map(function, part), strict=True)

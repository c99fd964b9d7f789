"""Runs a function on several ranks, as torchrun would: one process a rank, joined by a group of gloo.

The processes are forks of a server that has loaded what ranks need: to load it takes a process seconds.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.multiprocessing import ProcessExitedException

from tests.clients.other_build import mend

WAY = "forkserver"
multiprocessing.set_forkserver_preload(["tests.end_to_end.ranks.loaded"])


def after_a_kill(function: Callable[[], Any], before: Callable[[], Any]) -> Any:
    """What a function gives on rank 0 of two, where rank 1 is killed in its place; `before` runs on both."""
    with tempfile.TemporaryDirectory() as folder:
        context: Any = mp.start_processes(_until_killed, (function, before, folder), 2, join=False, start_method=WAY)
        with pytest.raises(ProcessExitedException, match="process 1 terminated with signal SIGKILL"):
            context.join()
        context.processes[0].join()
        return pickle.loads((Path(folder) / "0.pickle").read_bytes())


def _until_killed(rank: int, function: Callable[[], Any], before: Callable[[], Any], folder: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # rank 0 ends by itself
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    before()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    (Path(folder) / "0.pickle").write_bytes(pickle.dumps(function()))


@dataclass(frozen=True)
class Kill:
    """Which rank is killed, and how long after all of them have begun."""

    rank: int
    after_seconds: float


def survivors(
    count: int, kill: Kill, function: Callable[[], Any], before: Callable[[], Any]
) -> list[tuple[float, Any]]:
    """Seconds after the kill, and what a function gives, for every rank but the killed one.

    All of them stay until the last has an answer: a process that ends would close its connections, and end the others.
    """
    with tempfile.TemporaryDirectory() as folder:
        arguments = count, kill, function, before, folder
        context: Any = mp.start_processes(_until_all_answer, arguments, count, join=False, start_method=WAY)
        with pytest.raises(ProcessExitedException, match=f"process {kill.rank} terminated with signal SIGKILL"):
            context.join()
        for process in context.processes:
            process.join()
        killed = float((Path(folder) / "killed").read_text())
        answers = [pickle.loads(path.read_bytes()) for path in sorted(Path(folder).glob("*.pickle"))]
        return [(at - killed, answer) for at, answer in answers]


def _until_all_answer(
    rank: int, count: int, kill: Kill, function: Callable[[], Any], before: Callable[[], Any], folder: str
) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # of torch, once a process has ended
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=count)
    before()

    def end() -> None:
        (Path(folder) / "killed").write_text(repr(time.time()))
        os.kill(os.getpid(), signal.SIGKILL)

    if rank == kill.rank:
        threading.Timer(kill.after_seconds, end).start()
    answer = function()
    written = Path(folder) / f"{rank}.part"
    written.write_bytes(pickle.dumps((time.time(), answer)))
    written.rename(written.with_suffix(".pickle"))
    until = time.monotonic() + 30
    while len(list(Path(folder).glob("*.pickle"))) < count - 1 and time.monotonic() < until:
        time.sleep(0.1)
    os._exit(0)  # without the ends of groups, which wait for one another


def on_ranks(count: int, function: Callable[[], Any], timeout_seconds: float = 1800) -> list[Any]:
    """What a function of a module gives on each of `count` ranks; an error of a rank is raised."""
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(_rank, (count, function, folder, timeout_seconds), count, start_method=WAY)
        return [pickle.loads((Path(folder) / f"{rank}.pickle").read_bytes()) for rank in range(count)]


def _rank(rank: int, count: int, function: Callable[[], Any], folder: str, timeout_seconds: float) -> None:
    torch.set_num_threads(1)
    mend()
    where, timeout = f"file://{folder}/store", timedelta(seconds=timeout_seconds)
    dist.init_process_group("gloo", init_method=where, rank=rank, world_size=count, timeout=timeout)
    try:
        (Path(folder) / f"{rank}.pickle").write_bytes(pickle.dumps(function()))
    finally:
        dist.destroy_process_group()

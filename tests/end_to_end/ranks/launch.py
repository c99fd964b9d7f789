"""Runs a function on several ranks, as torchrun would: one process a rank, joined by a group of gloo."""

from __future__ import annotations

import os
import pickle
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.multiprocessing import ProcessExitedException


def after_a_kill(function: Callable[[], Any], before: Callable[[], Any]) -> Any:
    """What a function gives on rank 0 of two, where rank 1 is killed in its place; `before` runs on both."""
    with tempfile.TemporaryDirectory() as folder:
        context: Any = mp.start_processes(
            _until_killed, (function, before, folder), 2, join=False, start_method="spawn"
        )
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


def on_ranks(count: int, function: Callable[[], Any]) -> list[Any]:
    """What a function of a module gives on each of `count` ranks; an error of a rank is raised."""
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(_rank, (count, function, folder), count, start_method="spawn")
        return [pickle.loads((Path(folder) / f"{rank}.pickle").read_bytes()) for rank in range(count)]


def _rank(rank: int, count: int, function: Callable[[], Any], folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=count)
    try:
        (Path(folder) / f"{rank}.pickle").write_bytes(pickle.dumps(function()))
    finally:
        dist.destroy_process_group()

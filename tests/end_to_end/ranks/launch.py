"""Runs a function on several ranks, as torchrun would: one process a rank, joined by a group of gloo."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


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

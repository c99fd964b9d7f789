"""Models of several ranks, and functions that compile and run them on one rank."""

from __future__ import annotations

import time
import warnings
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch import nn

import spyre_mlir
from spyre_mlir.errors import SpyreError
from spyre_mlir.frontend.process_groups import Collective
from spyre_mlir.frontend.rank_failures import GRACE_SECONDS
from spyre_mlir.transforms.utils.host_fallback import HostStepWarning

WIDTH, INNER = 64, 128


def whole_mlp() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(WIDTH, INNER), nn.ReLU(), nn.Linear(INNER, WIDTH)).eval()


class ParallelMlp(nn.Module):
    """Columns of the first weight and rows of the second: each rank has a part of what lies between."""

    def __init__(self, whole: nn.Sequential) -> None:
        super().__init__()
        part = slice(dist.get_rank() * (each := INNER // dist.get_world_size()), (dist.get_rank() + 1) * each)
        up: Any = whole[0]
        down: Any = whole[2]
        self.up, self.up_bias = nn.Parameter(up.weight[part].clone()), nn.Parameter(up.bias[part].clone())
        self.down, self.bias = nn.Parameter(down.weight[:, part].clone()), nn.Parameter(down.bias.clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        own = torch.relu(x @ self.up.t() + self.up_bias) @ self.down.t()
        return funcol.all_reduce(own, "sum", dist.group.WORLD) + self.bias


def rows(rank: int) -> torch.Tensor:
    """Whole numbers that no format rounds, others on each rank."""
    return torch.arange(24.0).reshape(6, 4) * (rank + 1) - 7


class Collectives(nn.Module):
    """One of each, with device work between."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        group: Any = dist.group.WORLD
        sizes = [2, 4]
        parts = sizes if dist.get_rank() == 0 else sizes[::-1]
        theirs = [2, 4] if dist.get_rank() == 0 else [4, 2]
        gathered = funcol.all_gather_tensor(x, 0, group)
        funcol.all_reduce(gathered, "max", group)  # read by nobody, and the others wait for it
        return (
            funcol.all_reduce(x + 1, "sum", group),
            funcol.all_reduce(x, "max", group) * 2,
            gathered - 1,
            funcol.reduce_scatter_tensor(x, "sum", 0, group),
            funcol.all_to_all_single(x, theirs, parts, group),
            funcol.broadcast(x, 1, group),
        )


class Written(nn.Module):
    """Collectives that write to their arguments, or take several tensors."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        group: Any = dist.group.WORLD
        is_first, halves = dist.get_rank() == 0, list(x.chunk(2))
        summed, sent, least, part = x * 2, x + 1, x - 1, torch.empty_like(halves[0])
        gathered, taken = [torch.empty_like(x), torch.empty_like(x)], [torch.empty_like(half) for half in halves]
        work: Any = dist.all_reduce(summed, async_op=True)
        dist.broadcast(sent, src=1)
        dist.reduce(least, dst=0, op=dist.ReduceOp.MIN)
        dist.gather(x + 3, gathered if is_first else None, dst=0)
        dist.all_to_all(taken, halves)
        dist.reduce_scatter(part, halves, op=dist.ReduceOp.MAX)
        dist.scatter(own := torch.empty_like(x), [x * 3, x * 4] if is_first else None, src=0)
        work.wait()
        dist.all_reduce(bits := x.long(), op=dist.ReduceOp.BXOR)
        several = funcol.all_reduce_coalesced([x, x + 5], "sum", group)
        read_by_the_first = (least, *gathered) if is_first else ()
        return (summed, sent, bits, *taken, part, own, *[each * 2 for each in several], *read_by_the_first)


def _numbers(results: Any) -> list[np.ndarray[Any, Any]]:
    return [r.detach().numpy().copy() for r in (results if isinstance(results, (tuple, list)) else [results])]


def run_all() -> dict[str, Any]:
    """Compile and run both models on this rank; host steps that are no collectives are refused."""
    x = torch.linspace(-1, 1, 4 * WIDTH).reshape(4, WIDTH)
    whole = whole_mlp()
    model = ParallelMlp(whole)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", HostStepWarning)
        compiled = spyre_mlir.compile(model, (x,), host_fallback="error")
        torch_compiled = torch.compile(model, backend="spyre", fullgraph=True, options={"host_fallback": "error"})
        found = {
            "one rank": _numbers(whole(x)),
            "eager": _numbers(model(x)),
            "compile": _numbers(compiled(x)),
            "again": _numbers(compiled(x)),
            "torch.compile": _numbers(torch_compiled(x)),
            "agrees": bool(compiled.verify(x)),
            "text": compiled.mlir("aten"),
            "steps": compiled.host_steps,
        }
        every, given = Collectives(), rows(dist.get_rank())
        compiled = spyre_mlir.compile(every, (given,), host_fallback="error")
        found |= {
            "collectives eager": _numbers(every(given)),
            "collectives": _numbers(compiled(given)),
            "collectives text": compiled.mlir("aten"),
        }
        compiled = spyre_mlir.compile(written := Written(), (given,), host_fallback="error")
        found |= {"written eager": _numbers(written(given)), "written": _numbers(compiled(given))}
    return found


def saved_and_run(folder: str, dtype: torch.dtype) -> dict[str, Any]:
    """Save the divided MLP of a type, and run it: the result of this rank."""
    x, model = torch.linspace(-2, 2, 40 * WIDTH).reshape(40, WIDTH).to(dtype), ParallelMlp(whole_mlp()).to(dtype)
    with torch.no_grad():
        compiled: Any = spyre_mlir.compile(model, (x,), host_fallback="error")
        spyre_mlir.save_ranks(compiled, folder)
        return {"x": x, "result": compiled(x)}


def bound_by_parts(checkpoint: str) -> dict[str, Any]:
    """The divided MLP, compiled without weights, with this rank's part of a checkpoint that has all of it."""
    x = torch.linspace(-1, 1, 4 * WIDTH).reshape(4, WIDTH)
    with torch.device("meta"):
        model = ParallelMlp(whole_mlp())
    names = {"0.weight": "up", "0.bias": "up_bias", "2.weight": "down", "2.bias": "bias"}
    with torch.no_grad():
        compiled: Any = spyre_mlir.compile(model, (x,), host_fallback="error")
        bound = compiled.bind(checkpoint, rename=names.get, shards={"up*": 0, "down": 1})
        return {"one rank": _numbers(whole_mlp()(x)), "bound": _numbers(bound(x)), "agrees": bool(bound.verify(x))}


KEPT: dict[str, Any] = {}


def compile_and_run_once() -> None:
    with torch.no_grad():
        KEPT["x"] = torch.linspace(-1, 1, 4 * WIDTH).reshape(4, WIDTH)
        KEPT["model"] = spyre_mlir.compile(ParallelMlp(whole_mlp()), (KEPT["x"],))
        KEPT["model"](KEPT["x"])


def run_again() -> tuple[str, str]:
    """The class and the text of the error that a call ends in."""
    try:
        KEPT["model"](KEPT["x"])
    except SpyreError as error:
        return type(error).__name__, str(error)
    return "", "the call gave a result"


def run_until_refused() -> tuple[str, str]:
    """The class and the text of the error that calls end in, one after the other."""
    while True:
        kind, text = run_again()
        if kind:
            return kind, text


def compile_until_refused() -> tuple[str, str]:
    """The class and the text of the error that compilations end in, one after the other; nothing runs."""
    x, until = torch.linspace(-1, 1, 4 * WIDTH).reshape(4, WIDTH), time.monotonic() + 60
    while time.monotonic() < until:
        try:
            spyre_mlir.compile(ParallelMlp(whole_mlp()), (x,), cache=False)
        except SpyreError as error:
            return type(error).__name__, str(error)
    return "", "nobody said anything"


def wait_for_a_rank_that_hangs() -> tuple[str, str]:
    """As `run_again`, on all ranks but the last, which never comes to the collective of the model."""
    with torch.no_grad():
        KEPT["x"] = torch.linspace(-1, 1, 4 * WIDTH).reshape(4, WIDTH)
        KEPT["model"] = spyre_mlir.compile(ParallelMlp(whole_mlp()), (KEPT["x"],))
    *others, last = range(dist.get_world_size())
    store: Any = dist.distributed_c10d._get_default_store()  # pyright: ignore[reportPrivateUsage]
    store.set(f"ready {dist.get_rank()}", "")  # a barrier would have the timeout of the group
    store.wait([f"ready {rank}" for rank in (*others, last)], timedelta(seconds=120))
    if dist.get_rank() == last:
        store.wait([f"ended {rank}" for rank in others], timedelta(seconds=120))
        return "", "never came"
    found = run_again()
    store.set(f"ended {dist.get_rank()}", "")
    return found


def go_on_after_an_error() -> tuple[str, torch.Tensor]:
    """The error of a collective that the group refuses, and the result of the next, to which the last rank is late."""
    operator: Any = torch.ops._c10d_functional.all_reduce.default
    collective = Collective(operator, (), "model.py:7")
    x = torch.full((3,), dist.get_rank() + 1.0)
    try:
        collective(input=x, reduce_op="median", group_name="0")
    except SpyreError as error:
        text = str(error)
    else:
        text = ""
    if dist.get_rank() == dist.get_world_size() - 1:
        time.sleep(GRACE_SECONDS + 2.5)
    return text, collective(input=x, reduce_op="sum", group_name="0")

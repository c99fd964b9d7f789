"""Process groups of `torch.distributed`: which ranks a group has, and collectives run on it.

Decision: docs/decisions/0153-collectives-are-steps-of-the-host.md
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist

from spyre_mlir.errors import CollectiveError, InputError
from spyre_mlir.frontend.rank_failures import come, not_come, report, unless_ranks_fail
from spyre_mlir.frontend.rank_processes import RankEndedError, Workers, at_work, unless_interrupted
from spyre_mlir.frontend.torch_private import Operator, group_called, group_names, schema_of
from spyre_mlir.ops.native.collectives import NAMESPACE
from spyre_mlir.sizes import counted

T = TypeVar("T")
NO_EXCHANGE = "fake"  # back end of torch

START = (
    'start one process a rank with torchrun, and call torch.distributed.init_process_group("gloo") in each before '
    "the model is compiled, loaded or called"
)


def ranks_of(name: str, where: str) -> tuple[int, ...]:
    """Return the global ranks of a group of this process, in order.

    Raises:
        InputError: this process has no process group, or none of this name.
    """
    return tuple(dist.get_process_group_ranks(_group(name, where)))


def rank_and_count(user: str) -> tuple[int, int]:
    """Return the rank of this process, and how many there are.

    Args:
        user: that needs a process group, for the message.

    Raises:
        InputError: this process has no process group.
    """
    if not (dist.is_available() and dist.is_initialized()):
        raise InputError(
            f"{user} needs a process group, and this process has none",
            hint=f"{START}; spyre_mlir.load_ranks runs all ranks in one process",
        )
    return dist.get_rank(), dist.get_world_size()


def groups_to_share() -> dict[int, object]:
    """Return the process groups of this process as a memo of `copy.deepcopy`: a copy of a model has the same ones."""
    return {id(group): group for group in map(group_called, group_names()) if group is not None}


def wait_for_ranks() -> None:
    """Return when every rank of the process group has come here."""
    cast(Any, dist).barrier()


@contextmanager
def without_exchange(rank: int, count: int) -> Generator[None]:
    """Make this process one rank of several inside the block, in a group that exchanges nothing: to import programs.

    Raises:
        InputError: this process has a process group.
    """
    if dist.is_available() and dist.is_initialized():
        raise InputError(
            "this process has a process group, and cards are counted without one",
            hint="call torch.distributed.destroy_process_group() first, or count in another process",
        )
    from torch.testing._internal.distributed.fake_pg import FakeStore  # registers the back end

    dist.init_process_group(NO_EXCHANGE, store=FakeStore(), rank=rank, world_size=count)
    try:
        yield
    finally:
        dist.destroy_process_group()


@contextmanager
def work_of_a_rank() -> Generator[None]:
    """Tell the other ranks of the process group, if there are any, that this one is at work until the block ends."""
    if (others := _other_workers()) is None:
        yield
        return
    with at_work(others.store, dist.get_rank()):
        yield


def unless_ranks_end(work: str, function: Callable[[], T]) -> T:
    """Return what a function gives that is work of this rank; it may take long, and exchanges nothing.

    Args:
        work: that the function does, for the message.
        function: is interrupted if another rank ends at work.

    Raises:
        CollectiveError: another rank has.
    """
    if (others := _other_workers()) is None:
        return function()
    with at_work(others.store, dist.get_rank()):
        try:
            return unless_interrupted(function, others.ended)
        except RankEndedError as ended:
            raise CollectiveError(
                f"rank {dist.get_rank()}: {work} was given up: {ended}",
                hint="one of the other ranks was killed, by hand or for its memory: start all of them again",
            ) from None


def _other_workers() -> Workers | None:
    """The other ranks of the process group; None if nobody else is there."""
    if not (dist.is_available() and dist.is_initialized()) or dist.get_backend() == NO_EXCHANGE:
        return None
    others = [rank for rank in range(dist.get_world_size()) if rank != dist.get_rank()]
    world: Any = dist.group.WORLD
    return Workers(world.get_group_store(), others) if others else None


def _group(name: str, where: str) -> Any:
    if not (dist.is_available() and dist.is_initialized()):
        raise InputError(
            f"a collective of group '{name}' needs a process group, and this process has none", where=where, hint=START
        )
    found = group_called(name)
    if found is None:
        known = ", ".join(f"'{n}'" for n in group_names())
        raise InputError(
            f"rank {dist.get_rank()} has no process group called '{name}'; it has {known}",
            where=where,
            hint="make the same groups in the same order as where the program was compiled",
        )
    return found


class Collective:
    """A collective as an operator that is complete when it returns, and checks its group first."""

    def __init__(self, operator: Operator, ranks: Sequence[int], where: str) -> None:
        """Keeps the operator of torch, the global ranks that its program expects, none for any, and its place."""
        self._schema = schema_of(operator)
        self._name = self._schema.name.rpartition("::")[2]
        self._ranks, self._where = tuple(ranks), where

    def __call__(self, *, group_name: str, **arguments: Any) -> torch.Tensor:
        """Run the collective.

        Raises:
            InputError: there is no such group, or it has other ranks.
            CollectiveError: a rank of the group is gone or does not answer, or the group refuses the call.
        """
        ranks, size = ranks_of(group_name, self._where), arguments.get("group_size")
        expected = self._ranks or (ranks if size is None else tuple(range(size)))
        if len(ranks) != len(expected) or (self._ranks and ranks != self._ranks):
            raise InputError(
                f"{self._name}: group '{group_name}' has {_counted(ranks)}, and the program was compiled for "
                f"{_counted(expected)}",
                where=self._where,
                hint=f"start {len(expected)} processes, torchrun --nproc-per-node {len(expected)}, or compile again",
            )
        called = getattr(getattr(torch.ops, NAMESPACE), self._name)
        store, number, started = _group(group_name, self._where).get_group_store(), 0, None
        try:
            number = come(store, dist.get_rank())
            started = called(**arguments, group_name=group_name)
            others = _other_workers()
            look = (lambda: None) if others is None else others.ended
            return unless_ranks_fail(lambda: _finished(started), store, number, look)
        except (RuntimeError, ValueError) as error:  # `DistBackendError` is one
            report(store, number, f"rank {dist.get_rank()} has failed in {self._name}")
            said = str(error).strip().split("\n", 1)[0]
            # A call that the group refuses at once waits for no rank.
            if started is not None and (missing := not_come(store, ranks, number)):
                said += f"; {_listed(missing)} had not come to it"
            raise CollectiveError(
                f"rank {dist.get_rank()}: {self._name} of group '{group_name}' ({_counted(ranks)}) was not completed: "
                + said,
                where=self._where,
                hint="look at the errors of the other ranks: one of them may have ended, failed or called another "
                "collective",
            ) from error


def _finished(started: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():  # a mode is one of a thread
        return torch.ops._c10d_functional.wait_tensor(started)


def _counted(ranks: Sequence[int]) -> str:
    return f"{counted(len(ranks), 'rank')}: {', '.join(map(str, ranks))}"


def _listed(ranks: Sequence[int]) -> str:
    return f"rank{'s' * (len(ranks) != 1)} {', '.join(map(str, ranks))}"


__all__ = [
    "Collective",
    "groups_to_share",
    "rank_and_count",
    "ranks_of",
    "unless_ranks_end",
    "wait_for_ranks",
    "without_exchange",
    "work_of_a_rank",
]

"""Collectives that write to their arguments, or take several tensors, as functional ones of one tensor.

A collective of a program is complete when its step ends, so what an asynchronous call gives has nothing to wait for.
Every rank of the group runs the same collective, whichever of them reads a result: ranks that get nothing of a `reduce`
or `gather` keep their tensor as it was.

Decision: docs/decisions/0153-collectives-are-steps-of-the-host.md
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as functional_collectives
from torch.overrides import TorchFunctionMode

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.locations import line_that_runs
from spyre_mlir.frontend.torch_tracing import collectives_left_alone
from spyre_mlir.ops.native.collectives import REDUCTIONS

Tensor = torch.Tensor
Tensors = Sequence[torch.Tensor]
functional = cast(Any, functional_collectives)  # partly without types
_CANNOT = "a part of this model cannot be expressed\n  1 x torch.distributed.{}"


class CompleteWork:
    """Handle of an asynchronous collective, which is complete."""

    def wait(self, *_timeout: object, **_named: object) -> bool:
        """Return at once."""
        return True

    def is_completed(self) -> bool:
        """Return that it is."""
        return True

    def is_success(self) -> bool:
        """Return that it was one: a collective that fails ends the call."""
        return True


@contextmanager
def collectives_in_place() -> Generator[None]:
    """Trace collectives in the block by those of the op table."""
    with collectives_left_alone(), _CollectivesInPlace():
        yield


class _CollectivesInPlace(TorchFunctionMode):
    """Traces calls of `torch.distributed` by the collectives of the op table."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Calls a function of torch, or what a collective comes to."""
        kwargs = cast("dict[str, Any]", kwargs or {})
        if getattr(func, "__module__", None) != dist.distributed_c10d.__name__:
            return func(*args, **kwargs)
        name = str(func.__name__)
        if (written := _WRITTEN.get(name)) is None:
            raise UnsupportedError(
                _CANNOT.format(f"{name}: it has no collective form"),
                where=line_that_runs(),
                hint=f"call one of torch.distributed: {', '.join(_WRITTEN)}",
            )
        bound = inspect.signature(func).bind(*args, **kwargs)
        given = dict(bound.arguments)
        asynchronous = bool(given.pop("async_op", False))
        written(_group(given.pop("group", None)), **given)
        return CompleteWork() if asynchronous else None


def _group(given: Any) -> Any:
    return dist.group.WORLD if given is None else given


def _reduction(op: Any) -> str:
    """The reduction of a call, as the op table calls it."""
    name = functional.REDUCE_OP_TO_STR.get(op, str(op))
    if name not in REDUCTIONS:
        raise UnsupportedError(
            f"a collective reduces by {name}, expected one of {', '.join(REDUCTIONS)}",
            where=line_that_runs(),
            hint="gather the tensors of all ranks, and reduce them in the model",
        )
    return name


def _rank_in(group: Any, rank: int | None, rank_in_group: int | None, otherwise: int | None = None) -> int:
    """The rank in a group that a call names by the one or the other number."""
    if rank_in_group is not None:
        return rank_in_group
    return dist.get_group_rank(group, cast(int, otherwise if rank is None else rank))


def _all_reduce(group: Any, tensor: Tensor, op: Any = dist.ReduceOp.SUM) -> None:
    tensor.copy_(functional.all_reduce(tensor, _reduction(op), group))


def _all_reduce_coalesced(group: Any, tensors: Tensors, op: Any = dist.ReduceOp.SUM) -> None:
    for tensor in tensors:
        _all_reduce(group, tensor, op)


def _reduce(
    group: Any, tensor: Tensor, dst: int | None = None, op: Any = dist.ReduceOp.SUM, group_dst: int | None = None
) -> None:
    total = functional.all_reduce(tensor, _reduction(op), group)
    if dist.get_rank(group) == _rank_in(group, dst, group_dst):
        tensor.copy_(total)


def _broadcast(group: Any, tensor: Tensor, src: int | None = None, group_src: int | None = None) -> None:
    tensor.copy_(functional.broadcast(tensor, _rank_in(group, src, group_src), group))


def _rows_gathered(tensor: Tensor, group: Any) -> Tensor:
    """The elements of all ranks in one row each."""
    return functional.all_gather_tensor(tensor.reshape(1, -1), 0, group)


def _all_gather_into_tensor(group: Any, output_tensor: Tensor, input_tensor: Tensor) -> None:
    output_tensor.copy_(_rows_gathered(input_tensor, group).reshape(output_tensor.shape))


def _all_gather(group: Any, tensor_list: Tensors, tensor: Tensor) -> None:
    _check_equal(group, tensor_list, tensor, "all_gather")
    for target, row in zip(tensor_list, _rows_gathered(tensor, group), strict=True):
        target.copy_(row.reshape(target.shape))


def _gather(
    group: Any,
    tensor: Tensor,
    gather_list: Tensors | None = None,
    dst: int | None = None,
    group_dst: int | None = None,
) -> None:
    rows = _rows_gathered(tensor, group)
    if dist.get_rank(group) == _rank_in(group, dst, group_dst, 0):
        _check_equal(group, targets := gather_list or (), tensor, "gather")
        for target, row in zip(targets, rows, strict=True):
            target.copy_(row.reshape(target.shape))


def _scatter(
    group: Any,
    tensor: Tensor,
    scatter_list: Tensors | None = None,
    src: int | None = None,
    group_src: int | None = None,
) -> None:
    source = _rank_in(group, src, group_src, 0)
    is_source = dist.get_rank(group) == source
    if is_source:
        _check_equal(group, scatter_list or (), tensor, "scatter")
    parts = scatter_list if is_source and scatter_list else [torch.zeros_like(tensor)] * dist.get_world_size(group)
    sent = functional.broadcast(_joined(parts), source, group)
    tensor.copy_(sent.reshape(len(parts), *tensor.shape)[dist.get_rank(group)])


def _reduce_scatter_tensor(group: Any, output: Tensor, input: Tensor, op: Any = dist.ReduceOp.SUM) -> None:
    reduced = functional.reduce_scatter_tensor(input.reshape(-1), _reduction(op), 0, group)
    output.copy_(reduced.reshape(output.shape))


def _reduce_scatter(group: Any, output: Tensor, input_list: Tensors, op: Any = dist.ReduceOp.SUM) -> None:
    _check_equal(group, input_list, output, "reduce_scatter")
    _reduce_scatter_tensor(group, output, _joined(input_list), op)


def _all_to_all_single(
    group: Any,
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
) -> None:
    taken, given = output_split_sizes or None, input_split_sizes or None
    output.copy_(functional.all_to_all_single(input, taken, given, group))


def _all_to_all(group: Any, output_tensor_list: Tensors, input_tensor_list: Tensors) -> None:
    sizes = [[tensor.numel() for tensor in tensors] for tensors in (output_tensor_list, input_tensor_list)]
    received = functional.all_to_all_single(_joined(input_tensor_list), *sizes, group)
    for target, part in zip(output_tensor_list, received.split(sizes[0]), strict=True):
        target.copy_(part.reshape(target.shape))


def _joined(tensors: Tensors) -> Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def _check_equal(group: Any, tensors: Tensors, like: Tensor, name: str) -> None:
    """Raises UnsupportedError unless there is a tensor for each rank, and all are of one size."""
    if len(tensors) != (count := dist.get_world_size(group)):
        raise UnsupportedError(
            _CANNOT.format(f"{name}: {len(tensors)} tensors for {count} ranks"),
            where=line_that_runs(),
            hint="give one tensor for each rank of the group",
        )
    if any(tensor.numel() != like.numel() for tensor in tensors):
        raise UnsupportedError(
            _CANNOT.format(f"{name}: ranks have tensors of several sizes"),
            where=line_that_runs(),
            hint="pad the tensors to one size",
        )


# By the names of torch.distributed; older names of a function beside newer ones.
_WRITTEN: dict[str, Callable[..., None]] = {
    "all_reduce": _all_reduce,
    "all_reduce_coalesced": _all_reduce_coalesced,
    "reduce": _reduce,
    "broadcast": _broadcast,
    "all_gather_into_tensor": _all_gather_into_tensor,
    "all_gather_single": _all_gather_into_tensor,
    "all_gather": _all_gather,
    "gather": _gather,
    "scatter": _scatter,
    "reduce_scatter_tensor": _reduce_scatter_tensor,
    "reduce_scatter_single": _reduce_scatter_tensor,
    "reduce_scatter": _reduce_scatter,
    "all_to_all_single": _all_to_all_single,
    "all_to_all": _all_to_all,
}


def one_by_one() -> dict[Any, Callable[..., list[Tensor]]]:
    """Return decompositions of coalesced collectives: a collective for each tensor, in order."""
    of_one = cast(Any, torch.ops._c10d_functional)

    def reduced(inputs: Tensors, *rest: Any) -> list[Tensor]:
        return [of_one.all_reduce(tensor, *rest) for tensor in inputs]

    def gathered(inputs: Tensors, *rest: Any) -> list[Tensor]:
        return [of_one.all_gather_into_tensor(tensor, *rest) for tensor in inputs]

    def scattered(inputs: Tensors, *rest: Any) -> list[Tensor]:
        return [of_one.reduce_scatter_tensor(tensor, *rest) for tensor in inputs]

    return {
        of_one.all_reduce_coalesced.default: reduced,
        of_one.all_gather_into_tensor_coalesced.default: gathered,
        of_one.reduce_scatter_tensor_coalesced.default: scattered,
    }


__all__ = ["collectives_in_place", "one_by_one"]

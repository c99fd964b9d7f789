"""Predicted time by function, by module and by line of the model, and the part that only rearranges data."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spyre_mlir.machine.bundle.timeline import TimedKernel, Timeline
from spyre_mlir.ops.function_facts import Group
from spyre_mlir.ops.hardware_functions import function_of

UNKNOWN = "unknown"
ROOT = "the model itself"
_NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")


@dataclass(frozen=True)
class Share:
    """Time of kernels that have something in common.

    Attributes:
        name: what they have in common.
        kernels: in execution order.
        us: their time.
        part: of the time of all kernels, from 0 to 1.
        moving_us: the time of those among them that only rearrange data.
        times: how many modules of the model they stand for, such as equal layers.
    """

    name: str
    kernels: tuple[TimedKernel, ...]
    us: float
    part: float
    moving_us: float
    times: int = 1


def moves(kernel: TimedKernel) -> bool:
    """Return whether a kernel computes nothing: it copies, changes a layout or converts a format."""
    function = function_of(kernel.launch.descriptor.op_func_name)
    return function is not None and function.group in (Group.MOVEMENT, Group.CONVERSION)


def moving_us(timeline: Timeline) -> float:
    """Return the time of all kernels that compute nothing."""
    return sum(k.cost.total for k in timeline.kernels if moves(k))


def by_function(timeline: Timeline) -> list[Share]:
    """Shares of hardware functions, the longest first."""
    return _shares(timeline, lambda k: k.launch.descriptor.op_func_name)


def by_module(timeline: Timeline) -> list[Share]:
    """Shares of modules of the model, the longest first; modules that differ in numbers are one: ``layers.*.mlp``.

    Where that leaves a single one, as of a plain `nn.Sequential`, they stay apart.
    """
    folded = _shares(timeline, lambda k: without_numbers(k.launch.module) or ROOT)
    return folded if len(folded) > 1 else _shares(timeline, lambda k: k.launch.module or ROOT)


def without_numbers(module: str) -> str:
    """Return the path of a module with a star for each number: ``layers.*.mlp`` stands for that of every layer."""
    return _NUMBER.sub("*", module)


def by_line(timeline: Timeline) -> list[Share]:
    """Shares of lines of the model, the longest first."""
    return _shares(timeline, lambda k: k.source or UNKNOWN)


def _shares(timeline: Timeline, key: Callable[[TimedKernel], str]) -> list[Share]:
    groups: dict[str, list[TimedKernel]] = {}
    for kernel in timeline.kernels:
        groups.setdefault(key(kernel), []).append(kernel)
    made = [_share(name, kernels, timeline.kernels_us) for name, kernels in groups.items()]
    return sorted(made, key=lambda share: -share.us)


def _share(name: str, kernels: Sequence[TimedKernel], total: float) -> Share:
    us = sum(k.cost.total for k in kernels)
    moving = sum(k.cost.total for k in kernels if moves(k))
    modules = len({k.launch.module for k in kernels})
    return Share(name, tuple(kernels), us, us / total if total else 0.0, moving, modules)

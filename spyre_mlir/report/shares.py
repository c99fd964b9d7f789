"""Predicted time by function, by module and by line of the model, and the part that only rearranges data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from spyre_mlir.machine.bundle.timeline import TimedKernel, Timeline
from spyre_mlir.ops.function_facts import Group
from spyre_mlir.ops.hardware_functions import function_of

UNKNOWN = "unknown"
ROOT = "the model itself"


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

    Members of an `nn.Sequential` that have no parts stay apart, and so do modules of which one would be left.
    """
    names = folded_modules(k.launch.module for k in timeline.kernels)
    return _shares(timeline, lambda k: names[k.launch.module])


def folded_modules(modules: Iterable[str]) -> dict[str, str]:
    """Return the names of modules in tables: ``layers.*.mlp`` stands for that of every layer.

    A number is a layer, and a star, if modules are in it. ``head.2`` without any is one of several different steps,
    and keeps its number. Where a single name would be left, the modules keep theirs.

    Args:
        modules: paths of all modules of a table.
    """
    paths = set(modules)
    holders = {path[:end] for path in paths for end, sign in enumerate(path) if sign == "."}
    names = {path: _with_stars(path, holders) or ROOT for path in paths}
    return names if len(set(names.values())) > 1 else {path: path or ROOT for path in paths}


def _with_stars(path: str, holders: set[str]) -> str:
    parts = path.split(".")
    within = accumulate(parts, lambda outer, part: f"{outer}.{part}")
    return ".".join(
        "*" if part.isdigit() and whole in holders else part for part, whole in zip(parts, within, strict=True)
    )


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

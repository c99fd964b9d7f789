"""Interpreter of KTIR programs: all cores of the grid, in the program's number types, with every access checked.

What it refuses and looser interpreters let pass: coordinates beyond a view or an array, elements that nobody wrote,
cores that write one place or read what another core may still be writing, tensors and views that do not fit the
scratchpad, stores of the wrong type.

Decision: docs/decisions/0037-ktir-on-a-strict-machine.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.ktdp.grid import grid_of
from spyre_mlir.dialects.target import spec_at
from spyre_mlir.errors import InputError
from spyre_mlir.machine.faults import FaultKind, fault
from spyre_mlir.machine.ktdp.arguments import (
    KtirArgument,
    argument_names,
    arguments,
    find_kernel,
    kernels,
    only_stored_through,
)
from spyre_mlir.machine.ktdp.core import Core, Waiting
from spyre_mlir.machine.ktdp.groups import Exchange
from spyre_mlir.machine.ktdp.liveness import Liveness
from spyre_mlir.machine.ktdp.memory import KtirMemory, Scratchpad
from spyre_mlir.machine.ktdp.state import Machine
from spyre_mlir.machine.ktdp.values import Array, Data, dtype_of

__all__ = ["KtirArgument", "arguments", "find_kernel", "kernels", "run_ktir"]


def run_ktir(
    module: ModuleOp,
    function: str | None = None,
    arrays: Mapping[str, Array | int] | None = None,
    *,
    blank: Sequence[str] = (),
    places: Mapping[str, int] | None = None,
) -> dict[str, Array]:
    """Run a KTIR function on all cores of its grid.

    Args:
        module: a verified module.
        function: which function; without, the only one, or `main`.
        arrays: by argument name, the array a pointer points to, or a number: the first element that a pointer points
            to, where arrays have places. Arrays of other names need a place.
        blank: names of arrays whose contents are undefined until the program writes them.
        places: byte addresses of arrays, for programs that know them.

    Returns:
        By name, every array after the run.

    Raises:
        InputError: arguments are missing, unknown, or not of the kind the program takes.
        MachineFault: the program misbehaves.
        UnsupportedError: an op has no rule here.
    """
    kernel = find_kernel(module, function)
    try:
        grid = grid_of(kernel)
    except VerifyException as error:
        raise InputError(str(error), hint="give the function a grid of the card") from error
    given = dict(arrays or {})
    memory = {name: np.asarray(value) for name, value in given.items() if np.ndim(value)}
    device = KtirMemory(memory, blank, places or {})
    stored = None if any(name not in device.regions for name in _pointers(kernel)) else only_stored_through(kernel)
    for name, region in device.regions.items():
        region.shared = stored is None or name in stored
    remote = any(getattr(getattr(op, "memory_space", None), "core", None) is not None for op in kernel.walk())
    pads = [Scratchpad(number, spec_at(kernel).lx_bytes, shared=remote) for number in range(prod(grid))]
    machine = Machine(grid, device, pads, Exchange(prod(grid)), Liveness(kernel))
    values = _bind(kernel, given, device, places or {})
    cores = [Core(number, machine, {**values}) for number in range(prod(grid))]
    _run_all(kernel, cores)
    return {name: device.regions[name].contents(array.dtype, array.shape) for name, array in memory.items()}


def _pointers(kernel: FuncOp) -> list[str]:
    return [one.name for one in arguments(kernel) if one.pointer]


def _bind(
    kernel: FuncOp, given: Mapping[str, Array | int], device: KtirMemory, placed: Mapping[str, int]
) -> dict[Any, Data]:
    """The values of the arguments: pointers count elements."""
    known = {one.name: one for one in arguments(kernel)}
    names = argument_names(kernel)
    missing = [name for name in names if name not in given]
    extra = [name for name in given if name not in names and name not in placed]
    if extra:
        raise InputError(f"the program has no argument '{extra[0]}'", hint=f"the arguments are {', '.join(names)}")
    if missing:
        raise InputError(f"the argument '{missing[0]}' has no value", hint=f"the arguments are {', '.join(names)}")
    bound: dict[Any, Data] = {}
    for name, value in zip(names, kernel.args, strict=True):
        region = device.regions.get(name)
        if region is None:
            if known[name].pointer and not placed:
                raise InputError(
                    f"the argument '{name}' points to an array, got a number",
                    hint="give the array; a number is an address where arrays have places",
                )
            bound[value] = Data(np.asarray(given[name]).astype(dtype_of(value.type)))
            continue
        if known[name].pointer and dtype_of(known[name].element) != np.asarray(given[name]).dtype:
            wanted, got = dtype_of(known[name].element), np.asarray(given[name]).dtype
            raise InputError(f"the argument '{name}' has elements of {wanted}, got {got}", hint="convert the array")
        bound[value] = Data(np.asarray(region.base // region.unit, np.int64))
    return bound


def _run_all(kernel: FuncOp, cores: Sequence[Core]) -> None:
    """Run all cores; each goes on until it ends or must wait.

    Raises:
        MachineFault: ``deadlock``.
    """
    running: dict[int, Waiting] = {core.number: core.run(kernel) for core in cores}
    while running:
        progress = False
        for number, steps in list(running.items()):
            before = cores[number].machine.exchange.sent
            try:
                next(steps)
            except StopIteration:
                del running[number]
                progress = True
            progress |= cores[number].machine.exchange.sent != before
        if not progress:
            waiting = ", ".join(map(str, running))
            raise fault(
                FaultKind.DEADLOCK,
                f"cores {waiting} wait for partial results that no core sends",
                kernel,
                hint="let every core of a group reach inter_tile_produce",
            )

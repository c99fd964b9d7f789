"""Runs of a bundle, read from disk or in memory, and the executor of its host steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.backend.held import HeldBundle
from spyre_mlir.backend.stored import StoredBundle
from spyre_mlir.dialects.host_call import HostCall
from spyre_mlir.dialects.ir.call_effects import draws_numbers
from spyre_mlir.errors import InputError
from spyre_mlir.machine.arrays import Array
from spyre_mlir.machine.bundle.host_program import DeviceProgram
from spyre_mlir.machine.bundle.probes import Observed, observe_program
from spyre_mlir.machine.levels.host_ops import HostExecutor
from spyre_mlir.machine.meeting import here
from spyre_mlir.machine.options import MachineOptions
from spyre_mlir.ops.native.collectives import is_collective


def stored_program(stored: StoredBundle) -> DeviceProgram:
    """A bundle from disk in the form that the machine runs.

    Raises:
        InputError: the bundle has no host program.
    """
    if stored.program is None:
        raise InputError(
            "the bundle has no program.mlir, so it is not known what its arguments are",
            where=str(stored.directory),
            hint="write it with spyre-compile",
        )
    return DeviceProgram(stored.program, stored.bundle, stored.descriptor, stored.weights(), executor=run_on_host)


def held_program(held: HeldBundle) -> DeviceProgram:
    """A bundle in memory in the form that the machine runs."""
    return DeviceProgram(
        held.program, held.bundle, held.descriptor, held.weights(), executor=run_on_host, tensors=held.tensors
    )


def run_on_host(call: HostCall, operands: Sequence[Array], *, wide: bool) -> list[Array]:
    """Run a host step with torch, which is imported for the first one; see `machine.host_steps.HostExecutor`.

    A collective of a rank among others of this process is computed with theirs.
    """
    if is_collective(call.overload) and (meet := here()) is not None:
        return meet(call, operands, wide)
    from spyre_mlir.frontend import run_host_step

    return run_host_step(call, operands, wide=wide)


def own_draws() -> HostExecutor:
    """Return an executor for one run, whose random numbers leave torch's generator as it is."""
    from spyre_mlir.frontend import OwnDraws

    return OwnDraws()


def seed_draws(program: ModuleOp, seed: int) -> None:
    """Start torch's generator anew, if a program draws random numbers."""
    if draws_numbers(program):
        from spyre_mlir.frontend import seed_generator

        seed_generator(seed)


def launch_probes(stored: StoredBundle, inputs: Sequence[Array | None], options: MachineOptions) -> list[Observed]:
    """Results of every launch of a bundle, without padding where the manifest describes it."""
    extents = stored.manifest.extents
    seen = observe_program(replace(stored_program(stored), executor=own_draws()), inputs, options)
    return [one.observed(extents.get(one.file, {})) for one in seen]

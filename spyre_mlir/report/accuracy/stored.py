"""Accuracy of a bundle directory: device numerics against exact numerics, as there is no model to compare with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.backend.split import split_module
from spyre_mlir.backend.stored import StoredBundle
from spyre_mlir.choices import Numerics
from spyre_mlir.debug.error_walk import KernelError, kernel_errors, launches_of
from spyre_mlir.debug.stored_runs import own_draws, stored_program
from spyre_mlir.dialects.ir.module_control import refuse_control_flow
from spyre_mlir.dialects.superdsc.codec.describe import describe
from spyre_mlir.dialects.target import spec_at
from spyre_mlir.hw.formats import DL16
from spyre_mlir.machine.bundle.host_program import DeviceProgram, run_program
from spyre_mlir.machine.options import MachineOptions
from spyre_mlir.options import CompileOptions
from spyre_mlir.pipeline import LEVELS, lower
from spyre_mlir.report.accuracy.attempts import Attempt, attempts
from spyre_mlir.report.accuracy.outcome import Accuracy
from spyre_mlir.report.timing import bundle_timeline, module_timeline
from spyre_mlir.transforms.inline_regions import InlineRegionsPass
from spyre_mlir.transforms.loop_to_kernel.precision_loss import would_be_kept
from spyre_mlir.universe import make_context

Array = NDArray[Any]
NO_LEVELS = "no change was tried: that needs a directory with its levels, as spyre-compile --levels writes"


def stored_accuracy(stored: StoredBundle, levels: Mapping[str, ModuleOp], inputs: Sequence[Array | None]) -> Accuracy:
    """Compare the results of a bundle in device and in exact numerics, and its launches when they are asked for.

    Args:
        stored: with weights as the model has them, which exact numerics need.
        levels: that the directory has as text; with the aten level, `tried` compiles changes that may help.
        inputs: see `run_program`.

    Raises:
        InputError: the bundle has no host program.
        UnsupportedError: the host decides what runs.
        MachineFault: a run fails.
    """
    compared = _Compared(stored, levels, inputs)
    refuse_control_flow(compared.program.host, "an error by launch")
    found = Accuracy.of(compared.results(compared.program, "device"), compared.exact)
    return replace(
        found,
        reference="exact numerics",
        walk=compared.walk,
        curable=compared.is_curable,
        attempt=partial(compared.attempts, found.worst),
        untried="" if LEVELS[0] in levels else NO_LEVELS,
    )


@dataclass(frozen=True)
class _Compared:
    """A bundle and its inputs."""

    stored: StoredBundle
    levels: Mapping[str, ModuleOp]
    inputs: Sequence[Array | None]

    @cached_property
    def program(self) -> DeviceProgram:
        """The bundle in the form that the machine runs."""
        return stored_program(self.stored)

    @cached_property
    def exact(self) -> list[Array]:
        """Results in exact numerics."""
        return self.results(self.program, "exact")

    def results(self, program: DeviceProgram, numerics: Numerics) -> list[Array]:
        """Run a program on the inputs."""
        return run_program(replace(program, executor=own_draws()), self.inputs, MachineOptions(numerics=numerics))

    def walk(self) -> list[KernelError]:
        """Run the bundle in both numerics side by side."""
        launches = launches_of(self.stored.bundle, self.stored.descriptor, self.program.host)
        return kernel_errors(self.program, self.inputs, launches, self.stored.manifest.extents)

    def is_curable(self, one: KernelError) -> bool:
        """Return whether `keep_float32` makes the error of a launch go away; without levels, its line is not known."""
        if self.stored.descriptor(one.file).operands[-1].format != DL16.name:
            return False
        aten = self.levels.get(LEVELS[0])
        return would_be_kept(self.program.host if aten is None else aten, one.function, aten and one.line)

    def attempts(self, before: float, suspects: Sequence[KernelError]) -> Sequence[Attempt]:
        """Compile the aten level with changes; none without it."""
        if LEVELS[0] not in self.levels:
            return ()
        module, context = self.levels[LEVELS[0]].clone(), make_context()
        InlineRegionsPass().apply(context, module)

        def measure(options: CompileOptions) -> tuple[float, float]:
            lowered = lower(module, make_context(options.spec), options=options.passes()).modules[LEVELS[-1]]
            host, bundle, files = split_module(lowered)
            made = DeviceProgram(host, bundle, lambda name: describe(files[name]))
            return Accuracy.of(self.results(made, "device"), self.exact).worst, module_timeline(lowered).kernels_us

        spec = spec_at(self.stored.bundle)
        us = bundle_timeline(self.stored.bundle, self.stored.descriptor, program=self.program.host).kernels_us
        return attempts(CompileOptions(spec=spec, host_fallback="allow"), before, us, measure, suspects)


__all__ = ["stored_accuracy"]

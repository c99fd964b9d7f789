"""`spyre-run --probe` and `--bisect`: inspection of intermediate values of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spyre_mlir.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spyre_mlir.machine.bundle.host_program import DeviceProgram
    from spyre_mlir.machine.bundle.probes import Observed
    from spyre_mlir.machine.options import MachineOptions
    from spyre_mlir.report.verification import Bisection

    Array = NDArray[Any]

LIST = "list"


def probed(names: Sequence[str], observe: Callable[[], list[Observed]]) -> tuple[dict[str, Array], list[str]]:
    """Return the values of probes by name, and one line per op if a list is asked for.

    Raises:
        InputError: nothing is called so.
    """
    if not names:
        return {}, []
    from spyre_mlir.machine.bundle.probes import pick

    seen = observe()
    lines: list[str] = []
    if LIST in names:
        for one in {one.name: one for one in seen}.values():
            shape = "x".join(map(str, one.values.shape)) or "scalar"
            lines.append(f"{one.name}  {shape}  {one.called}" + (f"  {one.source}" if one.source else "") + "\n")
    return {name: pick(seen, name).values for name in names if name != LIST}, lines


def module_probes(program: DeviceProgram, inputs: Sequence[Array | None], options: MachineOptions) -> list[Observed]:
    """Return the result of every launch of a module, padding included."""
    from dataclasses import replace

    from spyre_mlir.debug.stored_runs import own_draws
    from spyre_mlir.machine.bundle.probes import observe_program

    return [one.observed({}) for one in observe_program(replace(program, executor=own_draws()), inputs, options)]


def bisect_directory(path: Path, inputs: Sequence[Array | None], options: MachineOptions) -> Bisection:
    """Return the first op of a bundle whose value differs from the level above.

    Raises:
        InputError: this is no directory with its levels.
    """
    from spyre_mlir.backend.levels import read_levels
    from spyre_mlir.backend.stored import read_bundle
    from spyre_mlir.debug.bisect import BisectSession, bisect
    from spyre_mlir.debug.stored_runs import stored_program
    from spyre_mlir.pipeline import LEVELS
    from spyre_mlir.report.verification import Bisection
    from spyre_mlir.universe import make_context

    context = make_context()
    modules = read_levels(path, context) if path.is_dir() else {}
    if LEVELS[-1] not in modules:
        raise InputError(
            "there are no levels to compare the files with",
            where=str(path),
            hint="name a bundle directory that spyre-compile has written with --levels",
        )
    divergence = bisect(BisectSession(modules, inputs, options=options), stored_program(read_bundle(path, context)))
    return Bisection(tuple(level for level in LEVELS if level in modules), divergence, options.numerics)

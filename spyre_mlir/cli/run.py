"""`spyre-run`: a module of any level, or a bundle directory, on the hardware model.

Decision: docs/decisions/0112-a-bundle-is-checked-before-it-runs.md
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spyre_mlir.cli.run_json import RunRecord, pending_json, write_json
from spyre_mlir.cli.run_options import parse_arguments
from spyre_mlir.cli.support.endings import guarded, log_to_stderr
from spyre_mlir.cli.support.findings import refuse_errors
from spyre_mlir.cli.support.inputs import lowered_file, names_in, read_inputs
from spyre_mlir.cli.support.memory_limit import limit_memory
from spyre_mlir.cli.support.output import json_place
from spyre_mlir.cli.support.timing import Predictions, predictions
from spyre_mlir.errors import InputError, MachineFault, ReadError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute

    from spyre_mlir.choices import Numerics
    from spyre_mlir.cli.support.output import PendingOutput
    from spyre_mlir.machine.bundle.probes import Observed
    from spyre_mlir.machine.faults import FaultLog
    from spyre_mlir.machine.options import MachineOptions

    Array = NDArray[Any]

log = logging.getLogger("spyre_mlir.cli.run")


@dataclass(frozen=True)
class Runnable:
    """A program to run: the function that declares the arguments, how to run it, and tensors stored with it.

    `held` names the weights that came as the device has them; their value is None. `observe` runs it too, and gives
    what every op left behind.
    A program whose function does not say so by its types says what it takes, and runs to results with names.
    """

    main: ModuleOp
    run: Callable[[list[Array | None]], list[Array]]
    values: Mapping[str, Array]
    held: frozenset[str] = frozenset()
    takes: Mapping[str, Attribute] | None = None
    gives: Callable[[list[Array | None]], Mapping[str, Array]] | None = None
    observe: Callable[[list[Array | None]], list[Observed]] | None = None


@guarded("spyre-run")
def run(argv: Sequence[str] | None = None) -> int:
    """Runs one program; see ``spyre-run --help``."""
    options = parse_arguments(argv)
    log_to_stderr(options.verbose)
    limit_memory(options.memory_limit)
    with json_place(options.json) as options.json, lowered_file(options.path, options.to) as options.path:
        from spyre_mlir.backend.stored import is_parted

        return (_run_parts if is_parted(Path(options.path)) else _run)(options)


def _run(options: argparse.Namespace) -> int:
    if options.card is not None:
        from spyre_mlir.cli.run_external import run_on_card

        refuse_errors(Path(options.path), insist=options.no_check)
        return run_on_card(Path(options.path), read_inputs(options.input), options)
    from spyre_mlir.cli.support.overflows import say_overflows
    from spyre_mlir.debug.named_inputs import argument_types, bound_inputs, check_names, place_limits
    from spyre_mlir.debug.stored_runs import seed_draws
    from spyre_mlir.machine.faults import FaultLog
    from spyre_mlir.machine.options import MachineOptions

    met, path = FaultLog(options.on_fault), Path(options.path)
    numerics: Numerics = options.numerics or _numerics_for(path, compares=options.bisect or options.accuracy)
    machine = MachineOptions(numerics=numerics, on_fault=options.on_fault, nan=options.nan)
    from spyre_mlir.cli.run_external import foreign_at, run_foreign_files

    predicted, pending = predictions(path, options), pending_json(options.json)
    if not (options.bisect or options.accuracy) and (foreign := foreign_at(path)) is not None:
        refuse_errors(path, insist=options.no_check or options.bisect)
        given = read_inputs(options.input)
        text, outputs, seen = run_foreign_files(foreign, given, options.seed, machine, met)
        say_overflows(options.on_overflow, met)
        return _finish(options, outputs, lambda: seen, text, predicted, pending, met)
    if options.accuracy:
        from spyre_mlir.cli.run_accuracy import check_directory

        check_directory(path)
    runnable = _load(path, machine, met, options.numerics)
    refuse_errors(path, insist=options.no_check or options.bisect)
    takes = argument_types(runnable.main) if runnable.takes is None else list(runnable.takes.items())
    check_names(names_in(options.input), [name for name, _ in takes])
    limits, given = place_limits(runnable.main), read_inputs(options.input)
    inputs = bound_inputs(takes, given, runnable.values, runnable.held, options.seed, limits)
    seed_draws(runnable.main, options.seed)
    if options.bisect:
        from spyre_mlir.cli.run_probe import bisect_directory

        bisection = bisect_directory(path, inputs, machine)
        predicted.finish(verification=bisection)
        write_json(pending, bisection)
        sys.stdout.write(f"{bisection}\n")
        return 0 if bisection else MachineFault.exit_code
    if options.accuracy:
        from spyre_mlir.cli.run_accuracy import accuracy_of_directory

        accuracy = accuracy_of_directory(path, inputs)
        predicted.finish(accuracy=accuracy)
        write_json(pending, accuracy)
        sys.stdout.write(f"{accuracy}\n")
        return 0
    started = time.perf_counter()
    outputs = _outputs(runnable, inputs)
    say_overflows(options.on_overflow, met, runnable.main)
    log.info("run: %d arguments, %d results, %.3f s", len(inputs), len(outputs), time.perf_counter() - started)
    seed_draws(runnable.main, options.seed)  # probes see what this run drew
    return _finish(
        options, outputs, lambda: runnable.observe(inputs) if runnable.observe else [], "", predicted, pending, met
    )


def _run_parts(options: argparse.Namespace) -> int:
    """Runs a model in parts, and gives the exit code."""
    from spyre_mlir.cli.run_parts import results_of_parts
    from spyre_mlir.cli.support.timing import predictions
    from spyre_mlir.machine.faults import FaultLog

    pending, path = pending_json(options.json), Path(options.path)
    outputs = results_of_parts(path, read_inputs(options.input), options)
    return _finish(options, outputs, list, "", predictions(path, options), pending, FaultLog(options.on_fault))


def _numerics_for(path: Path, *, compares: bool) -> Numerics:
    """The numerics of a run that does not say which: the card's, but exact for comparisons if there are weights."""
    from spyre_mlir.backend.stored import runs_exactly

    return "exact" if compares and (not path.is_dir() or runs_exactly(path)) else "device"


def _finish(
    options: argparse.Namespace,
    outputs: Mapping[str, Array],
    observe: Callable[[], list[Observed]],
    before: str,
    predicted: Predictions,
    pending: PendingOutput | None,
    met: FaultLog,
) -> int:
    """Writes results and probes, says what they are and what the run met, and gives the exit code."""
    from spyre_mlir.cli.run_probe import probed

    probes, listed = probed(options.probe, observe)
    if options.output is not None:
        _write(Path(options.output), outputs)
    if probes:
        _write(Path(options.output or "."), {name.removeprefix("%"): value for name, value in probes.items()})
    shown = [f"{name}: {_summary(value)}\n" for name, value in (*outputs.items(), *probes.items())]
    lines = met.lines()
    write_json(pending, RunRecord(outputs, probes, lines))
    for line in met.undecided():
        log.info("depends on an open question: %s", line)
    sys.stdout.write("".join([before, *listed, *shown, predicted.finish(lines), *(f"{line}\n" for line in lines)]))
    return MachineFault.exit_code if met.faults else 0


def _outputs(runnable: Runnable, inputs: list[Array | None]) -> Mapping[str, Array]:
    if runnable.gives is not None:
        return runnable.gives(inputs)
    from spyre_mlir.debug.named_inputs import argument_names

    results = runnable.run(inputs)
    return dict(zip(argument_names(runnable.main, "res_attrs", len(results)), results, strict=True))


def _load(path: Path, options: MachineOptions, met: FaultLog, asked: Numerics | None) -> Runnable:
    from spyre_mlir.universe import make_context

    context = make_context()
    if not path.exists():
        hint = "name a directory with a bundle.mlir, or a file that ends with .mlir or .json"
        raise ReadError("there is no such file or directory", where=str(path), hint=hint)
    if path.is_file() and path.suffix != ".mlir":
        raise InputError(
            "this is neither an .mlir file nor a bundle directory",
            where=str(path),
            hint="name a directory with a bundle.mlir, or a file that ends with .mlir or .json",
        )
    if path.is_dir() or path.suffix != ".mlir":
        from spyre_mlir.backend.directory import read_bundle
        from spyre_mlir.debug.stored_runs import launch_probes, stored_program
        from spyre_mlir.machine.bundle.host_program import run_program

        stored = read_bundle(path, context)
        program = stored_program(stored)
        values, held = stored.values(), stored.weight_names()
        if options.numerics != "device":
            held -= values.keys()
        return Runnable(
            program.host,
            lambda inputs: run_program(program, inputs, options, None, met),
            values,
            frozenset(held),
            observe=lambda inputs: launch_probes(stored, inputs, options),
        )
    from spyre_mlir.text.render import parse_module, verify_module

    try:
        text = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"the file cannot be read: {error.strerror}",
            where=str(path),
            hint="name an .mlir file or a bundle directory",
        ) from error
    module = parse_module(text, context, str(path))
    verify_module(module)
    return _runnable(module, options, met, asked)


def _runnable(module: ModuleOp, options: MachineOptions, met: FaultLog, asked: Numerics | None) -> Runnable:
    from spyre_mlir.dialects.superdsc.dialect.ops import SdscOp

    if any(isinstance(op, SdscOp) for op in module.ops):
        return _runnable_files(module, options, met)
    if any(op.name.startswith("ktdp.") for op in module.walk()):
        return _runnable_ktir(module, asked)
    return _runnable_level(module, asked)


def _runnable_files(module: ModuleOp, options: MachineOptions, met: FaultLog) -> Runnable:
    """Return the runner of a module at the superdsc level."""
    from spyre_mlir.backend.directory import split_module
    from spyre_mlir.cli.run_probe import module_probes
    from spyre_mlir.debug.stored_runs import run_on_host
    from spyre_mlir.dialects.superdsc.codec.describe import describe
    from spyre_mlir.machine.bundle.host_program import DeviceProgram, run_program

    host, bundle, files = split_module(module)
    program = DeviceProgram(host, bundle, lambda name: describe(files[name]), executor=run_on_host)
    return Runnable(
        host,
        lambda inputs: run_program(program, inputs, options, None, met),
        {},
        observe=lambda inputs: module_probes(program, inputs, options),
    )


def _runnable_ktir(module: ModuleOp, asked: Numerics | None) -> Runnable:
    from spyre_mlir.cli import run_ktir

    if asked not in (None, "exact"):
        raise InputError("KTIR programs compute in the types they state", hint="leave out --numerics")

    def gives(given: list[Array | None]) -> Mapping[str, Array]:
        return run_ktir.run(module, [value for value in given if value is not None])  # none of them is held

    return Runnable(module, lambda _: [], {}, takes=run_ktir.takes(module), gives=gives)


def _runnable_level(module: ModuleOp, asked: Numerics | None) -> Runnable:
    """Return the runner of a module at a level above superdsc."""
    from spyre_mlir.debug.stored_runs import own_draws, run_on_host
    from spyre_mlir.machine.bundle.probes import observe_function
    from spyre_mlir.machine.levels.run import find_function, run_function

    parts = {"spyre.kernel.launch": "host", "sdscbundle.sdsc_execute": "device"}
    if (part := next((parts[op.name] for op in module.walk() if op.name in parts), None)) is not None:
        raise InputError(
            f"this is the {part} part of a bundle; the programs it launches are other files",
            hint="run the bundle's directory",
        )
    if find_function(module, "main").is_declaration:
        raise InputError("the function 'main' is only declared", hint="give it a body")
    if asked not in (None, "exact"):
        raise InputError(
            "the levels above superdsc have exact numerics only",
            hint="add --to superdsc, which lowers the program, or run a bundle's directory",
        )
    return Runnable(
        module,
        lambda inputs: run_function(module, [x for x in inputs if x is not None], host=run_on_host),
        {},
        observe=lambda inputs: observe_function(module, [x for x in inputs if x is not None], own_draws()),
    )


def _write(directory: Path, outputs: Mapping[str, Array]) -> None:
    import numpy as np

    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, value in outputs.items():
            np.save(directory / f"{name.replace('/', '_')}.npy", value)
    except OSError as error:
        raise InputError(
            f"the results cannot be written: {error.strerror}",
            where=str(directory),
            hint="name a directory that can be created",
        ) from error


def _summary(value: Array) -> str:
    shape = "x".join(map(str, value.shape)) or "scalar"
    if value.size == 0:
        return f"{shape}, empty"
    wide = value.astype(float)
    return f"{shape}, min {wide.min():.6g}, mean {wide.mean():.6g}, max {wide.max():.6g}"


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of the command."""
    sys.exit(run(argv))


if __name__ == "__main__":
    main()

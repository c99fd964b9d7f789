"""`spyre-run` beyond our own bundles on the machine: external bundles, with what is unknown of them, and cards."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spyre_mlir.errors import InputError, MachineFault
from spyre_mlir.sizes import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spyre_mlir.machine.bundle.external_bundle import ExternalLaunch, ExternalProgram, ExternalTensor
    from spyre_mlir.machine.bundle.probes import Observed
    from spyre_mlir.machine.faults import FaultLog
    from spyre_mlir.machine.memory.exact import Memory
    from spyre_mlir.machine.options import MachineOptions

    Array = NDArray[Any]

NOT_KNOWN = """not known:
  which tensors the model had: an input is what a launch reads and none before it wrote, a result what is left unread
  their layouts on the host: shapes are those of the files, padding included
  the model's source: no launch names a line of it
"""


def foreign_at(path: Path) -> ExternalProgram | None:
    """Read the program of a SuperDSC file, or of a directory without our files; None for anything else.

    Raises:
        ReadError: a file is missing or is not what its name says.
    """
    from spyre_mlir.backend.stored import BUNDLE_FILE, MANIFEST_FILE, PROGRAM_FILE, read_bundle
    from spyre_mlir.dialects.superdsc.codec.describe import describe
    from spyre_mlir.machine.bundle.external_bundle import foreign_program, single

    if path.is_file() and path.suffix == ".json":
        from spyre_mlir.backend.json_file import suggesting
        from spyre_mlir.backend.read import read_json

        with suggesting("name a SuperDSC file; spyre-translate --check FILE lists what is wrong with it"):
            return single(describe(read_json(path)), path.name)
    ours = any((path / name).exists() for name in (PROGRAM_FILE, MANIFEST_FILE))
    if ours or not (path / BUNDLE_FILE).is_file():
        return None
    from spyre_mlir.universe import make_context

    stored = read_bundle(path, make_context())
    return foreign_program(stored.bundle, stored.descriptor)


def run_foreign_files(
    program: ExternalProgram, given: Mapping[str, Array], seed: int, options: MachineOptions, met: FaultLog
) -> tuple[str, dict[str, Array], list[Observed]]:
    """Run the program, on random numbers for inputs without a value; `met` collects the faults.

    Returns:
        What ran and what is not known of it, the results, and what every launch left behind.

    Raises:
        InputError: a value is of no input, or of another shape.
        MachineFault: the program misbehaved.
    """
    import numpy as np

    from spyre_mlir.machine.bundle.external_bundle import random_value, run_foreign
    from spyre_mlir.machine.bundle.probes import Observed, operand_values

    named = _by_name(program, given)
    random = np.random.default_rng(seed)
    values = {t.name: named[t.name] if t.name in named else random_value(t, random) for t in program.inputs}
    seen: list[Observed] = []

    def watch(step: ExternalLaunch, memory: Memory) -> None:
        last = len(step.view.operands) - 1
        values = operand_values(step.view, last, memory, step.symbols)
        seen.append(Observed(step.op, step.name, values, step.view.op_func_name))

    results = run_foreign(program, values, options, watch, met)
    return _account(program, named), results, seen


def _by_name(program: ExternalProgram, given: Mapping[str, Array]) -> dict[str, Array]:
    """Values by the full name of their input; the operand's own name will do where it is one input's only."""
    names = [tensor.name for tensor in program.inputs]
    found: dict[str, Array] = {}
    for name, value in given.items():
        full = [n for n in names if name in (n, n.rpartition(".")[2])]
        if len(full) != 1:
            problem = "has no input" if not full else "has several inputs"
            raise InputError(f"the bundle {problem} '{name}'", hint=f"its inputs are {', '.join(names) or 'none'}")
        found[full[0]] = value
    return found


def _account(program: ExternalProgram, given: Mapping[str, Array]) -> str:
    from spyre_mlir.machine.bundle.external_bundle import described

    files = {step.op.sdsc_filename.data for step in program.steps}
    lines = [f"ran {counted(len(program.steps), 'launch')} of {counted(len(files), 'file')}"]
    read = written = 0
    for number, step in enumerate(program.steps):
        traffic = program.traffic(number)
        read, written = read + traffic[0], written + traffic[1]
        what = f"{step.view.op_func_name} on {counted(step.view.cores, 'core')}"
        lines.append(f"  {step.name}: {what}, reads {traffic[0]:,} bytes, writes {traffic[1]:,}")
    lines.append(f"  together {read:,} bytes read, {written:,} written")
    lines.append("inputs:")
    lines += [f"  {line}{_origin(t, given)}" for t, line in zip(program.inputs, described(program.inputs), strict=True)]
    lines += ["results:", *(f"  {line}" for line in described(program.results))]
    return "\n".join(lines) + "\n" + NOT_KNOWN


def _origin(tensor: ExternalTensor, given: Mapping[str, Array]) -> str:
    return ", given" if tensor.name in given else ", random"


def add_card_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a run on a card."""
    parser.add_argument(
        "--card",
        choices=("run", "compile"),
        help="give a bundle directory to the software of a card, and compare every kernel with the machine; compile "
        "only asks its back-end compiler whether it takes the files",
    )
    parser.add_argument(
        "--card-compiler",
        metavar="COMMAND",
        help="command of the back-end compiler, which the directory follows (default 'dxp_standalone -d')",
    )
    parser.add_argument("--card-python", metavar="PYTHON", help="interpreter that has torch-spyre (default: this one)")
    parser.add_argument("--card-keep", metavar="DIR", help="keep the directories that the card is given")
    parser.add_argument(
        "--card-seconds", metavar="N", type=float, default=600.0, help="longest time for one directory (default 600)"
    )


def run_on_card(path: Path, given: Mapping[str, Array], options: argparse.Namespace) -> int:
    """Compare a bundle on a card with the machine, and print the verdicts; return the exit code.

    Raises:
        UnsupportedError: there is no software of a card.
        InputError: this is no bundle directory.
    """
    from spyre_mlir.runtime import compare_with_card, find_card

    if not path.is_dir():
        raise InputError(
            "a card is given bundle directories", where=str(path), hint="name a directory with a bundle.mlir"
        )
    card = find_card(
        options.card_compiler, options.card_python, runs=options.card == "run", seconds=options.card_seconds
    )
    comparison = compare_with_card(path, card, given, seed=options.seed, keep=options.card_keep)
    sys.stdout.write(f"{comparison}\n")
    return 0 if comparison else MachineFault.exit_code

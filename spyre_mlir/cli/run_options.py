"""Command line of `spyre-run`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import get_args

from spyre_mlir.choices import RANDOM_INTEGERS_BELOW, Numerics, OnFault, OnOverflow
from spyre_mlir.cli.run_external import add_card_options
from spyre_mlir.cli.support.endings import ToolArgumentParser, add_verbosity
from spyre_mlir.cli.support.memory_limit import add_memory_limit
from spyre_mlir.cli.support.timing import add_time_options


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the options of a call; an unusable command line ends the process with a message."""
    parser = ToolArgumentParser(
        prog="spyre-run",
        description="Run an .mlir file of any level, a bundle directory, a model in parts, or a SuperDSC file, on the "
        "hardware model.",
        epilog="Arguments without --input come from the bundle's data file, else they are random: numbers uniform in "
        f"[-1, 1), integers from 0 to {RANDOM_INTEGERS_BELOW - 1}.",
    )
    parser.add_argument(
        "path",
        metavar="PATH",
        help="an .mlir file, a directory of a bundle or of a model in parts, or a SuperDSC .json file",
    )
    parser.add_argument(
        "--to",
        metavar="LEVEL|PASS",
        help="lower an .mlir file first, from where it is to a level (superdsc) or through a pass, like spyre-opt --to",
    )
    _add_values(parser)
    _add_responses(parser)
    parser.add_argument(
        "--probe",
        action="append",
        default=[],
        metavar="NAME",
        help="also write the result of an op to NAME.npy, in --output or here: sdsc_3 of a bundle, %%value of an "
        ".mlir file; 'list' lists the names",
    )
    _add_comparisons(parser)
    add_card_options(parser)
    parser.add_argument(
        "--no-check",
        action="store_true",
        help="run a bundle or a SuperDSC file even if it violates rules of spyre-translate --check",
    )
    add_time_options(parser)
    parser.add_argument(
        "--json",
        metavar="FILE.json",
        help="write the results of the run in numbers, and what it met; or what --accuracy or --bisect found; "
        "- is stdout, and the rest goes to stderr",
    )
    add_memory_limit(parser)
    add_verbosity(parser)
    options = parser.parse_args(argv)
    _check_together(parser, options)
    return options


def _check_together(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Ends the process with a message if options exclude each other."""
    own = (options.time, options.trace, options.ideal_cycles)
    if (options.bisect or options.accuracy) and (options.probe or options.output or any(o is not None for o in own)):
        parser.error(
            f"--{'bisect' if options.bisect else 'accuracy'} compares two runs; --probe, --output, --time, --trace "
            "and --ideal-cycles go with a run of their own"
        )
    if options.accuracy and options.numerics is not None:
        parser.error("--accuracy runs in device and in exact numerics; leave out --numerics")
    if options.card and (
        options.bisect or options.accuracy or options.probe or options.output or options.json or options.numerics
    ):
        parser.error(
            "--card compares in device numerics and prints verdicts; --bisect, --accuracy, --probe, --output, --json "
            "and --numerics go with a run of their own"
        )
    if options.bisect and options.accuracy:
        parser.error("--bisect and --accuracy are two comparisons; choose one")


def _add_values(parser: argparse.ArgumentParser) -> None:
    """What the arguments are, how to compute, and where results go."""
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=FILE.npy",
        help="the value of an argument; FILE.safetensors alone gives all arguments it contains",
    )
    parser.add_argument(
        "--numerics",
        choices=get_args(Numerics),
        help="device (default) rounds as the card does, with a bundle's weights in the card's form; exact as eager "
        "does; none computes in float32, and looks for no fault that depends on data. Levels above superdsc always "
        "compute exactly, KTIR in its own types, and --bisect compares exactly by default",
    )
    parser.add_argument("--seed", type=_seed, default=0, help="seed of random arguments (default 0)")
    parser.add_argument("--output", metavar="DIR", help="write every result to DIR/NAME.npy")


def _add_comparisons(parser: argparse.ArgumentParser) -> None:
    """Options that compare two runs instead of giving results."""
    parser.add_argument(
        "--bisect",
        action="store_true",
        help="compare a bundle directory with its levels, and name the first op whose value differs; on the page "
        "--report and in the file --json too",
    )
    parser.add_argument(
        "--accuracy",
        action="store_true",
        help="run a bundle directory in device and in exact numerics side by side, and list the launches that add most "
        "to the error, with what to try; on the page --report and in the file --json too",
    )


def _add_responses(parser: argparse.ArgumentParser) -> None:
    """Options that choose the response to faults and to numbers beyond a format."""
    parser.add_argument(
        "--on-fault",
        choices=get_args(OnFault),
        default="raise",
        help="raise stops at the first fault (default); warn says each once on stderr and goes on, collect goes on and "
        "lists them at the end, with exit code 3; above the superdsc level the first fault always stops the run",
    )
    parser.add_argument(
        "--nan",
        choices=("allow", "fault"),
        default="allow",
        help="fault: report an operation of a bundle that turns numbers into infinities or NaN (default allow)",
    )
    parser.add_argument(
        "--on-overflow",
        choices=get_args(OnOverflow),
        default="warn",
        help="finite numbers beyond the largest DLFloat16, in device numerics: warn says so on stderr (default), raise "
        "ends with exit code 3 and without results, ignore says nothing",
    )


def _seed(text: str) -> int:
    seed = int(text)
    if seed < 0:
        raise argparse.ArgumentTypeError(f"{seed} is negative")
    return seed


_seed.__name__ = "whole number"  # argparse names it where the text is none

__all__ = ["parse_arguments"]

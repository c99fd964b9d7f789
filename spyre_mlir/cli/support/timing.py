"""`--time`, `--trace`, `--ideal-cycles` and `--report`: predictions for a bundle or a superdsc file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spyre_mlir.cli.support.output import PendingOutput
from spyre_mlir.errors import InputError
from spyre_mlir.hw.cost_parameters import PROFILES, Profile

if TYPE_CHECKING:
    from spyre_mlir.machine.bundle.timeline import Timeline
    from spyre_mlir.report.accuracy import Accuracy
    from spyre_mlir.report.host_steps import HostWork
    from spyre_mlir.report.verification import Bisection


def add_time_options(parser: argparse.ArgumentParser) -> None:
    """Adds --time, --trace, --ideal-cycles and --report to a tool."""
    parser.add_argument(
        "--time",
        nargs="?",
        const=next(iter(PROFILES)),
        choices=list(PROFILES),
        metavar="PROFILE",
        help=f"also print the predicted time of every kernel; profiles: {', '.join(PROFILES)} (default the first)",
    )
    parser.add_argument(
        "--trace", metavar="FILE.json", help="write the predicted timeline for Perfetto or chrome://tracing"
    )
    parser.add_argument(
        "--ideal-cycles", metavar="FILE.txt", help="write the ideal cycles of its kernels for aiu-trace-analyzer"
    )
    parser.add_argument(
        "--report", metavar="FILE.html", help="write a page: time by kernel and line, roofline, scratchpads"
    )


def asks_for_time(options: argparse.Namespace) -> bool:
    """Return whether any of the options of `add_time_options` was given."""
    return any(option is not None for option in (options.time, options.trace, options.ideal_cycles, options.report))


@dataclass
class Predictions:
    """Time predictions that the tools write in addition to their own output.

    Attributes:
        name: of the program.
        timeline: when everything happens; None if nobody asked.
        host: what the host does.
    """

    name: str
    timeline: Timeline | None
    host: Sequence[HostWork]
    printed: bool
    trace: PendingOutput | None
    cycles: PendingOutput | None
    page: PendingOutput | None

    def finish(
        self,
        faults: Sequence[str] | None = None,
        *,
        accuracy: Accuracy | None = None,
        verification: Bisection | None = None,
    ) -> str:
        """Write the requested files, and return the table to print; empty if none is requested.

        Args:
            faults: of a run; None if the program has not run.
            accuracy: of the bundle, for the page.
            verification: of the bundle against its levels, for the page.
        """
        if self.timeline is None:
            return ""
        from spyre_mlir.report.ideal_cycles import ideal_cycles_text
        from spyre_mlir.report.page import page_text
        from spyre_mlir.report.timing import timing_text
        from spyre_mlir.report.trace import trace_text

        if self.trace is not None:
            self.trace.deliver(trace_text(self.timeline, self.name, self.host))
        if self.cycles is not None:
            self.cycles.deliver(ideal_cycles_text(self.timeline))
        if self.page is not None:
            page = page_text(self.name, self.timeline, self.host, faults, (), accuracy, verification)
            self.page.deliver(page)
        return timing_text(self.timeline, self.host) + "\n" if self.printed else ""


def predictions(path: Path, options: argparse.Namespace) -> Predictions:
    """Prepare the predictions that --time, --trace and --report request for a bundle.

    Raises:
        InputError: there is no bundle at the path.
        OSError: a file that was asked for cannot be written.
    """
    profile: Profile = options.time or next(iter(PROFILES))
    files = (options.trace, options.ideal_cycles, options.report)
    trace, cycles, page = (None if file is None else PendingOutput(file) for file in files)
    if not asks_for_time(options):
        return Predictions(path.stem, None, (), False, None, None, None)
    timeline, host = timeline_of(path, profile)
    return Predictions(path.resolve().stem, timeline, host, options.time is not None, trace, cycles, page)


def timeline_of(path: Path, profile: Profile) -> tuple[Timeline, Sequence[HostWork]]:
    """Return the timeline and the host steps of a bundle directory, or of an .mlir file at the superdsc level.

    Raises:
        InputError: there is no bundle at the path.
    """
    from spyre_mlir.machine.bundle.host_times import host_times
    from spyre_mlir.report.host_steps import host_steps
    from spyre_mlir.report.timing import bundle_timeline, module_timeline
    from spyre_mlir.universe import make_context

    if path.is_dir():
        from spyre_mlir.backend.directory import read_bundle

        stored = read_bundle(path, make_context())
        host = [] if stored.program is None else host_steps(stored.program)
        steps = () if stored.program is None else host_times(stored.program, profile)
        program = stored.program
        return bundle_timeline(stored.bundle, stored.descriptor, profile, host=steps, program=program), host
    from spyre_mlir.backend.directory import split_module
    from spyre_mlir.dialects.superdsc.dialect.ops import SdscOp
    from spyre_mlir.text.render import parse_module, verify_module

    try:
        text = path.read_bytes()
    except OSError as error:
        raise InputError(f"the file cannot be read: {error.strerror}", where=str(path), hint="name a bundle") from error
    module = parse_module(text, make_context(), str(path))
    verify_module(module)
    if not any(isinstance(op, SdscOp) for op in module.ops):
        raise InputError(
            "time is predicted for bundles, and this file holds no SuperDSC",
            where=str(path),
            hint="add --to superdsc, which lowers it, or name a bundle directory",
        )
    program, _, _ = split_module(module)
    return module_timeline(module, profile), host_steps(program)

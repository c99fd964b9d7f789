"""`spyre-run --time`: what the cost model says about a bundle, from a directory or a file at the superdsc level."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, cast

from spyre_mlir.errors import InputError
from spyre_mlir.hw.cost_parameters import PROFILES, Profile

if TYPE_CHECKING:
    from spyre_mlir.machine.timeline import Timeline


def add_time_option(parser: argparse.ArgumentParser) -> None:
    """Adds --time to a tool."""
    parser.add_argument(
        "--time",
        nargs="?",
        const=next(iter(PROFILES)),
        choices=list(PROFILES),
        metavar="PROFILE",
        help=f"also print the predicted time of every kernel; profiles: {', '.join(PROFILES)} (default the first)",
    )


def predicted_time(path: Path, profile: str | None) -> str:
    """The table of a bundle's kernels; empty if nobody asked.

    Raises:
        InputError: there is no bundle at the path.
    """
    if profile is None:
        return ""
    from spyre_mlir.report.timing import timing_text

    return timing_text(timeline_of(path, cast("Profile", profile))) + "\n"


def timeline_of(path: Path, profile: Profile) -> Timeline:
    """The timeline of a bundle directory, or of an .mlir file at the superdsc level.

    Raises:
        InputError: there is no bundle at the path.
    """
    from spyre_mlir.report.timing import bundle_timeline, module_timeline
    from spyre_mlir.universe import make_context

    if path.is_dir():
        from spyre_mlir.backend.directory import read_bundle

        stored = read_bundle(path, make_context())
        return bundle_timeline(stored.bundle, stored.descriptor, profile)
    from spyre_mlir.dialects.superdsc.ops import SdscOp
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
            hint="lower it to the superdsc level, or name a bundle directory",
        )
    return module_timeline(module, profile)

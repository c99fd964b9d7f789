"""`spyre-run` of a directory with a model in parts: the whole model, the host's steps included.

Decision: docs/decisions/0243-the-command-line-takes-models-in-parts.md
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spyre_mlir.cli.support.warned import warnings_logged
from spyre_mlir.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

log = logging.getLogger("spyre_mlir.cli.run")

# Options that are about one program, by the name that argparse gives their values.
_OF_ONE_PROGRAM = ("card", "bisect", "accuracy", "probe", "time", "trace", "ideal_cycles", "report")


def results_of_parts(path: Path, given: Mapping[str, Array], options: argparse.Namespace) -> Mapping[str, Array]:
    """Run a model in parts.

    Args:
        path: the directory.
        given: values of inputs, by name.
        options: of the command line.

    Raises:
        InputError: an option is about one program, or a value fits no input.
        MachineFault: a part misbehaved.
    """
    from spyre_mlir.api import load
    from spyre_mlir.machine.overflows import DL16OverflowWarning
    from spyre_mlir.parted.model import PartedModel
    from spyre_mlir.transforms.utils.host_fallback import HostStepWarning

    _check(path, options)
    choices: dict[str, Any] = {name: getattr(options, name) for name in ("on_fault", "on_overflow")}
    started = time.perf_counter()
    with warnings_logged(DL16OverflowWarning, hidden=HostStepWarning):  # the compilation has said these steps
        model = load(path, check=not options.no_check, numerics=options.numerics or "device", **choices)
        assert isinstance(model, PartedModel)
        results = model.run_arrays(given, options.seed)
    log.info("run: %d results, %d programs, %.3f s", len(results), len(model.programs), time.perf_counter() - started)
    return results


def _check(path: Path, options: argparse.Namespace) -> None:
    """Refuses options that a model in parts has no answer to."""
    asked = [name for name in _OF_ONE_PROGRAM if getattr(options, name) not in (None, False, [])]
    hint = "leave it out, or run the bundle directory of a part, as part_0"
    if asked:
        name = asked[0].replace("_", "-")
        raise InputError(f"--{name} is about one program, and this model has several", where=str(path), hint=hint)
    for name, value, plain in (("on-fault", options.on_fault, "raise"), ("nan", options.nan, "allow")):
        if value not in (plain, "warn"):
            raise InputError(f"--{name} {value} is about one program", where=str(path), hint=hint)


__all__ = ["results_of_parts"]

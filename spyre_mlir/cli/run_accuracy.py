"""`spyre-run --accuracy`: the error of device numerics behind every launch of a bundle, the worst first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spyre_mlir.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spyre_mlir.report.accuracy import Accuracy

    Array = NDArray[Any]


def check_directory(path: Path) -> None:
    """Check that both numerics can run a program.

    Raises:
        InputError: this is no bundle directory, or it lacks the weights that exact numerics need.
    """
    from spyre_mlir.backend.stored import runs_exactly

    if not path.is_dir():
        hint = "name one that spyre-compile -o wrote"
        raise InputError("--accuracy compares the launches of a bundle directory", where=str(path), hint=hint)
    if not runs_exactly(path):
        raise InputError(
            "the bundle has its weights in the card's form only, and exact numerics need the model's",
            where=str(path),
            hint="write it with save(directory, host_weights=True)",
        )


def accuracy_of_directory(path: Path, inputs: Sequence[Array | None]) -> Accuracy:
    """Return the error of a bundle directory, by launch too, and what to try.

    Raises:
        MachineFault: a run fails.
        UnsupportedError: the host decides what runs.
    """
    from spyre_mlir.backend.levels import read_levels
    from spyre_mlir.backend.stored import read_bundle
    from spyre_mlir.report.accuracy.stored import stored_accuracy
    from spyre_mlir.universe import make_context

    context = make_context()
    return stored_accuracy(read_bundle(path, context), read_levels(path, context), inputs)

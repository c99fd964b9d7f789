"""`spyre-run --json`: results of a run in numbers, for programs to read.

`docs/reference/run.schema.json` is the schema of the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from spyre_mlir.cli.support.output import PendingOutput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spyre_mlir.dialects.superdsc.model.json_value import JsonObject

    Array = NDArray[Any]

FORMAT, VERSION = "spyre-run", 1


class HasJson(Protocol):
    """Outcome with the text of a JSON file."""

    def json(self) -> str:
        """Return the text of the file."""
        ...


@dataclass(frozen=True)
class RunRecord:
    """Results and probes of a run by name, and the faults and overflows that it met, a line each."""

    results: Mapping[str, Array]
    probes: Mapping[str, Array]
    met: Sequence[str]

    def json(self) -> str:
        """Return the text of the JSON file."""
        from spyre_mlir.backend.json_file import dump_text

        return dump_text(
            {
                "format": FORMAT,
                "version": VERSION,
                "results": [_tensor(name, value) for name, value in self.results.items()],
                "probes": [_tensor(name, value) for name, value in self.probes.items()],
                "met": [*self.met],
            }
        )


def _tensor(name: str, value: Array) -> JsonObject:
    """Return a tensor in numbers; those of no element, and those that are not finite, are null."""
    from spyre_mlir.report.figures import finite

    wide = value.astype(float)
    numbers = (wide.min(), wide.mean(), wide.max()) if wide.size else ()
    least, mean, largest = (finite(float(number)) for number in numbers) if numbers else (None, None, None)
    return {
        "name": name,
        "type": str(value.dtype),
        "shape": list(value.shape),
        "min": least,
        "mean": mean,
        "max": largest,
    }


def pending_json(path: str | None) -> PendingOutput | None:
    """Return the file of `--json`, which is written when everything has succeeded; None if the call has none.

    Raises:
        OSError: it cannot be written.
    """
    return None if path is None else PendingOutput(path)


def write_json(pending: PendingOutput | None, outcome: HasJson) -> None:
    """Write the outcome of a run, or of a comparison, to the file of `--json`, if there is one."""
    if pending is not None:
        pending.deliver(outcome.json())


__all__ = ["RunRecord", "pending_json", "write_json"]

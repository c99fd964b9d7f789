"""Figures of a report as plain data: the contents of its JSON file, and what two reports are compared by.

`docs/reference/report.schema.json` is the schema of the file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, is_dataclass
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar, cast

from spyre_mlir.backend.json_file import dump_text, load_text, read_text, suggesting
from spyre_mlir.dialects.superdsc.model.json_value import Json, JsonObject
from spyre_mlir.errors import ReadError
from spyre_mlir.machine.bundle.timeline import TimedKernel, Timeline
from spyre_mlir.pipeline import StageRecord
from spyre_mlir.report.advice import advice
from spyre_mlir.report.host_steps import HostWork
from spyre_mlir.report.shares import moves

FORMAT, VERSION = "spyre-report", 1
_HEAD = {"format": FORMAT, "version": VERSION}
_HINT = "name a bundle directory, or a file that spyre-compile --json or report.json() has written"
_T = TypeVar("_T")


@dataclass(frozen=True)
class KernelFigures:
    """One place that runs a file.

    Attributes:
        file: its name.
        function: of the hardware.
        shape: extents of its loops.
        us: time of all runs.
        runs: number of runs.
        bound: what it waits for.
        moved_bytes: of device memory, in all runs.
        cores: in use.
        rearranges: whether it computes nothing: it copies, changes a layout or converts a format.
        module: path in the model; empty for the model itself.
        layer: the layer that its launch stands for, if that is one of several calls of the same function.
        line: of the model's source, if known.
    """

    file: str
    function: str
    shape: tuple[int, ...]
    us: float
    runs: int
    bound: str
    moved_bytes: int
    cores: int
    rearranges: bool
    module: str
    layer: str
    line: str

    @classmethod
    def of(cls, kernel: TimedKernel) -> KernelFigures:
        """Return the figures of a kernel."""
        launch, work = kernel.launch, kernel.work
        return cls(
            launch.file,
            launch.descriptor.op_func_name,
            tuple(dim.extent for dim in launch.descriptor.dims),
            kernel.cost.total,
            work.trips,
            kernel.cost.bound.value,
            work.moved() * work.trips,
            work.cores,
            moves(kernel),
            launch.module,
            launch.layer,
            kernel.source,
        )


@dataclass(frozen=True)
class HostFigures:
    """One kind of host work.

    Attributes:
        what: one line.
        count: how many steps.
        bytes: what they move.
        least_us: their least time; null where it is unknown, or part of the time of kernels.
    """

    what: str
    count: int
    bytes: int
    least_us: float | None


@dataclass(frozen=True)
class StageFigures:
    """The program at one level."""

    level: str
    ops: int
    kernels: int
    device_bytes: int
    lx_bytes: int
    traffic_bytes: int


@dataclass(frozen=True)
class Figures:
    """Figures of a program.

    Attributes:
        name: of the program.
        profile: of the cost model.
        total_us: time of all kernels, and of the transfers for host steps.
        lower_bound: whether the host computes for a time that is unknown.
        roofline_us: least time of the arithmetic and the compulsory bytes.
        moved_bytes: of device memory, by all kernels.
        compulsory_bytes: of these, what must move.
        kernels: in execution order.
        host: what the host does.
        stages: one per level; none for a loaded bundle.
        advice: sentences about what takes time, each with what to try.
    """

    name: str
    profile: str
    total_us: float
    lower_bound: bool
    roofline_us: float
    moved_bytes: int
    compulsory_bytes: int
    kernels: tuple[KernelFigures, ...]
    host: tuple[HostFigures, ...]
    stages: tuple[StageFigures, ...]
    advice: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, name: str, timeline: Timeline, host: Iterable[HostWork] = (), stages: Iterable[StageRecord] = ()
    ) -> Figures:
        """Return the figures of a program."""
        return cls(
            name,
            timeline.profile,
            timeline.total_us,
            timeline.is_lower_bound,
            timeline.roofline_us,
            timeline.moved_bytes,
            timeline.compulsory_bytes,
            tuple(map(KernelFigures.of, timeline.kernels)),
            tuple(HostFigures(work.what, work.count, work.bytes, work.us) for work in host),
            tuple(StageFigures(s.level, s.ops, s.kernels, s.device_bytes, s.lx_bytes, s.traffic_bytes) for s in stages),
            tuple(map(str, advice(timeline))),
        )

    def json(self) -> str:
        """Return the text of the JSON file."""
        return dump_text({**_HEAD, **cast("JsonObject", plain(self))})


def read_figures(path: Path) -> Figures:
    """Read a JSON file.

    Raises:
        ReadError: it cannot be read, or is no report of this version.
    """
    with suggesting(_HINT):
        value = load_text(read_text(path), str(path))
    head = [value.pop(key, None) for key in _HEAD] if isinstance(value, dict) else [None]
    if head != [*_HEAD.values()]:
        raise ReadError(f"expected a report with {_HEAD}, got {head}", where=str(path), hint=_HINT)
    return _record(Figures, value, str(path), "")


def plain(value: object) -> Json:
    """Return a record as JSON: objects for dataclasses, lists for tuples, other values as they are."""
    if isinstance(value, tuple):
        return [plain(item) for item in cast("tuple[object, ...]", value)]
    if is_dataclass(value) and not isinstance(value, type):
        return {entry.name: plain(getattr(value, entry.name)) for entry in fields(value)}
    return cast("Json", value)


def finite(number: float) -> float | None:
    """Return a number for JSON, which has no infinities; None for them and for NaN."""
    return number if isfinite(number) else None


_RECORDS: dict[str, type[Any]] = {kind.__name__: kind for kind in (KernelFigures, HostFigures, StageFigures)}
_SCALARS: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (float, int), "bool": (bool,)}


def _record(kind: type[_T], value: Json, file: str, path: str) -> _T:
    """The value of a JSON object, whose keys are the fields of a class."""
    entries = fields(cast(Any, kind))
    names = [entry.name for entry in entries]
    if not isinstance(value, dict) or sorted(value) != sorted(names):
        got = sorted(value) if isinstance(value, dict) else value
        raise ReadError(
            f"expected an object with {', '.join(names)}, got {got!r}", where=f"{file}: {path or 'the file'}"
        )
    items = {e.name: _item(str(e.type), value[e.name], file, f"{path}.{e.name}".lstrip(".")) for e in entries}
    return kind(**items)


def _item(kind: str, value: Json, file: str, path: str) -> Any:
    """The value of a field, by the text of its type."""
    name = kind.removesuffix(" | None")
    if value is None and name != kind:
        return None
    if name.startswith("tuple["):
        if not isinstance(value, list):
            raise ReadError(f"expected a list, got {value!r}", where=f"{file}: {path}")
        inner = name.removeprefix("tuple[").removesuffix(", ...]")
        return tuple(_item(inner, item, file, f"{path}[{number}]") for number, item in enumerate(value))
    if name in _RECORDS:
        return _record(_RECORDS[name], value, file, path)
    if type(value) not in _SCALARS.get(name, ()):
        raise ReadError(f"expected {kind}, got {value!r}", where=f"{file}: {path}")
    return value


__all__ = ["Figures", "HostFigures", "KernelFigures", "StageFigures", "finite", "plain", "read_figures"]

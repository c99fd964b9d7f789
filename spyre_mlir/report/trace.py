"""A timeline as a trace for Perfetto and chrome://tracing: tracks of layers, host work, cores and their scratchpads.

Format: the Trace Event Format published by the Chromium project, as a JSON object with `traceEvents`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from spyre_mlir.dialects.spyre.kernel import FromDeviceOp, ToDeviceOp
from spyre_mlir.machine.bundle.timeline import Engine, Event, TimedKernel, Timeline
from spyre_mlir.report.host_steps import HostWork
from spyre_mlir.report.ideal_cycles import kernel_name
from spyre_mlir.report.shares import ROOT

TraceEvent = dict[str, Any]

PROGRAM = 0  # number of the process that shows whole kernels; core n is process n + 1
LAYERS = 1000  # number of the process that shows them by layer; no card has so many cores
_KERNELS = 0  # number of the thread of whole kernels; engine n of a core is thread n + 1
_HOST = len(Engine) + 1  # number of the thread of host steps
_TRANSFERS = _HOST + 1  # and of transfers
_LAYER = re.compile(r"(?:[^.]+\.)*?\d+(?=\.|$)")
_ENGINES = {engine: number for number, engine in enumerate(Engine, start=1)}
_DEVICES = [{"id": 0, "name": "Spyre"}]  # by this key IBM's analyzer knows a trace like those of torch's profiler


def trace_text(timeline: Timeline, name: str, host: Sequence[HostWork] = ()) -> str:
    """Return the trace as JSON, one event per line.

    Args:
        timeline: what happens when.
        name: of the program.
        host: what the host does; transfers are shown.
    """
    events = ",\n".join(json.dumps(event, separators=(",", ":")) for event in trace_events(timeline, name, host))
    facts: TraceEvent = {"program": name, "profile": timeline.profile}
    if timeline.is_lower_bound:
        facts["time"] = f"a lower bound: the host's time for {len(timeline.host_steps)} host steps is unknown"
    head = f'"displayTimeUnit":"ns","deviceProperties":{json.dumps(_DEVICES)},"otherData":{json.dumps(facts)}'
    return f'{{{head},"traceEvents":[\n{events}\n]}}\n'


def trace_events(timeline: Timeline, name: str, host: Sequence[HostWork] = ()) -> Iterator[TraceEvent]:
    """Return the events of a trace: track names, kernels, host work, active engines, bytes in the scratchpads."""
    cores = sorted({core for event in timeline.events for core in event.cores})
    engines = sorted({event.engine for event in timeline.events}, key=lambda engine: _ENGINES[engine])
    transfers = [work for work in host if work.kind in (ToDeviceOp, FromDeviceOp)]
    tracks = {_KERNELS: "kernels"}
    tracks |= {_HOST: "host steps, time unknown"} if timeline.host_steps else {}
    tracks |= {_TRANSFERS: "transfers, at least"} if transfers else {}
    layers = {layer: n for n, layer in enumerate(dict.fromkeys(layer_of(k.launch.module) for k in timeline.kernels))}
    yield from _names(PROGRAM, f"{name}, predicted", tracks)
    yield from _names(LAYERS, "layers of the model", {n: layer for layer, n in layers.items()})
    for core in cores:
        yield from _names(core + 1, f"core {core}", {_ENGINES[engine]: engine.value for engine in engines})
    for number, start, duration in timeline.runs:
        kernel = timeline.kernels[number]
        facts = _facts(kernel)
        yield _as_profiled(_span(kernel, PROGRAM, _KERNELS, start, duration, facts), kernel)
        yield _span(kernel, LAYERS, layers[layer_of(kernel.launch.module)], start, duration, facts)
    yield from _host_steps(timeline)
    yield from _transfers(transfers, timeline)
    for event in timeline.events:
        kernel = timeline.kernels[event.kernel]
        for core in event.cores:
            yield _span(kernel, core + 1, _ENGINES[event.engine], event.start_us, event.duration_us, _share(event))
    for core in cores:
        for start, held in timeline.occupancy(core):
            yield {"ph": "C", "pid": core + 1, "tid": 0, "ts": start, "name": "LX bytes", "args": {"bytes": held}}


def _host_steps(timeline: Timeline) -> Iterator[TraceEvent]:
    """Host steps as moments between launches, as their length is unknown."""
    for step in timeline.host_steps:
        before = [t + d for n, t, d in timeline.runs if timeline.kernels[n].launch.part < step.after]
        facts = {"source": step.source or "unknown", "bytes moved": step.moved_bytes, "time": "unknown"}
        place = {"pid": PROGRAM, "tid": _HOST, "ts": max(before, default=0.0)}
        yield {"ph": "i", "s": "p", **place, "name": step.op, "cat": "host", "args": facts}


def _transfers(transfers: Sequence[HostWork], timeline: Timeline) -> Iterator[TraceEvent]:
    """Transfers as moments before the first kernel and behind the last, as the time of kernels omits them."""
    end = max((start + duration for _, start, duration in timeline.runs), default=0.0)
    for work in transfers:
        place = {"pid": PROGRAM, "tid": _TRANSFERS, "ts": 0.0 if work.kind is ToDeviceOp else end}
        facts = {"times": work.count, "bytes moved": work.bytes, "time": work.time}
        yield {"ph": "i", "s": "t", **place, "name": work.what, "cat": "transfer", "args": facts}


def layer_of(module: str) -> str:
    """Return the track of a module: the layer that it is in, such as ``model.layers.3``, or the module itself."""
    found = _LAYER.match(module)
    return found[0] if found else module or ROOT


def readable(kernel: TimedKernel) -> str:
    """Return the name of a kernel for readers: its function, shape and module, e.g. ``add 64x512 in mlp.up``."""
    descriptor, module = kernel.launch.descriptor, kernel.launch.module
    inner = module.removeprefix(layer_of(module)).lstrip(".")
    shape = "x".join(str(dim.extent) for dim in descriptor.dims)
    return f"{descriptor.op_func_name} {shape}{f' in {inner}' if inner else ''}".rstrip()


def _names(process: int, name: str, threads: dict[int, str]) -> Iterator[TraceEvent]:
    place = {"ph": "M", "pid": process, "ts": 0}  # the time is for analyzers that want one in every event
    yield {**place, "tid": 0, "name": "process_name", "args": {"name": name}}
    yield {**place, "tid": 0, "name": "process_sort_index", "args": {"sort_index": process}}
    for thread, label in threads.items():
        yield {**place, "tid": thread, "name": "thread_name", "args": {"name": label}}


def _span(
    kernel: TimedKernel, process: int, thread: int, start: float, duration: float, args: TraceEvent
) -> TraceEvent:
    begin = _step(start)
    return {
        "ph": "X",
        "pid": process,
        "tid": thread,
        "ts": begin,
        "dur": round(_step(start + duration) - begin, 4),
        "name": readable(kernel),
        "cat": kernel.cost.bound.value,
        "args": {"file": kernel.launch.file, "source": kernel.source or "unknown", **args},
    }


def _step(time: float) -> float:
    """A time in tenths of a nanosecond, less than a cycle: analyzers round ends, and would see spans overlap."""
    return round(time, 4)


def _as_profiled(span: TraceEvent, kernel: TimedKernel) -> TraceEvent:
    """A whole kernel as torch's profiler writes it, which IBM's analyzer recognises; all are of one launch."""
    args = {**span["args"], "correlation": 1}
    return span | {"name": kernel_name(kernel), "cat": "kernel", "args": args}


def _facts(kernel: TimedKernel) -> TraceEvent:
    return {
        "module": kernel.launch.module or ROOT,
        "cores": kernel.work.cores,
        "bound by": kernel.cost.bound.value,
        "device memory bytes": kernel.work.moved(),
    }


def _share(event: Event) -> TraceEvent:
    return {"bytes of all cores": event.bytes} if event.bytes else {}

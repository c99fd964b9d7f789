"""A timeline as a trace for Perfetto and chrome://tracing: one track per core and engine, scratchpads as counters.

Format: the Trace Event Format published by the Chromium project, as a JSON object with `traceEvents`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from spyre_mlir.machine.bundle.timeline import Engine, Event, TimedKernel, Timeline
from spyre_mlir.report.ideal_cycles import kernel_name

TraceEvent = dict[str, Any]

PROGRAM = 0  # number of the process that shows whole kernels; core n is process n + 1
_KERNELS = 0  # number of the thread of whole kernels; engine n of a core is thread n + 1
_HOST = len(Engine) + 1  # number of the thread of host steps
_ENGINES = {engine: number for number, engine in enumerate(Engine, start=1)}
_DEVICES = [{"id": 0, "name": "Spyre"}]  # by this key IBM's analyzer knows a trace like those of torch's profiler


def trace_text(timeline: Timeline, name: str) -> str:
    """Return the trace as JSON, one event per line.

    Args:
        timeline: what happens when.
        name: of the program.
    """
    events = ",\n".join(json.dumps(event, separators=(",", ":")) for event in trace_events(timeline, name))
    facts: TraceEvent = {"program": name, "profile": timeline.profile}
    if timeline.is_lower_bound:
        facts["time"] = f"a lower bound: the host's time for {len(timeline.host_steps)} host steps is unknown"
    head = f'"displayTimeUnit":"ns","deviceProperties":{json.dumps(_DEVICES)},"otherData":{json.dumps(facts)}'
    return f'{{{head},"traceEvents":[\n{events}\n]}}\n'


def trace_events(timeline: Timeline, name: str) -> Iterator[TraceEvent]:
    """Return the events of a trace: track names, kernels, active engines, bytes in the scratchpads."""
    cores = sorted({core for event in timeline.events for core in event.cores})
    engines = sorted({event.engine for event in timeline.events}, key=lambda engine: _ENGINES[engine])
    host = {_HOST: "host steps, time unknown"} if timeline.host_steps else {}
    yield from _names(PROGRAM, f"{name}, predicted", {_KERNELS: "kernels", **host})
    for core in cores:
        yield from _names(core + 1, f"core {core}", {_ENGINES[engine]: engine.value for engine in engines})
    for number, start, duration in timeline.runs:
        kernel = timeline.kernels[number]
        yield _as_profiled(_span(kernel, PROGRAM, _KERNELS, start, duration, _facts(kernel)), kernel)
    yield from _host_steps(timeline)
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


def _names(process: int, name: str, threads: dict[int, str]) -> Iterator[TraceEvent]:
    place = {"ph": "M", "pid": process, "ts": 0}  # the time is for analyzers that want one in every event
    yield {**place, "tid": 0, "name": "process_name", "args": {"name": name}}
    yield {**place, "tid": 0, "name": "process_sort_index", "args": {"sort_index": process}}
    for thread, label in threads.items():
        yield {**place, "tid": thread, "name": "thread_name", "args": {"name": label}}


def _span(
    kernel: TimedKernel, process: int, thread: int, start: float, duration: float, args: TraceEvent
) -> TraceEvent:
    descriptor = kernel.launch.descriptor
    begin = _step(start)
    return {
        "ph": "X",
        "pid": process,
        "tid": thread,
        "ts": begin,
        "dur": round(_step(start + duration) - begin, 4),
        "name": descriptor.op_func_name,
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
    shape = "x".join(str(dim.extent) for dim in kernel.launch.descriptor.dims)
    return {
        "shape": shape,
        "cores": kernel.work.cores,
        "bound by": kernel.cost.bound.value,
        "device memory bytes": kernel.work.moved(),
    }


def _share(event: Event) -> TraceEvent:
    return {"bytes of all cores": event.bytes} if event.bytes else {}

"""The trace: valid by the published format, and true to the timeline."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch

import spyre_mlir
from spyre_mlir.machine.bundle.timeline import Engine, Timeline
from spyre_mlir.report.trace import trace_text

# Trace Event Format, Chromium project: fields every event of a phase must have, and their JSON types.
NUMBER = (int, float)
REQUIRED: dict[str, dict[str, Any]] = {
    "X": {"name": str, "cat": str, "ts": NUMBER, "dur": NUMBER, "pid": int, "tid": int},
    "C": {"name": str, "ts": NUMBER, "pid": int, "args": dict},
    "M": {"name": str, "pid": int, "args": dict},
}
METADATA = {"process_name": "name", "thread_name": "name", "process_sort_index": "sort_index"}


@pytest.fixture(scope="module")
def events(softmax_timeline: Timeline) -> list[dict[str, Any]]:
    loaded = json.loads(trace_text(softmax_timeline, "softmax"))
    assert loaded["displayTimeUnit"] in ("ms", "ns")
    return loaded["traceEvents"]


def test_every_event_has_what_its_phase_requires(events: list[dict[str, Any]]) -> None:
    for event in events:
        for field, kind in REQUIRED[event["ph"]].items():
            assert isinstance(event[field], kind), (field, event)
        assert event["ts"] >= 0  # analyzers want it in metadata too
        assert event.get("dur", 0) >= 0
        if event["ph"] == "M":
            assert METADATA[event["name"]] in event["args"]
        if event["ph"] == "C":
            assert all(isinstance(v, NUMBER) and v >= 0 for v in event["args"].values())


def test_spans_of_a_track_follow_each_other(events: list[dict[str, Any]]) -> None:
    tracks = defaultdict[tuple[int, int], list[tuple[float, float]]](list)
    for event in events:
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append((event["ts"], event["dur"]))
    assert tracks
    for spans in tracks.values():
        for (start, duration), (following, _) in zip(sorted(spans), sorted(spans)[1:], strict=False):
            assert round(start + duration, 4) <= following  # as aiu-trace-analyzer 1.3 compares them


def test_there_is_a_track_per_core_and_engine(events: list[dict[str, Any]]) -> None:
    processes = {e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    assert processes == {"softmax, predicted", *(f"core {n}" for n in range(32))}
    threads = {e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    assert {Engine.LOAD.value, Engine.SFU.value, Engine.STORE.value, "kernels"} <= threads


def test_kernels_name_their_file_and_line(events: list[dict[str, Any]], softmax_timeline: Timeline) -> None:
    spans = [e for e in events if e["ph"] == "X" and e["pid"] == 0]
    assert [e["args"]["file"] for e in spans] == [k.launch.file for k in softmax_timeline.kernels]
    assert all(e["args"]["source"].startswith("conftest.py:") for e in spans)
    assert spans[-1]["ts"] + spans[-1]["dur"] == pytest.approx(softmax_timeline.total_us, abs=1e-4)


def test_whole_kernels_are_as_the_profiler_of_torch_writes_them(softmax_timeline: Timeline) -> None:
    loaded = json.loads(trace_text(softmax_timeline, "softmax"))
    assert loaded["deviceProperties"] == [{"id": 0, "name": "Spyre"}]
    spans = [e for e in loaded["traceEvents"] if e["ph"] == "X"]
    kernels = [e for e in spans if e["cat"] == "kernel"]
    assert kernels == [e for e in spans if e["pid"] == 0]
    assert {e["args"]["correlation"] for e in kernels} == {1}
    assert kernels[-1]["name"] == f"realdiv_{softmax_timeline.kernels[-1].launch.file.removesuffix('.json')}"


def test_scratchpads_fill_and_empty(events: list[dict[str, Any]]) -> None:
    counted = [e for e in events if e["ph"] == "C" and e["pid"] == 5]
    values = [e["args"]["bytes"] for e in sorted(counted, key=lambda e: e["ts"])]
    # 16 rows of 1024 numbers of 2 bytes for each core, and one stick per row for statistics; the exponential is
    # written where the difference was, and counts once.
    assert max(values) == 16 * 1024 * 2 + 16 * 128
    assert values[-1] == 0


def test_host_steps_are_moments_of_unknown_length(tmp_path: Path) -> None:
    class Waves(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(torch.special.bessel_j1(torch.exp(x))) + 1

    compiled = spyre_mlir.compile(Waves(), (torch.zeros(64, 64),), host_fallback="allow")
    assert isinstance(compiled, spyre_mlir.CompiledModel)
    trace = json.loads(compiled.trace(tmp_path / "trace.json").read_text())
    assert trace["otherData"]["time"].startswith("a lower bound: ")
    (moment,) = [event for event in trace["traceEvents"] if event["ph"] == "i"]
    assert moment["name"] == "aten.special_bessel_j1" and moment["args"]["time"] == "unknown"
    first, *_ = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["pid"] == 0]
    assert moment["ts"] == pytest.approx(first["ts"] + first["dur"], abs=1e-4)  # behind exp, before the other two

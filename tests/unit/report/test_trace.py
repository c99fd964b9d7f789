"""The trace: valid by the published format, and true to the timeline."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import spyre_mlir
from spyre_mlir.machine.bundle.timeline import Engine, Timeline
from spyre_mlir.report.trace import LAYERS, layer_of, trace_text

# Trace Event Format, Chromium project: fields every event of a phase must have, and their JSON types.
NUMBER = (int, float)
REQUIRED: dict[str, dict[str, Any]] = {
    "X": {"name": str, "cat": str, "ts": NUMBER, "dur": NUMBER, "pid": int, "tid": int},
    "C": {"name": str, "ts": NUMBER, "pid": int, "args": dict},
    "M": {"name": str, "pid": int, "args": dict},
    "i": {"name": str, "s": str, "ts": NUMBER, "pid": int, "tid": int},
}
METADATA = {"process_name": "name", "thread_name": "name", "process_sort_index": "sort_index"}


@pytest.fixture(scope="module")
def events(softmax: spyre_mlir.CompiledModel, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    loaded = json.loads(softmax.trace(tmp_path_factory.mktemp("trace") / "t.json").read_text())
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
    assert processes == {"Softmax, predicted", "layers of the model", *(f"core {n}" for n in range(32))}
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


def test_loads_and_stores_say_their_bytes(events: list[dict[str, Any]]) -> None:
    """Of a core: 512 x 1024 numbers of 2 bytes come in and go out, shared by all cores; arithmetic moves none."""
    spans = [e for e in events if e["ph"] == "X" and e["pid"] == 5]
    moved = [e["args"]["bytes of all cores"] for e in spans if "bytes of all cores" in e["args"]]
    assert moved == [512 * 1024 * 2] * 2
    assert len(spans) == 6 + 2  # a span of arithmetic for each kernel


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
    (moment,) = [event for event in trace["traceEvents"] if event["ph"] == "i" and event["cat"] == "host"]
    assert moment["name"] == "aten.special_bessel_j1" and moment["args"]["time"] == "unknown"
    first, *_ = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["pid"] == 0]
    assert moment["ts"] == pytest.approx(first["ts"] + first["dur"], abs=1e-4)  # behind exp, before the other two


@pytest.mark.parametrize(
    ("module", "layer"),
    [
        ("model.layers.12.mlp.experts.3.up", "model.layers.12"),
        ("layers.0", "layers.0"),
        ("0.linear", "0"),
        ("model.norm2", "model.norm2"),
        ("lm_head", "lm_head"),
        ("", "the model itself"),
    ],
)
def test_a_module_is_on_the_track_of_its_layer(module: str, layer: str) -> None:
    assert layer_of(module) == layer


def test_layers_have_tracks_and_kernels_readable_names(softmax_timeline: Timeline) -> None:
    places = ("layers.0.mlp.up", "layers.0.norm", "layers.1.mlp.up", "head", "", "head")
    kernels = [
        replace(kernel, launch=replace(kernel.launch, module=module))
        for kernel, module in zip(softmax_timeline.kernels, places, strict=True)
    ]
    events = json.loads(trace_text(replace(softmax_timeline, kernels=tuple(kernels)), "p"))["traceEvents"]
    mine = [event for event in events if event["pid"] == LAYERS]
    tracks = {event["tid"]: event["args"]["name"] for event in mine if event["name"] == "thread_name"}
    assert list(tracks.values()) == ["layers.0", "layers.1", "head", "the model itself"]
    found = [(tracks[event["tid"]], event["name"]) for event in mine if event["ph"] == "X"]
    assert found[1:] == [
        ("layers.0", "max 512x1024 in norm"),
        ("layers.1", "sub 512x1024 in mlp.up"),
        ("head", "exp 512x1024"),
        ("the model itself", "sum 512x1024"),
        ("head", "realdiv 512x1024"),
    ]
    assert found[0][1].endswith(" in mlp.up")


def test_transfers_are_moments_on_a_track_of_their_own(events: list[dict[str, Any]]) -> None:
    sent, brought = [event for event in events if event["ph"] == "i"]
    assert sent["name"].startswith("send a tensor to the device") and sent["ts"] == 0
    assert brought["name"] == "bring a result back"
    last = max(event["ts"] + event["dur"] for event in events if event["ph"] == "X" and event["pid"] == 0)
    assert brought["ts"] == pytest.approx(last, abs=1e-4)
    # 512 rows of 1024 numbers of two bytes, there and back.
    assert [event["args"]["bytes moved"] for event in (sent, brought)] == [512 * 1024 * 2] * 2
    named = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {named[event["pid"], event["tid"]] for event in (sent, brought)} == {"transfers, at least"}

"""Manifests: what they say of a small program by hand, and what is taken from one that is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.backend.manifest import LaunchWalk, Manifest, Parts, manifest_text, read_manifest, static_manifest
from spyre_mlir.backend.split import split_module
from spyre_mlir.backend.weights import device_weights
from spyre_mlir.dialects.places import Source
from spyre_mlir.errors import ReadError
from tests.unit.backend.programs import BYTES, DEVICE, HOST, LAYOUT, ONE, TWO, bundle, host, kernel, read

Json = dict[str, Any]


def written(text: str, *, levels: Any = None, weights: Any = (), starts: Any = None, digests: Any = None) -> Json:
    static = static_manifest(Parts(*split_module(read(text)), levels or {}))
    return json.loads(manifest_text(static, weights, starts or {}, digests or {}))


def test_a_program_of_one_launch() -> None:
    value = written(f"builtin.module @model {{\n{ONE}}}", digests={"bundle.mlir": "crc32:00000001"})
    lines = [number for number, line in enumerate(ONE.splitlines(), 2) if "sdsc_execute" in line]
    placed = {"default": True, "device_size": [2, 64, 64], "stride_map": [64, 128, 1]}
    assert value == {
        "format": "spyre-mlir bundle",
        "version": 1,
        "name": "model",
        "superdsc": "TS26",
        "pool_bytes": 0,
        "arguments": [
            {"number": 0, "holds": "x", "layout": LAYOUT, "bytes": BYTES, **placed},
            {"number": 1, "holds": "result", "returned": [0], "layout": LAYOUT, "bytes": BYTES, **placed},
        ],
        "buffers": {},
        "weights": {},
        "files": {
            "sdsc_0.json": {"operation": "relufwd", "labels": {"mb": "m", "out": "n"}, "certainty": "C"},
            "sdsc_1.json": {"operation": "abs", "labels": {"mb": "m", "out": "n"}, "certainty": "C"},
        },
        "launches": [
            {"file": f"sdsc_{n}.json", "source": {"file": "program.mlir", "line": line, "module": ""}}
            for n, line in enumerate(lines)
        ],
        "calls": [""],
        "digests": {"bundle.mlir": "crc32:00000001"},
    }
    assert list(value)[:3] == ["format", "version", "name"]


def test_a_program_without_a_name_or_files() -> None:
    value = written(host())
    assert (value["name"], value["superdsc"], value["files"], value["launches"]) == ("", [], {}, [])


def test_files_of_two_generations() -> None:
    old = kernel("1_relufwd", extra="version TS25")
    value = written(kernel("0_relufwd") + old + bundle("sdsc_0.json", "sdsc_1_relufwd.json") + host("sdsc_bundle"))
    assert value["superdsc"] == ["TS25", "TS26"]


def test_a_file_without_labels_and_one_that_rests_on_less_than_certain() -> None:
    unsure = kernel("1_relufwd", "nothing_known").replace('mb = "m"', "mb = 1 : i64")
    bare = kernel("0_relufwd").replace('attributes {labels = {mb = "m", out = "n"}} ', "")
    files = written(bare + unsure + bundle("sdsc_0.json", "sdsc_1.json") + host("sdsc_bundle"))["files"]
    assert files["sdsc_0.json"] == {"operation": "relufwd", "labels": {}, "certainty": "C"}
    assert files["sdsc_1.json"] == {
        "operation": "relufwd",
        "labels": {"out": "n"},
        "certainty": "I",
        "because": ["function nothing_known"],
    }


ARGUMENTS = f"""func.func @main(%x: {HOST} {{aten.name = "x"}}, %y: {HOST}) {{
  %0 = spyre.kernel.to_device %y segment 3 : {HOST} to {DEVICE}
  %h = spyre.kernel.host "aten.relu" (%x) {{self = #aten.operands<1>}} : ({HOST}) -> {HOST}
  %1 = spyre.kernel.to_device %h : {HOST} to {DEVICE}
  %2 = spyre.kernel.constant #spyre.first_ones<33> : {DEVICE}
  %3 = spyre.kernel.alloc : {DEVICE}
  %4 = spyre.kernel.to_device %x : {HOST} to {DEVICE}
  spyre.kernel.launch @sdsc_bundle(%0, %1, %2, %3, %4) pool_bytes 512 : {", ".join([DEVICE] * 5)}
  func.return
}}
"""


def test_what_arguments_hold_and_where() -> None:
    value = written(bundle() + ARGUMENTS)
    assert [entry["holds"] for entry in value["arguments"]] == [
        "",
        "input",
        "constant #spyre.first_ones<33>",
        "result",
        "x",
    ]
    assert [entry["number"] for entry in value["arguments"]] == [0, 1, 2, 3, 4]
    assert [entry.get("address") for entry in value["arguments"]] == [3 << 34, None, None, None, None]


@pytest.mark.parametrize(
    ("first", "second", "fixed", "most"), [(256, 128, 0, 256), (128, 384, 0, 384), (128, 128, 512, 512)]
)
def test_the_pool_is_the_largest_of_all_launches(first: int, second: int, fixed: int, most: int) -> None:
    def allocating(size: int, name: str) -> str:
        body = f"  %p = sdscbundle.device_mem_allocate {size} bytes : index\n  func.return"
        return bundle(name=name).replace("  func.return", body)

    main = host("sdsc_bundle_0", "sdsc_bundle_1").replace(
        "@sdsc_bundle_1(%0, %1)", f"@sdsc_bundle_1(%0, %1) pool_bytes {fixed}"
    )
    assert (
        written(allocating(first, "sdsc_bundle_0") + allocating(second, "sdsc_bundle_1") + main)["pool_bytes"] == most
    )


def test_weights_say_where_their_bytes_are() -> None:
    program = split_module(read(ONE))[0]
    value = written(ONE, weights=device_weights(program, ["x"]), starts={"x": 72})
    assert value["weights"] == {"x": {"name": "x", "argument": 0, "layout": LAYOUT, "offset": 72, "bytes": BYTES}}


def test_launches_of_other_functions_name_their_folder_from_within_loops_too() -> None:
    looped = (
        "  %a = arith.constant 0 : index\n  %b = arith.constant 4 : index\n"
        '  scf.for %i = %a to %b step %b { sdscbundle.sdsc_execute () {sdsc_filename="sdsc_1.json"} }\n  func.return'
    )
    one, two = (
        bundle("sdsc_0.json", name="sdsc_bundle_0"),
        bundle(name="sdsc_bundle_1").replace("  func.return", looped),
    )
    text = kernel("0_relufwd") + kernel("1_abs", "abs") + one + two + host("sdsc_bundle_0", "sdsc_bundle_1")
    assert [entry["folder"] for entry in written(text)["launches"]] == ["launch_0", "launch_1"]
    assert [entry["folder"] for entry in written(TWO)["launches"]] == ["launch_0", "launch_1"]


def test_levels_above_say_what_a_launch_was_and_what_buffers_there_are() -> None:
    level = f"""func.func @main() {{
  %a = spyre.kernel.alloc : {DEVICE}
  %b = spyre.kernel.alloc at 0 : i64 : {DEVICE}
  spyre.kernel.compute "relufwd" [m = 64 over 2, n = 128] ins(%a[m, n] : {DEVICE}) outs(%b[m, n] : {DEVICE})
  func.return
}}"""
    levels: dict[str, ModuleOp] = {"spyre.kernel": read(level)}
    value = written(kernel("0_relufwd") + bundle("sdsc_0.json") + host("sdsc_bundle"), levels=levels)
    assert value["buffers"] == {"buffer 0": LAYOUT}
    (launch,) = value["launches"]
    assert launch["kernel"]["function"] == "relufwd"
    assert launch["tensors"] == ["argument 0", "buffer 0"]


READ: Json = {
    "format": "spyre-mlir bundle",
    "version": 1,
    "arguments": [{"number": 0, "layout": "A"}, {"number": 1, "layout": "B"}],
    "buffers": {"buffer 0": "C"},
    "weights": {
        "w@0": {"name": "w", "argument": 0, "layout": "A"},
        "w@1": {"name": "w", "argument": 1, "layout": "B"},
    },
    "files": {
        "sdsc_0.json": {"labels": {"mb": "d0", "out": "d1", "x": "none"}},
        "sdsc_1.json": {"labels": {"mb": "d0"}},
        "sdsc_2.json": {"labels": {"mb": "d0", "out": "d1"}},
    },
    "launches": [
        {
            "file": "sdsc_0.json",
            "source": {"file": "m.py", "line": 3, "module": "a.b"},
            "kernel": {"loops": {"d0": [64, 32], "d1": [100, 1]}},
            "tensors": ["argument 0", "buffer 0"],
            "maps": ["d0, d1", "d1"],
        },
        {"file": "sdsc_1.json", "kernel": {"loops": {"d0": [8, 1]}, "axis": 1}, "maps": ["d0"]},
        {
            "file": "sdsc_2.json",
            "source": {"line": "3", "file": 1, "module": 2},
            "kernel": {"loops": {"d0": ["?"], "d1": [5]}},
        },
        {"file": "sdsc_3.json"},
    ],
    "digests": {"bundle.mlir": "crc32:00000001"},
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "manifest.json"


def without(*keys: str, **changed: Any) -> Json:
    return {**{key: value for key, value in READ.items() if key not in keys}, **changed}


def test_a_manifest_is_read(path: Path) -> None:
    path.write_text(json.dumps(READ))
    assert read_manifest(path) == Manifest(
        launches=(
            ("sdsc_0.json", Source("m.py", 3, "a.b")),
            ("sdsc_1.json", Source()),
            ("sdsc_2.json", Source()),
            ("sdsc_3.json", Source()),
        ),
        tensors=(("argument 0", "buffer 0"), (), (), ()),
        walks=(
            LaunchWalk({"mb": "d0", "out": "d1", "x": "none"}, {"d0": 64, "d1": 100}, ("d0, d1", "d1"), None),
            LaunchWalk({"mb": "d0"}, {"d0": 8}, ("d0",), 1),
            LaunchWalk(),
            LaunchWalk(),
        ),
        layouts={"argument 0": "A", "argument 1": "B", "buffer 0": "C"},
        weights={0: ("w", "w@0"), 1: ("w", "w@1")},
        weight_layouts={0: "A", 1: "B"},
        extents={"sdsc_0.json": {"mb": 64, "out": 100, "x": 0}, "sdsc_1.json": {"mb": 8}, "sdsc_2.json": {"out": 5}},
        digests={"bundle.mlir": "crc32:00000001"},
    )


def test_no_file_and_older_manifests(path: Path) -> None:
    assert read_manifest(path) == Manifest()
    path.write_text(json.dumps(without("buffers", "digests")))
    found = read_manifest(path)
    assert (found.layouts, found.digests) == ({"argument 0": "A", "argument 1": "B"}, {})


def test_what_is_written_is_read(path: Path) -> None:
    path.write_text(json.dumps(written(ONE)))
    found = read_manifest(path)
    assert [file for file, _ in found.launches] == ["sdsc_0.json", "sdsc_1.json"]
    assert found.layouts == {"argument 0": LAYOUT, "argument 1": LAYOUT}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "this is no file of a spyre-mlir bundle"),
        ({}, "this is no file of a spyre-mlir bundle"),
        (without(format="other"), "this is no file of a spyre-mlir bundle"),
        (without(version=2), "expected a spyre-mlir bundle of version 1, got 2"),
        (without("version"), "expected a spyre-mlir bundle of version 1, got None"),
        (without("launches"), "the file lacks or misspells 'launches'"),
        (without("weights"), "the file lacks or misspells 'weights'"),
        (without("files"), "the file lacks or misspells 'files'"),
        (without("arguments"), "the file lacks or misspells 'arguments'"),
        (without(files={}), "the file lacks or misspells 'sdsc_0.json'"),
        (without(launches={}), "the file lacks or misspells a list"),
        (without(launches=[1]), "the file lacks or misspells an object"),
        (without(launches=[{"file": 1}]), "the file lacks or misspells a text"),
        (without(arguments=[{"number": "0", "layout": "A"}]), "the file lacks or misspells a number"),
        (without(weights={"w": {"name": "w", "argument": None}}), "the file lacks or misspells a number"),
    ],
)
def test_what_is_no_manifest_is_refused(value: object, message: str, path: Path) -> None:
    path.write_text(json.dumps(value))
    with pytest.raises(ReadError) as caught:
        read_manifest(path)
    assert caught.value.message == message
    assert (caught.value.where, caught.value.hint) == (str(path), "write the bundle again")

"""What stands in a bundle's own files, read without ours: weights byte by byte, the manifest, tensor files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

import spyre_mlir
from spyre_mlir.backend.tensors import StreamedTensor, map_tensor, read_tensors, whole, write_tensors
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import ReadError


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(128, 64)
        with torch.no_grad():
            self.linear.weight.copy_(torch.arange(64 * 128).reshape(64, 128) % 4)
            self.linear.bias.fill_(-2.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        return torch.relu(y)


CODES = np.array([0, 31 << 9, 32 << 9, 32 << 9 | 1 << 8], np.uint16)  # 0, 1, 2, 3 in DL16


@pytest.fixture(scope="module")
def layer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiled = spyre_mlir.compile(Layer(), (torch.zeros(64, 128),))
    assert isinstance(compiled, CompiledModel)
    return compiled.save(tmp_path_factory.mktemp("layer") / "bundle")


def manifest(directory: Path) -> dict[str, Any]:
    return json.loads((directory / "manifest.json").read_text())


def test_weights_are_codes_in_sticks_where_the_manifest_says(layer: Path) -> None:
    """Weight (n, k) is lane n of stick k: the columns of the product are in the lanes."""
    raw, value = (layer / "weights.safetensors").read_bytes(), manifest(layer)
    entry = value["weights"]["linear.weight"]
    assert entry["layout"].startswith("[64, 128] x SEN169_FP16, order [0, 1], stick 0")
    found = np.frombuffer(raw[entry["offset"] : entry["offset"] + entry["bytes"]], "<u2").reshape(128, 64)
    n, k = np.meshgrid(np.arange(64), np.arange(128))
    assert np.array_equal(found, CODES[(n * 128 + k) % 4])
    bias = value["weights"]["linear.bias"]
    found = np.frombuffer(raw[bias["offset"] : bias["offset"] + bias["bytes"]], "<u2")
    assert found.tolist() == [0x8000 | 32 << 9] * 64
    assert load_file(layer / "weights.safetensors")["linear.weight"].shape == (128, 64)


def test_launches_name_lines_and_levels(layer: Path) -> None:
    value = manifest(layer)
    lines = Path(__file__).read_text().splitlines()
    called = [lines[launch["source"]["line"] - 1].strip() for launch in value["launches"]]
    assert called == ["y = self.linear(x)", "y = self.linear(x)", "return torch.relu(y)"]
    assert [launch["source"]["module"] for launch in value["launches"]] == ["linear", "linear", ""]
    assert [launch["kernel"]["function"] for launch in value["launches"]] == ["batchmatmul", "add", "relufwd"]
    assert value["launches"][2]["aten"] == ["aten.relu #1 %relu"]
    assert value["launches"][0]["spyre.loop"] == ["spyre.loop.nest #0", "spyre.loop.nest #1"]


def test_labels_are_a_bijection_with_the_dims_of_the_file(layer: Path) -> None:
    value = manifest(layer)
    for launch in value["launches"]:
        file = value["files"][launch["file"]]
        ((root, fields),) = json.loads((layer / launch["file"]).read_text()).items()
        assert root.partition("_")[2] == file["operation"]
        assert set(file["labels"]) == set(fields["numWkSlicesPerDim_"])
        assert len(set(file["labels"].values())) == len(file["labels"])
        assert file["certainty"] in ("C", "L")
        # Over the loops of the kernel op, the slices of the file.
        loops = launch["kernel"]["loops"]
        assert {loops[name][1] for name in file["labels"].values()} <= set(fields["numWkSlicesPerDim_"].values())


def test_arguments_say_what_they_hold(layer: Path) -> None:
    value = manifest(layer)
    assert [a["holds"] for a in value["arguments"]] == ["x", "linear.weight", "linear.bias", "result"]
    assert [a["bytes"] for a in value["arguments"]] == [64 * 128 * 2, 64 * 128 * 2, 128, 64 * 64 * 2]
    assert "address" not in value["arguments"][0]


class Pooled(torch.nn.Module):
    """Two functions; what the first one makes is kept in device memory."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with spyre_mlir.hint(place="hbm"):
            x = torch.exp(x)
        return -x


def test_addresses_of_segments(tmp_path: Path) -> None:
    compiled = spyre_mlir.compile(Pooled(), (torch.zeros(7, 200),), addresses="concrete")
    value = manifest(compiled.save(tmp_path / "bundle"))
    assert value["pool_bytes"] == 7 * 4 * 128  # 200 columns are four sticks of 64
    assert [a["address"] for a in value["arguments"]] == [1 << 34, 2 << 34]


def test_tensor_files_are_the_library_s(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    values: dict[str, Any] = {
        "rows": random.standard_normal((3, 4)).astype(np.float32),
        "turned": random.standard_normal((5, 6)).astype(np.float16).T,
        "é": np.arange(7, dtype=np.uint16),
        "none": np.zeros((0, 3)),
        "one": np.array(3, dtype=np.int64),
        "truth": np.array([True, False]),
    }
    starts = write_tensors(tmp_path / "t", [whole(name, values) for name in values]).starts
    for found in (load_file(tmp_path / "t"), read_tensors(tmp_path / "t")):
        assert sorted(found) == sorted(values)
        for name, value in values.items():
            assert found[name].dtype == value.dtype
            assert np.array_equal(found[name], value)
    raw = (tmp_path / "t").read_bytes()
    assert raw[starts["rows"] : starts["rows"] + 48] == values["rows"].tobytes()
    assert np.array_equal(map_tensor(tmp_path / "t", "one"), values["one"])
    with pytest.raises(ReadError, match="two"):
        map_tensor(tmp_path / "t", "two")


def test_pieces_that_are_not_the_tensor_are_refused(tmp_path: Path) -> None:
    tensor = StreamedTensor("t", np.dtype(np.float32), (4,), lambda: [np.zeros(3, np.float32)])
    with pytest.raises(ValueError, match="12 bytes for a shape of 16"):
        write_tensors(tmp_path / "t", [tensor])

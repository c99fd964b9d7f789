"""Checkpoints on disk, in the forms that Hugging Face and torch write."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from spyre_mlir.errors import BindingError
from spyre_mlir.frontend.weights.files import read_checkpoint

A, B = torch.arange(6.0).reshape(2, 3).to(torch.bfloat16), torch.tensor([1, 2])


def sharded(directory: Path, weight_map: object = None) -> Path:
    save_file({"a": A, "unlisted": B}, directory / "model-00001-of-00002.safetensors")
    save_file({"b": B}, directory / "model-00002-of-00002.safetensors")
    files = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    index = {"metadata": {"total_size": 28}, "weight_map": files if weight_map is None else weight_map}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))
    return directory


def written(directory: Path, name: str) -> Path:
    path = directory / name
    if path.suffix == ".safetensors":
        save_file({"a": A, "b": B}, path)
    else:
        torch.save({"a": A, "b": B}, path)
    return path


@pytest.mark.parametrize(
    "name", ["any.safetensors", "model.safetensors", "pytorch_model.bin", "weights.pt", "weights.pth"]
)
def test_a_file_and_what_is_found_in_a_directory(name: str, tmp_path: Path) -> None:
    path = written(tmp_path, name)
    for found in [read_checkpoint(path), *([] if name.startswith("weights") else [read_checkpoint(tmp_path)])]:
        assert set(found) == {"a", "b"}
        assert found["a"].dtype is torch.bfloat16 and torch.equal(found["a"], A) and torch.equal(found["b"], B)


def test_a_file_of_the_format_before_zip(tmp_path: Path) -> None:
    torch.save({"a": A}, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    assert torch.equal(read_checkpoint(tmp_path / "old.pt")["a"], A)


def test_a_saved_program(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 3)
    torch.export.save(torch.export.export(model, (torch.ones(1, 2),)), tmp_path / "model.pt2")
    assert torch.equal(read_checkpoint(tmp_path / "model.pt2")["weight"], model.weight)


def test_shards_are_read_as_their_index_says(tmp_path: Path) -> None:
    for path in (sharded(tmp_path), tmp_path / "model.safetensors.index.json"):
        found = read_checkpoint(path)
        assert set(found) == {"a", "b"}
        assert torch.equal(found["a"], A) and torch.equal(found["b"], B)


def test_tensors_of_safetensors_are_parts_of_the_file(tmp_path: Path) -> None:
    big = torch.zeros(1 << 22)
    save_file({"big": big}, tmp_path / "model.safetensors")
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("the system does not say which files are mapped")
    found = read_checkpoint(tmp_path)
    assert str(tmp_path / "model.safetensors") in maps.read_text()
    assert found["big"].shape == (1 << 22,)


@pytest.mark.parametrize(
    ("weight_map", "text"),
    [
        ({"a": "gone.safetensors"}, "the index names gone.safetensors, which is not there"),
        ({"a": "../model-00001-of-00002.safetensors"}, "which is not there"),
        ({"c": "model-00001-of-00002.safetensors"}, "the index says that model-00001-of-00002.safetensors has c"),
        ({"a": 1}, "the index has no weight_map of names and files"),
        ([], "the index has no weight_map of names and files"),
    ],
)
def test_an_index_that_does_not_fit(weight_map: object, text: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    save_file({"a": A}, tmp_path / "model-00001-of-00002.safetensors")  # outside of the directory
    with pytest.raises(BindingError, match=text):
        read_checkpoint(sharded(tmp_path / "in", weight_map))


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BindingError, match="there is no such checkpoint"):
        read_checkpoint(tmp_path / "gone")
    with pytest.raises(BindingError, match="the directory has no checkpoint"):
        read_checkpoint(tmp_path)
    for name, text in {
        "a.safetensors": "the tensors cannot be read",
        "b.pt": "the state dict cannot be read",
        "c.index.json": "the index cannot be read",
        "d.onnx": "no checkpoint of a known format",
    }.items():
        (tmp_path / name).write_bytes(b"nothing")
        with pytest.raises(BindingError, match=text):
            read_checkpoint(tmp_path / name)
    save_file({"a": A}, tmp_path / "e.safetensors")
    with pytest.raises(BindingError, match=r"several checkpoints: a\.safetensors, e\.safetensors"):
        read_checkpoint(tmp_path)


def test_a_file_that_holds_something_else(tmp_path: Path) -> None:
    torch.save({"model": {"a": A}}, tmp_path / "nested.pt")
    with pytest.raises(BindingError, match="something else than tensors by name"):
        read_checkpoint(tmp_path / "nested.pt")


class _Payload:
    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (Path("touched"),)


def test_a_pickle_is_read_without_running_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.pt").write_bytes(pickle.dumps(_Payload(), protocol=2))
    with pytest.raises(BindingError, match="the state dict cannot be read"):
        read_checkpoint(tmp_path / "evil.pt")
    assert not (tmp_path / "touched").exists()


def test_a_module_instead_of_its_state_dict_is_named(tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(2, 2), tmp_path / "module.pt")
    with pytest.raises(BindingError) as refused:
        read_checkpoint(tmp_path / "module.pt")
    assert refused.value.message == (
        "the state dict cannot be read: it holds more than tensors by name, an object of torch.nn.modules.linear.Linear"
    )

"""Bundle directories, read: their programs, files and tensors, and what is said where one of them is missing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from xdsl.dialects.func import FuncOp

from spyre_mlir.backend.manifest import Manifest
from spyre_mlir.backend.split import launches
from spyre_mlir.backend.stored import StoredBundle, launch_folders, read_bundle, read_module
from spyre_mlir.dialects.places import Source, source_of
from spyre_mlir.errors import ReadError
from spyre_mlir.universe import make_context
from tests.paths import DATA
from tests.unit.backend.programs import LAYOUT, bundle, host, read

FILE = DATA / "superdsc_worked/a1_add_128x256_1core.json"
AGAIN = "write the bundle again"


def manifest(*launched: dict[str, Any], weights: dict[str, Any] | None = None) -> str:
    value = {"format": "spyre-mlir bundle", "version": 1, "arguments": [], "weights": weights or {}, "files": {}}
    return json.dumps({**value, "launches": list(launched)})


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """A bundle of one launch with two files."""
    (tmp_path / "bundle.mlir").write_text(bundle("sdsc_0.json", "sdsc_1.json"))
    (tmp_path / "program.mlir").write_text(host("sdsc_bundle"))
    for name in ("sdsc_0.json", "sdsc_1.json"):
        shutil.copy(FILE, tmp_path / name)
    return tmp_path


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A bundle of two launches with a file each."""
    (tmp_path / "program.mlir").write_text(host("sdsc_bundle_0", "sdsc_bundle_1"))
    for number in range(2):
        folder = tmp_path / f"launch_{number}"
        folder.mkdir()
        (folder / "bundle.mlir").write_text(bundle(f"sdsc_{number}.json"))
        shutil.copy(FILE, folder / f"sdsc_{number}.json")
    return tmp_path


def stored(directory: Path) -> StoredBundle:
    return read_bundle(directory, make_context())


def functions(of: StoredBundle) -> list[str]:
    return [op.sym_name.data for op in of.bundle.ops if isinstance(op, FuncOp)]


def refused(directory: Path) -> tuple[str, str | None, str | None]:
    with pytest.raises(ReadError) as caught:
        stored(directory)
    return caught.value.message, caught.value.where, caught.value.hint


def test_a_bundle_of_one_launch(one: Path) -> None:
    found = stored(one)
    assert found.directory == one
    assert found.program is not None
    assert functions(found) == ["sdsc_bundle"]
    assert found.folders == {"sdsc_0.json": one, "sdsc_1.json": one}
    assert found.manifest == Manifest()
    assert found.values() == {}
    assert found.weights() == {}
    assert found.weight_names() == set()


def test_a_bundle_of_others_has_no_program(one: Path) -> None:
    (one / "program.mlir").unlink()
    assert stored(one).program is None


def test_a_bundle_of_several_launches_has_a_folder_for_each(two: Path) -> None:
    found = stored(two)
    assert functions(found) == ["sdsc_bundle_0", "sdsc_bundle_1"]
    assert found.folders == {"sdsc_0.json": two / "launch_0", "sdsc_1.json": two / "launch_1"}
    assert found.descriptor("sdsc_1.json").op_func_name == "add"


def test_folders_of_launches(one: Path) -> None:
    several = read(host("sdsc_bundle", "sdsc_bundle_1"))
    assert launch_folders(one, None) == {"sdsc_bundle": one}
    assert launch_folders(one, several) == {"sdsc_bundle": one}
    (one / "bundle.mlir").unlink()
    assert launch_folders(one, None) == {"sdsc_bundle": one}
    assert launch_folders(one, several) == {"sdsc_bundle": one, "sdsc_bundle_1": one / "launch_1"}


def test_two_launches_cannot_have_a_file_of_one_name(two: Path) -> None:
    (two / "launch_1" / "bundle.mlir").write_text(bundle("sdsc_0.json"))
    assert refused(two) == ("two launches have a file sdsc_0.json", str(two / "launch_1"), AGAIN)


def test_no_directory(tmp_path: Path) -> None:
    path = tmp_path / "none"
    assert refused(path) == ("no such bundle directory", str(path), "name a directory with a bundle.mlir")
    path.write_text("")
    assert refused(path)[0] == "no such bundle directory"


def test_a_directory_without_a_program_is_no_bundle(tmp_path: Path) -> None:
    said, where, hint = refused(tmp_path)
    assert said == "this directory is no bundle: it has neither bundle.mlir nor program.mlir"
    assert where == str(tmp_path) and "spyre-compile -o" in str(hint)


def test_a_file_that_is_run_and_not_there(one: Path) -> None:
    (one / "sdsc_1.json").unlink()
    assert refused(one) == ("bundle.mlir runs sdsc_1.json, which is not there", str(one), AGAIN)


def test_weights_that_are_named_and_not_there(one: Path) -> None:
    entry = {"name": "w", "argument": 3, "layout": LAYOUT, "offset": 0, "bytes": 1}
    (one / "manifest.json").write_text(manifest(weights={"w@3": entry}))
    assert refused(one) == ("manifest.json names weights.safetensors, which is not there", str(one), AGAIN)
    save_file({"w@3": np.array([[1, 2]], np.uint16)}, one / "weights.safetensors")
    found = stored(one)
    assert found.weight_names() == {"w"}
    assert {number: load().tolist() for number, load in found.weights().items()} == {3: [[1, 2]]}


def test_values_are_the_tensors_of_the_data_file(one: Path) -> None:
    save_file({"w": np.array([1.0, 2.0])}, one / "data.safetensors")
    assert {name: value.tolist() for name, value in stored(one).values().items()} == {"w": [1.0, 2.0]}


def test_a_launch_knows_its_place_and_its_tensors(one: Path) -> None:
    source = {"file": "model.py", "line": 7, "module": "mlp"}
    first = {"file": "sdsc_0.json", "source": source, "tensors": ["argument 0", "buffer 0"]}
    (one / "manifest.json").write_text(manifest(first, {"file": "sdsc_1.json"}))
    known, unknown = launches(stored(one).bundle)
    assert source_of(known.location) == Source("model.py", 7, "mlp")
    assert known.tensors == ("argument 0", "buffer 0")
    assert source_of(unknown.location).file == str(one / "bundle.mlir")
    assert unknown.tensors == ()


def test_a_bundle_that_was_changed_since_is_told_nothing(one: Path) -> None:
    source = {"file": "model.py", "line": 7, "module": ""}
    (one / "manifest.json").write_text(manifest({"file": "sdsc_0.json", "source": source, "tensors": ["argument 0"]}))
    for launch in launches(stored(one).bundle):
        assert source_of(launch.location) != Source("model.py", 7)
        assert launch.tensors == ()


def test_a_file_is_described_once(one: Path) -> None:
    found = stored(one)
    first = found.descriptor("sdsc_0.json")
    (one / "sdsc_0.json").unlink()
    assert found.descriptor("sdsc_0.json") is first
    with pytest.raises(ReadError, match="which leads out of its directory"):
        found.descriptor("../sdsc_0.json")


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [("{", "{path}:1:2", AGAIN), ('{"a": 1}', "{path}: $.a", AGAIN)],
)
def test_a_file_that_is_no_superdsc_is_named(text: str, place: str, hint: str, one: Path) -> None:
    path = one / "sdsc_0.json"
    path.write_text(text)
    with pytest.raises(ReadError) as caught:
        stored(one).descriptor("sdsc_0.json")
    assert caught.value.where == place.format(path=path)
    assert caught.value.hint == hint


def test_a_file_that_contradicts_itself_is_named_with_the_place_in_it(one: Path) -> None:
    path = one / "sdsc_0.json"
    path.write_text(path.read_text().replace('"opFuncName": "add"', '"opFuncName": 1'))
    with pytest.raises(ReadError) as caught:
        stored(one).descriptor("sdsc_0.json")
    where = caught.value.where or ""
    assert where.startswith(f"{path}: $.0_add.dscs_[0].add")
    assert where.count(str(path)) == 1


def test_a_module_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="the file cannot be read: No such file or directory") as caught:
        read_module(tmp_path / "none.mlir", make_context())
    assert (caught.value.where, caught.value.hint) == (str(tmp_path / "none.mlir"), AGAIN)


def test_a_module_that_is_no_mlir_or_does_not_verify(tmp_path: Path) -> None:
    path = tmp_path / "a.mlir"
    path.write_text("func.func @f() {\n  nothing.op\n}\n")
    with pytest.raises(ReadError, match=r"the file is no MLIR: .*nothing") as caught:
        read_module(path, make_context())
    assert (caught.value.where, caught.value.hint) == (f"{path}:2:3", AGAIN)
    path.write_text('func.func @f() { sdscbundle.sdsc_execute () {sdsc_filename="a", symbol_ids=[-1]} func.return }')
    with pytest.raises(ReadError, match=r"the program does not verify: .*0 operands for 1 symbol ids") as caught:
        read_module(path, make_context())
    assert (caught.value.where, caught.value.hint) == (str(path), AGAIN)

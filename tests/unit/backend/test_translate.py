"""The public files of a directory as one module, and back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp

from spyre_mlir.backend.translate import FILE, directory_to_module, file_name, module_to_directory
from spyre_mlir.dialects.superdsc import SdscOp
from spyre_mlir.errors import EmitError, ReadError
from spyre_mlir.text.render import module_text, parse_module
from spyre_mlir.universe import make_context
from tests.paths import DATA
from tests.unit.backend.programs import bundle, host, kernel, read

ADD = DATA / "superdsc_worked/a1_add_128x256_1core.json"


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """A bundle that launches one file twice and another once; a third is not launched."""
    directory = tmp_path / "one"
    directory.mkdir()
    (directory / "bundle.mlir").write_text(bundle("sdsc_b.json", "sdsc_a.json", "sdsc_b.json"))
    for name in ("sdsc_a.json", "sdsc_b.json", "sdsc_c.json"):
        shutil.copy(ADD, directory / name)
    (directory / "other.json").write_text("{}")
    return directory


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A program of two launches."""
    directory = tmp_path / "two"
    for number in range(2):
        folder = directory / f"launch_{number}"
        folder.mkdir(parents=True)
        (folder / "bundle.mlir").write_text(bundle(f"sdsc_{number}.json"))
        shutil.copy(ADD, folder / f"sdsc_{number}.json")
    (directory / "program.mlir").write_text(host("sdsc_bundle_0", "sdsc_bundle_1"))
    return directory


def names(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


def test_files_come_as_they_are_launched_then_the_others_by_name(one: Path) -> None:
    module = directory_to_module(one, make_context())
    *sdscs, function = module.ops
    assert isinstance(function, FuncOp)
    assert [op.attributes[FILE] for op in sdscs] == [StringAttr(f"sdsc_{x}.json") for x in "bac"]
    assert FILE == "superdsc.file"


def test_equal_root_keys_become_different_symbols(one: Path) -> None:
    sdscs = [op for op in directory_to_module(one, make_context()).ops if isinstance(op, SdscOp)]
    assert [op.sym_name.data for op in sdscs] == ["0_add", "0_add.1", "0_add.2"]
    assert [op.root_key for op in sdscs] == ["0_add"] * 3


def test_functions_of_several_launches_are_called_as_they_are_launched(two: Path) -> None:
    functions = [op.sym_name.data for op in directory_to_module(two, make_context()).ops if isinstance(op, FuncOp)]
    assert functions == ["sdsc_bundle_0", "sdsc_bundle_1"]
    # A bundle at the top goes before what a program says.
    (two / "bundle.mlir").write_text(bundle())
    (two / "program.mlir").write_text("nothing")
    assert [op.name for op in directory_to_module(two, make_context()).ops] == ["func.func"]


@pytest.mark.parametrize("which", ["one", "two"])
def test_there_and_back(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    directory: Path = request.getfixturevalue(which)
    module = directory_to_module(directory, make_context())
    again = parse_module(module_text(module), make_context())
    module_to_directory(again, tmp_path / "again", "m.mlir")
    assert names(tmp_path / "again") == [n for n in names(directory) if n not in ("program.mlir", "other.json")]
    for path in (tmp_path / "again").rglob("*.json"):
        assert json.loads(path.read_text()) == json.loads(ADD.read_text())
    for path in (tmp_path / "again").rglob("bundle.mlir"):
        assert path.read_text().endswith("}\n")
        first = parse_module((directory / path.relative_to(tmp_path / "again")).read_text(), make_context())
        assert parse_module(path.read_text(), make_context()).is_structurally_equivalent(first)


@pytest.mark.parametrize("which", ["one", "two"])
def test_a_bundle_that_cannot_be_read(which: str, request: pytest.FixtureRequest) -> None:
    directory: Path = request.getfixturevalue(which)
    path = directory / ("bundle.mlir" if which == "one" else "launch_1/bundle.mlir")
    path.write_text("func.func @f() {\n  nothing.op\n}\n")
    with pytest.raises(ReadError, match=r"the file is no MLIR: .*nothing") as caught:
        directory_to_module(directory, make_context())
    assert caught.value.where == f"{path}:2:3"
    path.unlink()
    with pytest.raises(ReadError, match="cannot read the file: No such file or directory") as caught:
        directory_to_module(directory, make_context())
    assert caught.value.where == str(path)


def test_a_file_out_of_the_directory_is_not_read(one: Path) -> None:
    (one / "bundle.mlir").write_text(bundle("../sdsc_a.json"))
    with pytest.raises(ReadError, match="which leads out of its directory"):
        directory_to_module(one, make_context())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (kernel("0_relufwd"), "has 0 functions and 1 SuperDSCs"),
        (bundle() + host(), "has 2 functions and 0 SuperDSCs, and @main"),
        (
            bundle() + kernel("0_relufwd") + "%0 = arith.constant 1 : index",
            "has 1 functions and 1 SuperDSCs, and arith.constant",
        ),
        (
            "%c = arith.constant 1 : index " + "".join(host(name=f"f{n}") for n in range(4)),
            "has 4 functions and 0 SuperDSCs, and @f0, @f1, @f2",
        ),
    ],
)
def test_a_module_that_is_no_bundle_is_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(EmitError) as caught:
        module_to_directory(read(text), tmp_path / "out", "m.mlir")
    assert caught.value.message == f"a bundle is a function @sdsc_bundle and its SuperDSCs; this module {message}"
    assert caught.value.where == "m.mlir"
    assert caught.value.hint == "spyre-compile -o DIR writes programs that have a host part"
    assert not (tmp_path / "out").exists()


def named(name: str, root: str = "0_relufwd") -> str:
    return kernel(root).replace("labels =", f'superdsc.file = "{name}", labels =')


@pytest.mark.parametrize("name", ["../a.json", "a/b.json", "", ".", "..", "bundle.mlir", "sdsc_0.json"])
def test_a_name_that_is_no_name_or_is_taken_is_refused(name: str, tmp_path: Path) -> None:
    text = kernel("0_relufwd") + named(name, "1_relufwd") + bundle()
    with pytest.raises(EmitError, match=f"@1_relufwd cannot be written as '{name}'") as caught:
        module_to_directory(read(text), tmp_path / "out", "m.mlir")
    assert (caught.value.where, caught.value.hint) == ("m.mlir", "give it another superdsc.file")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (kernel("7_relufwd"), "sdsc_7.json"),
        (kernel("7_relufwd", extra="version TS25"), "sdsc_7_relufwd.json"),
        (kernel("x_relufwd"), "sdsc_x_relufwd.json"),
        (kernel("²_relufwd"), "sdsc_²_relufwd.json"),
        (named("mine.json"), "mine.json"),
    ],
)
def test_the_file_that_an_op_stands_for(text: str, name: str) -> None:
    (op,) = read(text).ops
    assert isinstance(op, SdscOp)
    assert file_name(op) == name

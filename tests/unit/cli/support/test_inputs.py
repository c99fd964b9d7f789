"""Arrays from the files that `--input` names, and files that are lowered before they are read."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from spyre_mlir.cli.support.inputs import lowered_file, read_inputs
from spyre_mlir.errors import InputError
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context


@pytest.fixture
def x(tmp_path: Path) -> Path:
    path = tmp_path / "x.npy"
    np.save(path, np.array([1.5, 2.0]))
    return path


@pytest.fixture
def both(tmp_path: Path) -> Path:
    path = tmp_path / "both.safetensors"
    save_file({"y": np.array([3]), "z": np.array([4])}, path)
    return path


def refused(*specs: object) -> tuple[str, str | None, str | None]:
    with pytest.raises(InputError) as caught:
        read_inputs([str(spec) for spec in specs])
    return caught.value.message, caught.value.where, caught.value.hint


def test_arrays_come_by_name_or_with_all_of_a_file(x: Path, both: Path) -> None:
    found = read_inputs([f"x={x}", str(both)])
    assert {name: value.tolist() for name, value in found.items()} == {"x": [1.5, 2.0], "y": [3], "z": [4]}
    assert read_inputs([]) == {}


def test_an_input_is_given_once(x: Path, both: Path) -> None:
    assert refused(f"x={x}", f"x={x}") == ("the input 'x' is given twice", None, "give it once")
    assert refused(both, f"z={x}")[0] == "the input 'z' is given twice"


@pytest.mark.parametrize("spec", ["x", "x.npy", "=x.npy", "x=", "="])
def test_a_name_and_a_file_are_needed(spec: str) -> None:
    message, _, hint = refused(spec)
    assert message == f"--input {spec}: expected NAME=FILE.npy"
    assert hint == "or name a file that ends with .safetensors"


def test_files_that_are_not_there(tmp_path: Path) -> None:
    path = tmp_path / "none.npy"
    assert refused(f"x={path}") == (
        "the input 'x' cannot be read: No such file or directory",
        str(path),
        "name a file of numpy.save",
    )
    path = tmp_path / "none.safetensors"
    assert refused(path) == ("the inputs cannot be read: no such file", str(path), "name a .safetensors file")
    path.mkdir()
    assert refused(path)[0] == "the inputs cannot be read: no such file"
    # A name makes it a file of numpy.
    assert refused(f"x={tmp_path / 'other.safetensors'}")[2] == "name a file of numpy.save"


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "float64", "complex64"])
def test_kinds_of_numbers(dtype: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones(2, dtype))
    assert read_inputs([f"x={tmp_path / 'x.npy'}"])["x"].dtype == dtype


@pytest.mark.parametrize("what", ["text", "objects", "archive", "nothing", "strings", "dates", "claim", "cut"])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_what_is_no_file_of_numbers_is_refused(what: str, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    match what:
        case "text":
            path.write_text("1 2 3")
        case "objects":
            np.save(path, np.array([{}]), allow_pickle=True)
        case "archive":
            with path.open("wb") as file:
                np.savez(file, a=np.ones(1))
        case "nothing":
            path.touch()
        case "strings":
            np.save(path, np.array(["a"]))
        case "dates":
            np.save(path, np.array(["2026-01-01"], "datetime64[D]"))
        case "claim":
            np.save(path, np.ones(1))
            path.write_bytes(re.sub(rb"\(1,\), }  *", b"(1" + b"0" * 30 + b",), }", path.read_bytes()))
        case _:
            np.save(path, np.ones(100))
            path.write_bytes(path.read_bytes()[:200])
    assert refused(f"x={path}") == ("the input 'x' is no .npy file of numbers", str(path), "write it with numpy.save")


RELU = """func.func @main(%x: tensor<4x64xf16>) -> tensor<4x64xf16> {
  %0 = aten.relu(%x) : (tensor<4x64xf16>) -> tensor<4x64xf16>
  func.return %0 : tensor<4x64xf16>
}
"""


def test_the_lowered_program_keeps_its_name_and_locations_and_is_gone_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "relu.mlir"
    path.write_text(RELU)
    with lowered_file(str(path), "superdsc") as found:
        assert Path(found).name == "relu.mlir" and found != str(path)
        text = Path(found).read_text()
        assert "superdsc.sdsc" in text and "relu.mlir" in text
        assert parse_module(text, make_context())
    assert not Path(found).exists() and path.read_text() == RELU


def test_nothing_is_done_without_a_level() -> None:
    with lowered_file("no/such/file", None) as found:
        assert found == "no/such/file"


@pytest.mark.parametrize("name", ["missing.mlir", "bundle"])
def test_what_is_no_text_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir()
    with (
        pytest.raises(InputError, match=r"--to lowers an \.mlir file") as refused,
        lowered_file(str(tmp_path / name), "superdsc"),
    ):
        pass
    assert refused.value.hint is not None and "bundles are lowered already" in refused.value.hint

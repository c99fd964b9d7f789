"""spyre-run takes KTIR programs: arguments by name, results are the arrays that stores reach."""

from pathlib import Path

import numpy as np
import pytest

from spyre_mlir.cli import run as run_tool
from tests.paths import DATA

FILES = DATA / "ktir"
GATHER = str(FILES / "gather_rows.mlir")


def test_inputs_and_outputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = np.arange(256_000, dtype=np.float64).reshape(1000, 256) % 1000
    ids = np.arange(128)[::-1]
    np.save(tmp_path / "t.npy", table)
    np.save(tmp_path / "i.npy", ids)
    files = [f"--input=table={tmp_path / 't.npy'}", f"--input=ids={tmp_path / 'i.npy'}", f"--output={tmp_path / 'out'}"]
    assert run_tool.run([GATHER, *files]) == 0
    assert capsys.readouterr().out.startswith("y: 128x256, min 0,")
    result = np.load(tmp_path / "out" / "y.npy")
    assert result.dtype == np.float16
    assert np.array_equal(result, table[ids])


def test_random_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_tool.run([GATHER]) == 0
    first = capsys.readouterr().out
    assert run_tool.run([GATHER, "--seed", "1"]) == 0
    assert capsys.readouterr().out != first


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("ids", np.zeros(128), "the argument 'ids' has elements of int32, got float64"),
        ("ids", np.zeros(127, np.int32), "the argument 'ids' has extents (128,), got (127,)"),
        ("y", np.zeros((128, 256)), "the program has no argument 'y'"),
    ],
)
def test_wrong_inputs(
    name: str, value: np.ndarray, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "v.npy", value)
    assert run_tool.run([GATHER, "--input", f"{name}={tmp_path / 'v.npy'}"]) == 1
    assert says in capsys.readouterr().err


def test_a_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "i.npy", np.full(128, 1000))
    assert run_tool.run([GATHER, "--input", f"ids={tmp_path / 'i.npy'}"]) == 3
    assert "index-out-of-range: index 1000 of dimension 0, which has 1000" in capsys.readouterr().err


VIEW = "construct_memory_view %{0}, sizes: [64], strides: [1] {{coordinate_set = affine_set<(d0) : (d0 >= 0, -d0 + 63 >= 0)>, memory_space = #ktdp.memory_space<global>}} : memref<64xf16>"  # noqa: E501
TILE = "construct_access_tile %{0}[%c0] {{access_tile_set = affine_set<(d0) : (d0 >= 0, -d0 + 63 >= 0)>, access_tile_order = affine_map<(d0) -> (d0)>}} : memref<64xf16> -> !ktdp.access_tile<64xindex>"  # noqa: E501
DOUBLE = """  func.func @{name}(%{source}: index, %{target}: index) attributes {{grid = [1]}} {{
    %c0 = arith.constant 0 : index
    %from = ktdp.{view_from}
    %to = ktdp.{view_to}
    %tile_from = ktdp.{tile_from}
    %tile_to = ktdp.{tile_to}
    %value = ktdp.load %tile_from : !ktdp.access_tile<64xindex> -> tensor<64xf16>
    %twice = arith.addf %value, %value : tensor<64xf16>
    ktdp.store %twice, %tile_to : tensor<64xf16>, !ktdp.access_tile<64xindex>
    func.return
  }}
"""


def doubling(name: str, source: str, target: str) -> str:
    views = {"view_from": VIEW.format(source), "view_to": VIEW.format(target)}
    tiles = {"tile_from": TILE.format("from"), "tile_to": TILE.format("to")}
    return DOUBLE.format(name=name, source=source, target=target, **views, **tiles)


def program(tmp_path: Path, *functions: str) -> str:
    path = tmp_path / "program.mlir"
    path.write_text("module {\n" + "".join(functions) + "}\n")
    return str(path)


def test_functions_run_one_after_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "a.npy", np.arange(64, dtype=np.float16))
    path = program(tmp_path, doubling("main_0", "a", "b"), doubling("main_1", "b", "c"))
    assert run_tool.run([path, "--input", f"a={tmp_path / 'a.npy'}"]) == 0
    assert capsys.readouterr().out == "b: 64, min 0, mean 63, max 126\nc: 64, min 0, mean 126, max 252\n"


def test_an_array_is_as_large_as_its_largest_view_reaches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Elements two apart: 64 of them end 127 elements from the start."""
    text = doubling("main", "a", "b").replace("%b, sizes: [64], strides: [1]", "%b, sizes: [64], strides: [2]")
    np.save(tmp_path / "a.npy", np.arange(64, dtype=np.float16))
    path = program(tmp_path, text)
    assert run_tool.run([path, "--input", f"a={tmp_path / 'a.npy'}", "--output", str(tmp_path)]) == 0
    result = np.load(tmp_path / "b.npy")
    assert result.shape == (127,)
    assert np.array_equal(result[::2], 2 * np.arange(64))


def test_a_view_behind_a_pointer_reaches_into_its_array(tmp_path: Path) -> None:
    """Only the elements from 128 on are written, so what was there before is an input."""
    text = doubling("main", "a", "b").replace("memory_view %b,", "memory_view %later,")
    start = "%c128 = arith.constant 128 : index\n    %later = arith.addi %b, %c128 : index\n    %from ="
    np.save(tmp_path / "a.npy", np.arange(64, dtype=np.float16))
    np.save(tmp_path / "b.npy", np.full(192, 7, np.float16))
    path = program(tmp_path, text.replace("%from =", start, 1))
    files = [f"--input={name}={tmp_path / name}.npy" for name in "ab"]
    assert run_tool.run([path, *files, "--output", str(tmp_path / "out")]) == 0
    assert np.array_equal(np.load(tmp_path / "out" / "b.npy"), [*[7] * 128, *range(0, 128, 2)])


def test_functions_without_an_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = program(tmp_path, doubling("one", "a", "b"), doubling("two", "b", "c"))
    assert run_tool.run([path]) == 1
    assert "there is no function 'main'" in capsys.readouterr().err

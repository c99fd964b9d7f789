"""spyre-run takes KTIR programs: arguments by name, results are the arrays that stores reach."""

from pathlib import Path

import numpy as np
import pytest

from spyre_mlir.cli import run as run_tool

FILES = Path(__file__).parents[2] / "data" / "ktir"
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

"""KTIR from the tools: a file, a stream, and what is refused."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from spyre_mlir.cli import compile as compile_tool
from spyre_mlir.cli import translate
from tests.oracles.ktir_lines import problems

Refused = Callable[..., str]
Capture = pytest.CaptureFixture[str]

KERNELS = """
!t = !spyre.tensor<[64, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
func.func @main(%x: tensor<64x128xf16>) -> tensor<64x128xf16> {
  %0 = spyre.kernel.to_device %x : tensor<64x128xf16> to !t
  %1 = spyre.kernel.alloc : !t
  spyre.kernel.compute "exp" [m = 64 over 32, n = 128] ins(%0[m, n] : !t) outs(%1[m, n] : !t)
  %2 = spyre.kernel.from_device %1 : !t to tensor<64x128xf16>
  func.return %2 : tensor<64x128xf16>
}
"""


def test_a_saved_program_becomes_a_file(saved: Path, tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "layer.mlir"
    assert compile_tool.run([str(saved), "--target=ktir", "-o", str(target)]) == 0
    assert f"wrote {target}" in capsys.readouterr().out
    assert [p.name for p in tmp_path.iterdir()] == ["layer.mlir"]
    text = target.read_text()
    assert problems(text) == [] and "linalg.matmul" in text


def test_a_saved_program_becomes_a_stream(saved: Path, capsys: Capture) -> None:
    assert compile_tool.run([str(saved), "--target=ktir", "-o", "-"]) == 0
    assert problems(capsys.readouterr().out) == []


@pytest.mark.parametrize("level", ["aten", "spyre.loop", "superdsc"])
def test_other_levels_are_told_the_way(level: str, saved: Path, tmp_path: Path, refused: Refused) -> None:
    text = tmp_path / "text.mlir"
    assert compile_tool.run([str(saved), "--emit", level, "-o", str(text)]) == 0
    parts = [f"this program is at the level {level}", str(text), "spyre-opt FILE --to spyre.kernel"]
    refused(translate.main, ["--target=ktir", text], *parts)


def test_text_of_kernels_becomes_ktir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    source = tmp_path / "kernels.mlir"
    source.write_text(KERNELS)
    assert translate.main(["--target=ktir", str(source)]) == 0
    text = capsys.readouterr().out
    assert problems(text) == [] and "math.exp" in text
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert translate.main(["--target=ktir", "--older-spaces"]) == 0
    older = capsys.readouterr().out
    assert problems(older, older_spaces=True) == [] and "spyre_memory_space<HBM>" in older


@pytest.mark.parametrize(
    ("before", "after", "code", "said"),
    [
        ("SEN169_FP16", "BFLOAT16", 2, ["a kernel has no KTIR", "exp", "BFLOAT16"]),
        ("func.return %2", "spyre.kernel.launch @b() : \n  func.return %2", 1, []),
    ],
    ids=["format", "launch"],
)
def test_what_cannot_be_written_leaves_nothing(
    before: str, after: str, code: int, said: list[str], tmp_path: Path, capsys: Capture
) -> None:
    source, target = tmp_path / "kernels.mlir", tmp_path / "out.mlir"
    source.write_text(KERNELS.replace(before, after))
    assert translate.main(["--target=ktir", str(source), "-o", str(target)]) == code
    message = capsys.readouterr().err
    assert "Traceback" not in message and all(word in message for word in said), message
    assert not target.exists()


TWO = """
!t = !spyre.tensor<[64, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
func.func @main(%x: tensor<64x128xf16>) -> tensor<64x128xf16> {
  %0 = spyre.kernel.to_device %x : tensor<64x128xf16> to !t
  %1 = spyre.kernel.alloc : !t
  %2 = spyre.kernel.alloc : !t
  spyre.kernel.compute "exp" [m = 64 over 32, n = 128] ins(%0[m, n] : !t) outs(%1[m, n] : !t)
  spyre.kernel.compute "neg" [m = 64, n = 128 over 2] ins(%1[m, n] : !t) outs(%2[m, n] : !t)
  %3 = spyre.kernel.from_device %2 : !t to tensor<64x128xf16>
  func.return %3 : tensor<64x128xf16>
}
"""


def test_split_gives_every_function_a_file(tmp_path: Path, capsys: Capture) -> None:
    source, target = tmp_path / "kernels.mlir", tmp_path / "parts"
    source.write_text(TWO)
    assert translate.main(["--target=ktir", "--split", str(source), "-o", str(target)]) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["kernels.mlir", "parts"]
    files = sorted(target.iterdir())
    assert [f.name for f in files] == ["main_0.mlir", "main_1.mlir"]
    for number, file in enumerate(files):
        text = file.read_text()
        assert problems(text) == [] and text.count("func.func") == 1
        assert f"func.func @main_{number}(" in text and f"Function {number + 1} of 2" in text
    assert "math.exp" in files[0].read_text() and "arith.negf" in files[1].read_text()
    assert translate.main(["--target=ktir", "--split", str(source), "-o", str(target)]) == 1
    assert "no empty directory" in capsys.readouterr().err


def test_split_modules_on_a_stream_are_separated(tmp_path: Path, capsys: Capture) -> None:
    source = tmp_path / "kernels.mlir"
    source.write_text(TWO)
    assert translate.main(["--target=ktir", "--split", str(source)]) == 0
    parts = capsys.readouterr().out.split("// -----\n")
    assert len(parts) == 2 and all(problems(part) == [] for part in parts)


def test_a_saved_program_is_split(saved: Path, tmp_path: Path, capsys: Capture) -> None:
    assert compile_tool.run([str(saved), "--target=ktir", "--split", "-o", str(tmp_path / "parts")]) == 0
    assert "wrote 1 module to" in capsys.readouterr().out
    assert all(problems(p.read_text()) == [] for p in (tmp_path / "parts").iterdir())


def test_split_is_for_ktir_alone(saved: Path, tmp_path: Path, capsys: Capture) -> None:
    assert compile_tool.run([str(saved), "--split", "-o", str(tmp_path / "bundle")]) == 1
    assert "goes with --target=ktir" in capsys.readouterr().err
    assert translate.main(["--superdsc-to-mlir", "--split", str(saved)]) == 1
    assert "--split is about KTIR" in capsys.readouterr().err

"""spyre-run names the spoiled file, the place in it, and what to try."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

import spyre_mlir
from spyre_mlir.cli import compile as compile_tool
from spyre_mlir.cli import run as run_tool

Refused = Callable[..., str]


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("bundle.mlir", "cannot be read: No such file"),
        ("program.mlir", "no program.mlir"),
        ("sdsc_1.json", "bundle.mlir runs sdsc_1.json, which is not there"),
    ],
)
def test_missing_file(name: str, part: str, bundle: Path, refused: Refused) -> None:
    (bundle / name).unlink()
    refused(run_tool.run, [bundle], part, str(bundle), "try: ")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("bundle.mlir", ["is no MLIR", "bundle.mlir:"]),
        ("program.mlir", ["is no MLIR", "program.mlir:"]),
        ("sdsc_1.json", ["expected JSON", "sdsc_1.json:"]),
        ("data.safetensors", ["tensors cannot be read", "data.safetensors"]),
    ],
)
def test_truncated_file(name: str, parts: list[str], bundle: Path, refused: Refused) -> None:
    content = (bundle / name).read_bytes()
    (bundle / name).write_bytes(content[: len(content) // 2])
    refused(run_tool.run, [bundle, "--no-check"], *parts, "try: write the bundle again")
    refused(run_tool.run, [bundle], *parts[1:])


@pytest.mark.parametrize(
    ("before", "after", "parts"),
    [
        ('"numCoresUsed_":', '"numCoresUsed_": 1, "numCoresUsed_":', ["got 'numCoresUsed_' twice"]),
        ('"numCoresUsed_": ', '"numCoresUsed_": true, "was": ', ["numCoresUsed_", "got true"]),
        ('"dscs_"', '"dsks_"', ["expected a list dscs_"]),
    ],
)
def test_spoiled_json(before: str, after: str, parts: list[str], bundle: Path, refused: Refused) -> None:
    path = bundle / "sdsc_1.json"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))
    refused(run_tool.run, [bundle, "--no-check"], *parts, "sdsc_1.json", "try: ")
    refused(run_tool.run, [bundle], "sdsc_1.json", "try: ")


def test_corrupted_tensors(bundle: Path, refused: Refused) -> None:
    content = bytearray((bundle / "data.safetensors").read_bytes())
    content[:16] = b"\xff" * 16
    (bundle / "data.safetensors").write_bytes(content)
    refused(run_tool.run, [bundle], "tensors cannot be read", "data.safetensors", "try: ")


def test_tensor_of_another_shape(bundle: Path, refused: Refused) -> None:
    from safetensors.numpy import save_file

    values = load_file(bundle / "data.safetensors")
    save_file({**values, "linear.bias": np.zeros(3, np.float32)}, bundle / "data.safetensors")
    flags = ["--no-check", "--numerics", "exact"]  # the card's numbers are in a file of their own
    refused(run_tool.run, [bundle, *flags], "'linear.bias' takes shape (64,), got (3,)")


GOOD = np.zeros((64, 128), np.float32)


@pytest.mark.parametrize(
    ("name", "value", "parts"),
    [
        ("y", GOOD, ["no argument 'y'", "x, linear.weight, linear.bias"]),
        ("x", GOOD[:, 1:], ["'x' takes shape (64, 128), got (64, 127)"]),
        ("x", GOOD.astype(np.complex64), ["'x' takes f32 numbers, got complex64"]),
        ("x", GOOD.astype(str), ["'x' is no .npy file of numbers", "numpy.save"]),
    ],
)
def test_wrong_input(
    name: str, value: np.ndarray, parts: list[str], pristine: Path, tmp_path: Path, refused: Refused
) -> None:
    np.save(tmp_path / "value.npy", value)
    refused(run_tool.run, [pristine, "--input", f"{name}={tmp_path / 'value.npy'}"], *parts)


def test_a_name_that_no_argument_has_is_said_before_its_file_is_read(pristine: Path, refused: Refused) -> None:
    words = [pristine, "--input", "zz=no_such_file.npy"]
    refused(run_tool.run, words, "the program has no argument 'zz'", "its arguments are x, linear.weight, linear.bias")
    refused(run_tool.run, [pristine, "--input", "x=no_such_file.npy"], "the input 'x' cannot be read", "no_such_file")


def test_input_files(pristine: Path, tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "text.npy").write_text("1 2 3")
    np.savez(tmp_path / "several.npz", GOOD)
    np.save(tmp_path / "good.npy", GOOD)
    refused(run_tool.run, [pristine, "--input", "x"], "expected NAME=FILE.npy")
    refused(run_tool.run, [pristine, "--input", "x=/no/such.npy"], "/no/such.npy", "No such file", "numpy.save")
    refused(run_tool.run, [pristine, "--input", f"x={tmp_path}"], "Is a directory", str(tmp_path))
    for name in ("text.npy", "several.npz"):
        refused(run_tool.run, [pristine, "--input", f"x={tmp_path / name}"], "no .npy file of numbers", name)
    twice = ["--input", f"x={tmp_path / 'good.npy'}"] * 2
    refused(run_tool.run, [pristine, *twice], "'x' is given twice")


F4 = "tensor<4xf32>"


@pytest.mark.parametrize(
    ("text", "code", "parts"),
    [
        (f"func.func @f(%a: {F4}) -> {F4} {{ func.return %a : {F4} }}", 1, ["no function 'main'", "functions are f"]),
        (f"func.func private @main(%a: {F4}) -> {F4}", 1, ["'main' is only declared"]),
        ("func.func @main(%a: i32) -> i32 { func.return %a : i32 }", 1, ["'a' is i32"]),
        ("func.func @main(%a: tensor<?xf32>) { func.return }", 1, ["tensor<?xf32>", "known shape"]),
        ("func.func @main(", 1, ["program.mlir:1:", "^"]),
        ("func.func @main() -> f32 {\n  func.return\n}", 1, ["program.mlir:2:3", "expected [f32], got []"]),
        ('"test.op"() : () -> ()', 1, ["program.mlir:1:", "test.op is not registered"]),
    ],
)
def test_wrong_program(text: str, code: int, parts: list[str], tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "program.mlir"
    path.write_text(text)
    refused(run_tool.run, [path], *parts, code=code)


def test_part_of_a_bundle(pristine: Path, refused: Refused) -> None:
    refused(run_tool.run, [pristine / "program.mlir"], "host part of a bundle", "run the bundle's directory")
    refused(run_tool.run, [pristine / "bundle.mlir"], "device part of a bundle", "run the bundle's directory")
    refused(run_tool.run, [pristine / "weights.safetensors"], "neither an .mlir file nor a bundle directory")


def test_concrete_addresses_are_run(
    saved: Path, pristine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compile_tool.run([str(saved), "-o", str(tmp_path / "bundle"), "--addresses", "concrete"]) == 0
    capsys.readouterr()
    assert run_tool.run([str(tmp_path / "bundle")]) == run_tool.run([str(pristine)]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == second


def test_weights_of_the_device_only(
    saved: Path, pristine: Path, tmp_path: Path, refused: Refused, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compile_tool.run([str(saved), "-o", str(tmp_path / "bundle"), "--device-weights-only"]) == 0
    assert "linear.weight" not in load_file(tmp_path / "bundle" / "data.safetensors")
    exact = [tmp_path / "bundle", "--numerics", "exact"]
    refused(run_tool.run, exact, "'linear.weight' is there as the device has it", "device numerics")
    # Without a word about numerics it runs in those it can.
    run = ["--numerics", "device"]
    assert run_tool.run([str(tmp_path / "bundle")]) == run_tool.run([str(pristine), *run]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == second


def test_nothing_to_run(tmp_path: Path, refused: Refused) -> None:
    refused(run_tool.run, [tmp_path / "none"], "there is no such file or directory", str(tmp_path / "none"))
    refused(run_tool.run, [tmp_path / "none.mlir"], "there is no such file", str(tmp_path / "none.mlir"), "try: ")
    refused(run_tool.run, [tmp_path], "bundle.mlir")


def test_results_that_cannot_be_written(pristine: Path, tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "file").write_text("before")
    refused(run_tool.run, [pristine, "--output", tmp_path / "file"], "results cannot be written", "try: ")
    assert (tmp_path / "file").read_text() == "before"


@pytest.mark.parametrize("seed", ["-1", "x"])
def test_wrong_seed(seed: str, pristine: Path, refused: Refused) -> None:
    refused(run_tool.run, [pristine, f"--seed={seed}"], "--seed", "spyre-run --help")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.zeros((0, 3)), "0x3, empty"),
        (np.float32(2.5), "scalar, min 2.5, mean 2.5, max 2.5"),
        (np.asarray([[1, 2], [3, 6]]), "2x2, min 1, mean 3, max 6"),
        (np.asarray([True, False]), "2, min 0, mean 0.5, max 1"),
    ],
)
def test_a_result_in_a_line(value: np.ndarray, text: str) -> None:
    assert run_tool._summary(value) == text


def test_a_bundle_gives_what_the_call_in_python_gave_unless_told_otherwise(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, x = torch.nn.Linear(128, 64), torch.randn(4, 128)
    compiled = spyre_mlir.compile(model, (x,))
    bundle = compiled.save(tmp_path / "b", host_weights=True)
    np.save(tmp_path / "x.npy", x.numpy())
    found = {}
    for numerics in ((), ("--numerics", "exact")):
        words = [bundle, "--input", f"input={tmp_path / 'x.npy'}", "--output", tmp_path / "out", *numerics]
        assert run_tool.run([str(word) for word in words]) == 0
        (result,) = (tmp_path / "out").glob("*.npy")
        found[numerics] = np.load(result)
    assert (found[()] == compiled(x).numpy()).all()
    with torch.no_grad():
        exact = model(x).numpy()
    np.testing.assert_allclose(found["--numerics", "exact"], exact, rtol=1e-5, atol=1e-6)
    assert 1e-5 < abs(found[()] - exact).max() < 1e-2

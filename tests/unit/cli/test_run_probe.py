"""spyre-run --probe and --bisect, and runs of files that come without ours."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

import spyre_mlir
from spyre_mlir.cli import compile as compile_tool
from spyre_mlir.cli import run as run_tool
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import InputError
from tests.paths import DATA
from tests.unit.cli.conftest import Layer

X = np.random.default_rng(0).uniform(-1, 1, (64, 128)).astype(np.float32)
EXACT = ("--numerics", "exact")


@pytest.fixture(scope="module")
def with_levels(saved: Path) -> Path:
    directory = saved.parent / "with_levels"
    assert compile_tool.run([str(saved), "-o", str(directory), "--levels"]) == 0
    return directory


@pytest.fixture
def x(tmp_path: Path) -> str:
    np.save(tmp_path / "x.npy", X)
    return f"x={tmp_path / 'x.npy'}"


def product() -> np.ndarray:
    """What torch has between the product and the bias."""
    with torch.no_grad():
        return (torch.from_numpy(X) @ Layer().linear.weight.T).numpy()


def test_probe_of_a_bundle_is_what_torch_has(bundle: Path, x: str, tmp_path: Path) -> None:
    assert (
        run_tool.run([str(bundle), "--input", x, "--probe", "sdsc_0", "--output", str(tmp_path / "out"), *EXACT]) == 0
    )
    np.testing.assert_allclose(np.load(tmp_path / "out/sdsc_0.npy"), product(), atol=1e-5)
    assert (tmp_path / "out/output.npy").exists() or len(list((tmp_path / "out").iterdir())) == 2


@pytest.mark.parametrize(
    ("level", "name"), [("aten", "%linear"), ("spyre.loop", "%0"), ("spyre.kernel", "%2"), ("superdsc", "sdsc_0")]
)
def test_probe_of_a_module(level: str, name: str, with_levels: Path, x: str, tmp_path: Path) -> None:
    data = ["--input", str(with_levels / "data.safetensors")]
    path = str(with_levels / f"levels/{level}.mlir")
    arguments = [path, "--input", x, *data, "--probe", name, "--output", str(tmp_path), *EXACT]
    assert run_tool.run(arguments) == 0
    bias = Layer().linear.bias.detach().numpy()
    expected = product() + (bias if level == "aten" else 0.0)
    np.testing.assert_allclose(np.load(tmp_path / f"{name.removeprefix('%')}.npy"), expected, atol=1e-5)


def test_probe_lists_what_there_is(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_tool.run([str(bundle), "--probe", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:4] for line in lines[:2]] == [
        ["sdsc_0", "64x64", "sdscbundle.sdsc_execute", "batchmatmul"],
        ["sdsc_1", "64x64", "sdscbundle.sdsc_execute", "add"],
    ]
    assert "conftest.py:" in lines[1]


def test_unknown_probe(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_tool.run([str(bundle), "--probe", "sdsc_99"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "no value is called 'sdsc_99'" in err
    assert "name one of sdsc_0, sdsc_1, sdsc_2" in err


def test_probe_from_python() -> None:
    compiled = spyre_mlir.compile(Layer(), (torch.from_numpy(X),))
    assert isinstance(compiled, CompiledModel)
    x = torch.from_numpy(X)
    np.testing.assert_allclose(compiled.probe("sdsc_0", x), product(), atol=1e-5)
    np.testing.assert_allclose(compiled.probe("spyre.loop:%0", x), product(), atol=1e-5)
    expected = Layer().linear(x).detach().numpy()
    np.testing.assert_allclose(compiled.probe("%linear", x), expected, atol=1e-5)
    with pytest.raises(InputError, match="no value is called '%nothing'"):
        compiled.probe("%nothing", x)


def test_probe_in_device_numerics_sees_what_the_card_has() -> None:
    class Squares(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * x

    x = torch.full((2, 64), 1e6)
    model = spyre_mlir.compile(Squares(), (x,))
    np.testing.assert_allclose(model.probe("sdsc_1", x), 1e12, rtol=1e-6)
    assert np.all(model.probe("sdsc_1", x, numerics="device") == 8_573_157_376)
    with pytest.raises(InputError, match="%x is of a level"):
        model.probe("%x", x, numerics="device")


def test_bisect_in_device_numerics_says_what_it_compared(with_levels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_tool.run([str(with_levels), "--bisect", "--numerics", "device"]) == 0
    assert "all of them ran in device numerics, which --accuracy compares with exact ones" in capsys.readouterr().out


def test_bisect_agrees(with_levels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_tool.run([str(with_levels), "--bisect"]) == 0
    assert "no divergence: the bundle agrees with aten, spyre.loop, spyre.kernel, superdsc" in capsys.readouterr().out


@pytest.mark.parametrize("numerics", ["exact", "device"])
def test_bisect_names_the_file(
    numerics: str, with_levels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoiled = shutil.copytree(with_levels, tmp_path / "spoiled")
    text = (spoiled / "sdsc_1.json").read_text()
    assert '"add"' in text
    (spoiled / "sdsc_1.json").write_text(text.replace('"add"', '"sub"'))
    assert run_tool.run([str(spoiled), "--bisect", "--numerics", numerics]) == 3
    out = capsys.readouterr().out
    assert out.startswith("divergence: sdsc_1.json (add), bundle against superdsc\n  from ")
    assert "conftest.py:" in out
    assert "expected" in out


def test_bisect_in_the_superdsc_level(with_levels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Module and files agree with each other and not with the kernels."""
    spoiled = shutil.copytree(with_levels, tmp_path / "spoiled")
    for name, spelling in (("sdsc_1.json", '"{}"'), ("levels/superdsc.mlir", " {} ")):
        text = (spoiled / name).read_text()
        assert spelling.format("add") in text
        (spoiled / name).write_text(text.replace(spelling.format("add"), spelling.format("sub")))
    assert run_tool.run([str(spoiled), "--bisect"]) == 3
    assert capsys.readouterr().out.startswith("divergence: sdsc_1.json (sub), superdsc against spyre.kernel\n  from ")


def test_bisect_needs_the_levels(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_tool.run([str(bundle), "--bisect"]) == 1
    assert "written with --levels" in capsys.readouterr().err


def test_bisect_needs_the_lowest_level(with_levels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    less = shutil.copytree(with_levels, tmp_path / "less")
    (less / "levels/superdsc.mlir").unlink()
    assert run_tool.run([str(less), "--bisect"]) == 1
    assert "written with --levels" in capsys.readouterr().err


def test_inputs_of_a_safetensors_file(bundle: Path, tmp_path: Path) -> None:
    save_file({"x": X}, tmp_path / "in.safetensors")
    assert (
        run_tool.run([str(bundle), "--input", str(tmp_path / "in.safetensors"), "--output", str(tmp_path), *EXACT]) == 0
    )
    (result,) = [np.load(path) for path in tmp_path.glob("*.npy")]
    np.testing.assert_allclose(result, Layer()(torch.from_numpy(X)).detach().numpy(), atol=1e-5)


def test_a_published_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says what ran, what was read and written, and what is not known."""
    random = np.random.default_rng(3)
    tensors = {"Tensor0": random.uniform(-1, 1, (512, 512)), "Tensor1": random.uniform(-1, 1, (512, 512))}
    save_file(tensors, tmp_path / "in.safetensors")
    path = DATA / "superdsc_real/01_add_512x512_32core_hbm.json"
    assert (
        run_tool.run([str(path), "--input", str(tmp_path / "in.safetensors"), "--output", str(tmp_path), *EXACT]) == 0
    )
    (result,) = [np.load(path) for path in tmp_path.glob("*.npy")]
    np.testing.assert_array_equal(result, tensors["Tensor0"] + tensors["Tensor1"])
    out = capsys.readouterr().out
    assert "ran 1 launch of 1 file\n" in out
    assert "01_add_512x512_32core_hbm: add on 32 cores, reads 1,048,576 bytes, writes 524,288\n" in out
    assert "Tensor0: [mb 512, out 512] SEN169_FP16 at 0xc00000000, given\n" in out
    assert "not known:\n" in out


def test_unknown_input_of_a_foreign_file(capsys: pytest.CaptureFixture[str], x: str) -> None:
    path = DATA / "superdsc_real/01_add_512x512_32core_hbm.json"
    assert run_tool.run([str(path), "--input", x]) == 1
    assert "the bundle has no input 'x'" in capsys.readouterr().err


def test_our_files_without_ours(bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the public files of a bundle of ours are left: it still runs, on tensors as the files see them."""
    for name in ("program.mlir", "manifest.json", "weights.safetensors", "data.safetensors"):
        (bundle / name).unlink()
    assert run_tool.run([str(bundle), "--probe", "list"]) == 0
    out = capsys.readouterr().out
    assert "sdsc_0.Tensor0: " in out
    assert "at argument 0, random" in out

"""Models that come back from the directories they were saved to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import InputError, ReadError
from spyre_mlir.loaded import LoadedModel

X = torch.arange(192.0).reshape(3, 64) / 192


class Counting(nn.Module):
    """A weight, a buffer that calls write to, nested arguments and results."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 64)
        self.register_buffer("calls", torch.zeros(3))

    def forward(self, pair: tuple[torch.Tensor, torch.Tensor], scale: int, *, bias: torch.Tensor | None = None) -> Any:
        self.calls += 1
        return {"sum": self.linear(pair[0] + pair[1]) * scale, "rest": (self.calls * 1, bias)}


@pytest.fixture(scope="module")
def compiled() -> CompiledModel:
    torch.manual_seed(0)
    made = spyre_mlir.compile(Counting().eval(), ((X, X), 2))
    assert isinstance(made, CompiledModel)
    return made


@pytest.fixture(scope="module")
def directory(compiled: CompiledModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Saved before any call, with its levels, and with weights as the device has them."""
    return compiled.save(tmp_path_factory.mktemp("saved") / "bundle", host_weights=False, levels=True)


@pytest.fixture
def loaded(directory: Path) -> LoadedModel:
    made = spyre_mlir.load(directory)
    assert isinstance(made, LoadedModel)
    return made


def test_calls_and_results_are_those_of_the_model(directory: Path) -> None:
    before = (directory / "data.safetensors").read_bytes()
    torch.manual_seed(0)
    fresh = spyre_mlir.compile(Counting().eval(), ((X, X), 2))
    again = spyre_mlir.load(str(directory))
    for count in (1, 2):  # what a call writes to a buffer, the next one reads
        wanted, got = fresh((X, X), 2), again((X, X), 2)
        assert got.keys() == {"sum", "rest"}
        assert torch.equal(got["sum"], wanted["sum"]) and got["sum"].dtype is torch.float32
        assert got["rest"][0].tolist() == wanted["rest"][0].tolist() == [count] * 3
        assert got["rest"][1] is None
    assert (directory / "data.safetensors").read_bytes() == before


def test_arguments_are_checked(loaded: LoadedModel) -> None:
    with pytest.raises(InputError, match="positional arguments"):
        loaded((X, X))
    with pytest.raises(InputError, match=r"expected float32\[3, 64\]"):
        loaded((X, X[:2]), 2)
    with pytest.raises(InputError, match="made for 2"):
        loaded((X, X), 3)


def test_what_the_directory_says(loaded: LoadedModel, compiled: CompiledModel, directory: Path) -> None:
    assert (loaded.name, loaded.kernels) == ("Counting", compiled.kernels)
    assert loaded.mlir("spyre.kernel") == compiled.mlir("spyre.kernel")
    assert loaded.ktir() == compiled.ktir()
    assert loaded.timeline().total_us == compiled.timeline().total_us
    assert loaded.bundle_directory() == directory
    text = str(loaded.report())
    assert "predicted time, calibrated profile" in text and "HBM bytes" not in text


def test_without_levels_there_are_no_texts(compiled: CompiledModel, tmp_path: Path) -> None:
    small = spyre_mlir.load(compiled.save(tmp_path / "b"))
    with pytest.raises(InputError, match=r"the directory has no level aten\n.*levels=True"):
        small.mlir("aten")


def test_exact_numerics_need_the_weights_of_the_model(compiled: CompiledModel, directory: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no values for linear\.weight.*\n.*host_weights=True"):
        spyre_mlir.load(directory, numerics="exact")((X, X), 2)
    exact = spyre_mlir.load(compiled.save(tmp_path / "wide", host_weights=True), numerics="exact")
    weight, bias = compiled._program.values["linear.weight"], compiled._program.values["linear.bias"]
    torch.testing.assert_close(exact((X, X), 2)["sum"], nn.functional.linear(X + X, weight, bias) * 2)


def test_options_are_those_of_calls(directory: Path) -> None:
    for name, value in (("regions", False), ("cache", False), ("progress", True)):
        with pytest.raises(InputError, match=rf"load takes no {name}: the program is compiled\n.*numerics, on_fault"):
            spyre_mlir.load(directory, **{name: value})
    with pytest.raises(InputError, match="load has no option numeric"):
        spyre_mlir.load(directory, numeric="exact")


def test_a_copy_is_saved(loaded: LoadedModel, directory: Path, tmp_path: Path) -> None:
    loaded.save(tmp_path / "copy")
    names = sorted(str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file())
    assert names == sorted(str(p.relative_to(tmp_path / "copy")) for p in (tmp_path / "copy").rglob("*") if p.is_file())
    assert all((tmp_path / "copy" / n).read_bytes() == (directory / n).read_bytes() for n in names)
    with pytest.raises(InputError, match="saved as it was"):
        loaded.save(tmp_path / "other", levels=True)


def test_another_bundle_in_its_place_is_not_mixed_with_it(tmp_path: Path) -> None:
    models = [nn.Linear(64, 64, bias=False) for _ in range(2)]
    first, second = (spyre_mlir.compile(model, (X,)) for model in models)
    early, late = spyre_mlir.load(first.save(tmp_path / "bundle")), spyre_mlir.load(tmp_path / "bundle")
    wanted = early(X)
    second.save(tmp_path / "bundle")
    assert torch.equal(early(X), wanted)
    with pytest.raises(ReadError, match="another bundle has been written in the place"):
        late(X)
    assert torch.equal(spyre_mlir.load(tmp_path / "bundle")(X), second(X))


def test_a_copy_of_what_has_gone_is_refused(compiled: CompiledModel, tmp_path: Path) -> None:
    loaded = spyre_mlir.load(compiled.save(tmp_path / "bundle"))
    (tmp_path / "bundle").rename(tmp_path / "moved")
    with pytest.raises(InputError, match=r"no longer there\n  at: .*bundle"):
        loaded.save(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_what_needs_the_model_is_refused(loaded: LoadedModel) -> None:
    with pytest.raises(InputError, match="no torch model to compare with"):
        loaded.verify((X, X), 2)
    with pytest.raises(InputError, match="keeps its weights"):
        loaded.bind({})


def test_a_damaged_directory_is_refused(compiled: CompiledModel, tmp_path: Path) -> None:
    directory = compiled.save(tmp_path / "b")
    with (directory / "weights.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        last = file.read(1)
        file.seek(-1, 2)
        file.write(bytes([last[0] ^ 1]))
    with pytest.raises(InputError, match=r"the bundle breaks 1 rule, so its results could be wrong"):
        spyre_mlir.load(directory)
    assert isinstance(spyre_mlir.load(directory, check=False), LoadedModel)


def test_what_is_no_directory_of_ours(compiled: CompiledModel, tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="no such bundle directory"):
        spyre_mlir.load(tmp_path / "none")
    directory = compiled.save(tmp_path / "b")
    (directory / "program.mlir").unlink()
    manifest = json.loads((directory / "manifest.json").read_text())
    del manifest["digests"]["program.mlir"]
    (directory / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"the bundle has no program\.mlir"):
        spyre_mlir.load(directory, check=False)


class Pair(NamedTuple):
    """Of a class that torch writes no tree of."""

    first: torch.Tensor
    second: torch.Tensor


class Paired(nn.Module):
    def forward(self, x: torch.Tensor) -> Pair:
        return Pair(x + 1, x * 2)


def test_outputs_of_classes_that_cannot_be_read_back_are_tuples(tmp_path: Path) -> None:
    made = spyre_mlir.compile(Paired(), (X,))
    assert isinstance(made, CompiledModel)
    first, second = spyre_mlir.load(made.save(tmp_path / "b"))(X)
    assert first.shape == second.shape == (3, 64)


class Layer(nn.Module):
    """Long enough to become a function where it is repeated."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.linear(x)
        for _ in range(12):
            x = torch.tanh(x) + x
        return x


def test_layers_that_are_functions_run_with_their_own_weights_and_have_ktir(tmp_path: Path) -> None:
    torch.manual_seed(0)
    made = spyre_mlir.compile(nn.Sequential(*[Layer() for _ in range(3)]).eval(), (X,))
    assert isinstance(made, CompiledModel)
    assert made.mlir("aten").count("func.func") == 2
    loaded = spyre_mlir.load(made.save(tmp_path / "b", levels=True))
    assert torch.equal(loaded(X), made(X))
    assert loaded.ktir() == made.ktir()

"""Pickles of compiled models: the same results in another process, without the model of torch."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.pickling import files_of, write_files

X = torch.linspace(-1, 1, 4 * 16).reshape(4, 16)


def layer() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 16), nn.ReLU()).eval()


class Counting(nn.Module):
    """Adds to a buffer at every call."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(1)
        return x + self.count


@pytest.fixture(scope="module")
def compiled() -> Any:
    return spyre_mlir.compile(layer(), (X,))


def test_a_pickle_gives_the_same_bits_and_the_same_text(compiled: Any) -> None:
    again = pickle.loads(pickle.dumps(compiled))
    assert torch.equal(again(X), compiled(X))
    assert again.kernels == compiled.kernels
    for level in ("aten", "spyre.loop", "spyre.kernel", "superdsc"):
        assert again.mlir(level) == compiled.mlir(level)
    twice = pickle.loads(pickle.dumps(again))
    assert torch.equal(twice(X), compiled(X))


def test_another_process_reads_it(compiled: Any, python: list[str], tmp_path: Path) -> None:
    torch.save(X, tmp_path / "x.pt")
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(compiled))
    code = (
        "import pickle, torch; model = pickle.load(open('model.pickle', 'rb')); "
        "torch.save(model(torch.load('x.pt')), 'y.pt'); print(type(model).__name__)"
    )
    done = subprocess.run([*python, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "LoadedModel\n"
    assert torch.equal(torch.load(tmp_path / "y.pt"), compiled(X))


def test_options_of_calls_come_along() -> None:
    model = layer()
    exact = spyre_mlir.compile(model, (X,), numerics="exact")
    with torch.no_grad():
        wanted = model(X)
    assert torch.allclose(pickle.loads(pickle.dumps(exact))(X), wanted, atol=1e-6)


def test_the_present_values_of_buffers_come_along() -> None:
    x = torch.zeros(64)
    compiled = spyre_mlir.compile(Counting(), (x,))
    compiled(x)
    again = pickle.loads(pickle.dumps(compiled))
    assert again(x).tolist() == [2.0] * 64
    assert again(x).tolist() == [3.0] * 64
    assert compiled(x).tolist() == [2.0] * 64


@pytest.mark.usefixtures("only_new_garbage")
def test_its_files_go_with_it(compiled: Any) -> None:
    again = pickle.loads(pickle.dumps(compiled))
    folder = again.bundle_directory()
    assert folder.exists()
    del again
    gc.collect()
    assert not folder.exists()


def test_copies_stay_what_they_are(compiled: Any) -> None:
    shallow = copy.copy(compiled)
    assert type(shallow) is type(compiled)
    assert torch.equal(shallow(X), compiled(X))
    assert torch.equal(copy.deepcopy(compiled)(X), compiled(X))


def test_a_model_compiled_at_its_first_call_is_pickled_with_its_model() -> None:
    lazy = spyre_mlir.compile(layer())
    lazy(X)
    again = pickle.loads(pickle.dumps(lazy))
    assert (len(lazy.programs), len(again.programs)) == (1, 0)
    assert torch.equal(again(X), lazy(X))
    assert copy.copy(lazy).programs == lazy.programs


def test_a_model_with_symbols_is_pickled_as_it_is_saved() -> None:
    model = layer()
    dynamic = spyre_mlir.compile(model, (X,), dynamic_shapes=({0: torch.export.Dim("rows", max=64)},), numerics="exact")
    again = pickle.loads(pickle.dumps(dynamic))
    assert torch.equal(again(X[:3]), dynamic(X[:3]))
    assert copy.copy(dynamic).name == again.name


def test_files_of_a_directory(tmp_path: Path) -> None:
    files = {"a.txt": b"1", "levels/b.txt": b"\x00\xff"}
    write_files(files, tmp_path)
    assert (tmp_path / "levels/b.txt").read_bytes() == b"\x00\xff"
    assert files_of(tmp_path) == files

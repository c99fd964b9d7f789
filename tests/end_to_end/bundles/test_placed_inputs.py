"""Bundles take inputs as torch-spyre places them on the card, and leave results like that: the oracle places both."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 # as PyTorch's own pages call it

import spyre_mlir
from spyre_mlir.backend.stored import read_bundle
from spyre_mlir.choices import InputLayouts
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.machine.bundle.run import run_bundle
from spyre_mlir.machine.memory.exact import ExactMemory
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel
from tests.oracles.placed_tensor import LANES, device_layout, placed, read_back

FORMAT = "SEN169_FP16"
APART = 1 << 32  # between arguments
BEHIND = 7.0  # in padding, which nothing may take for a part of a tensor


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape) + sum(shape)))


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.softmax(q @ k.mT, -1) @ v


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "softmax of columns": (lambda x: F.softmax(x, 0), ((67, 130),)),
    "softmax of rows": (lambda x: F.softmax(x, -1), ((67, 130),)),
    "transposed": (lambda x: x.t() * x.t(), ((70, 130),)),
    "sum of columns": (lambda x: (x * x).sum(0), ((70, 130),)),
    "product": (lambda a, b: a @ b, ((70, 130), (130, 90))),
    "product with a transposed operand": (lambda a, b: a @ b.t(), ((70, 128), (90, 128))),
    "batches": (lambda a, b: a @ b, ((3, 70, 65), (3, 65, 66))),
    "attention": (attention, ((1, 2, 70, 64), (1, 2, 90, 64), (1, 2, 90, 64))),
    "a column": (lambda x, c: x * c, ((70, 130), (70, 1))),
    "permuted": (lambda x: x.permute(2, 0, 1).contiguous(), ((3, 20, 70),)),
    "part": (lambda x: x[:, 1:, 5:69] * 2.5, ((3, 20, 70),)),
    "two results": (lambda x: (x.t().contiguous(), x.sum(-1)), ((65, 70),)),
    "a convolution": (lambda x, w: F.conv2d(x, w, padding=1), ((1, 5, 9, 11), (4, 5, 3, 3))),
}


def results_of(compiled: CompiledModel, directory: Path, args: tuple[Tensor, ...]) -> list[Any]:
    """Run the files of a bundle on tensors that the oracle has placed, and read the results back."""
    stored = read_bundle(compiled.save(directory), make_context())
    said = json.loads((directory / "manifest.json").read_text())["arguments"]
    memory, names = ExactMemory(), {f"args_{number}": arg for number, arg in enumerate(args)}
    results = list[int]()
    for number, entry in enumerate(said):
        memory.add_region(f"argument {number}", (number + 1) * APART, entry["bytes"])
        if entry["holds"] == "result":
            results.append(number)
            continue
        sticks = constant(entry) if "constant" in entry["holds"] else placed(names[entry["holds"]].numpy(), BEHIND)
        assert sticks.size * 2 == entry["bytes"]
        memory.store(places(number, sticks.size), sticks.reshape(-1), FORMAT)
    run_bundle(stored.bundle, memory, [(n + 1) * APART for n in range(len(said))], stored.descriptor)
    found: list[Any] = []
    for number in sorted(results, key=lambda n: said[n]["returned"]):
        held, written = memory.load(places(number, said[number]["bytes"] // 2), FORMAT)
        shape = json.loads(re.match(r"\[[^]]*\]", said[number]["layout"])[0])  # pyright: ignore[reportOptionalSubscript]
        assert (said[number]["device_size"], said[number]["stride_map"]) == device_layout(shape)
        found.append(read_back(np.where(written, held, np.nan).reshape(-1, LANES), shape))
    return found


def places(argument: int, count: int) -> Any:
    """Addresses of the elements of an argument."""
    return (argument + 1) * APART + 2 * np.arange(count)


def constant(entry: dict[str, Any]) -> Any:
    """A number everywhere, or ones in the first lanes of a stick."""
    text = entry["holds"].removeprefix("constant ")
    sticks = np.zeros((entry["bytes"] // 2 // LANES, LANES))
    if ones := re.search(r"first_ones<(\d+)", text):
        sticks[:, : int(ones[1])] = 1
    else:
        sticks[:] = float(text.split(" ")[0])
    return sticks


def compiled(name: str, inputs: InputLayouts) -> tuple[CompiledModel, tuple[Tensor, ...]]:
    function, shapes = FUNCTIONS[name]
    args = tuple(numbers(*shape) for shape in shapes)
    return spyre_mlir.compile(FunctionModel(function), args, inputs=inputs, cache=False), args


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_bundle_reads_inputs_as_they_are_placed(name: str, tmp_path: Path) -> None:
    made, args = compiled(name, "default")
    wanted = FUNCTIONS[name][0](*args)
    for found, tensor in zip(
        results_of(made, tmp_path / "bundle", args), wanted if isinstance(wanted, tuple) else [wanted], strict=True
    ):
        np.testing.assert_allclose(found, tensor.numpy(), rtol=1e-4, atol=1e-4)
    assert made.report().layouts == ()


def test_with_free_layouts_another_one_is_wanted_and_said(tmp_path: Path) -> None:
    made, args = compiled("softmax of columns", "free")
    with pytest.raises(AssertionError):
        results_of(made, tmp_path / "bundle", args)
    said = {e["holds"]: e for e in json.loads((tmp_path / "bundle/manifest.json").read_text())["arguments"]}
    assert not said["args_0"]["default"]
    assert said["args_0"]["device_size"] == [2, 130, 64]
    assert said["args_0"]["stride_map"] == [64 * 130, 1, 130]
    (line, *_) = made.report().layouts
    assert line == "args_0: SEN169_FP16, device_size [2, 130, 64], stride_map [8320, 1, 130]"
    assert line in str(made.report())


class Weighted(nn.Module):
    """A product with a weight that is read in another order than it has."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(numbers(90, 130))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight.t()


def test_weights_stay_free() -> None:
    made = spyre_mlir.compile(Weighted(), (numbers(70, 130),), inputs="default", cache=False)
    assert [op for op in made.mlir("spyre.kernel").split() if op == "spyre.kernel.restickify"] == []
    assert made.report().layouts == ()

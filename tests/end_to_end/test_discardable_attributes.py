"""Discardable attributes: a closed list, and programs without any compile to the same files and results."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

import spyre_mlir
from spyre_mlir.backend.split import public_parts, split_module
from spyre_mlir.backend.write import write_json
from spyre_mlir.debug.stored_runs import run_on_host
from spyre_mlir.dialects.superdsc.codec.describe import describe
from spyre_mlir.dialects.tensors import as_tensor_type
from spyre_mlir.machine.bundle.host_program import DeviceProgram, run_program
from spyre_mlir.options import PassOptions
from spyre_mlir.pipeline import LEVELS, Lowered, lower
from spyre_mlir.text.render import module_text, parse_module
from spyre_mlir.universe import make_context

# By the op that bears them; docs/decisions/0117-properties-and-notes.md gives the reasons.
ALLOWED = {
    "builtin.module": {
        "aten.input_leaves",
        "aten.output_leaves",
        "aten.input_tree",
        "aten.output_tree",
        "spyre.target",
    },
    "superdsc.sdsc": {"labels"},
}
CONCRETE: PassOptions = {
    "choose-layouts": {"repair": False},  # layouts that trials find are nowhere but in attributes
    "convert-spyre-kernel-to-superdsc": {"addresses": "concrete"},
}
KEPT: PassOptions = {"convert-spyre-loop-to-spyre-kernel": {"keep_float32": True}}


class Attention(nn.Module):
    """Rows of a table, by indices that may be negative, and a softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(9, 64))

    def forward(self, x: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x @ self.table[ids].T, -1)


class Turned(nn.Module):
    """A softmax that is laid out again, in the pool."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1).T * 2


class Whole(nn.Module):
    """Whole numbers, a function with constants, and an operator that only the host has."""

    def forward(self, x: torch.Tensor, n: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        smooth = nn.functional.softplus(torch.special.bessel_j1(x), beta=2.0)
        return torch.log(smooth), (n + n).sum(-1)


MODELS: dict[str, tuple[type[nn.Module], tuple[torch.Tensor, ...], PassOptions]] = {
    "attention": (Attention, (torch.linspace(-1, 1, 128).reshape(2, 64), torch.tensor([0, -1, 3, 8])), {}),
    "concrete": (Turned, (torch.linspace(-3, 3, 7 * 65).reshape(7, 65),), CONCRETE),
    "whole": (Whole, (torch.linspace(1, 2, 128).reshape(2, 64), torch.arange(128).reshape(2, 64)), KEPT),
}


class Drops:
    """Drops every discardable attribute behind every pass."""

    def before(self, name: str, module: ModuleOp) -> None:
        pass

    def after(self, name: str, module: ModuleOp) -> None:
        dropped(module)


def dropped(module: ModuleOp) -> ModuleOp:
    for op in module.walk():
        op.attributes.clear()
    return module


@cache
def imported(name: str) -> str:
    """The text of a model at the aten level."""
    kind, inputs, _ = MODELS[name]
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return spyre_mlir.compile(kind(), inputs).mlir("aten")


def read(name: str) -> ModuleOp:
    return parse_module(imported(name), make_context(), locations=False)


def files(module: ModuleOp) -> dict[str, str]:
    """The public files of a program."""
    _, bundle, sdscs = split_module(module)
    return {file: write_json(op) for file, op in sdscs.items()} | {
        f"{folder}/bundle.mlir": module_text(part) for folder, part in public_parts(bundle).items()
    }


def results(module: ModuleOp) -> list[list[float]]:
    """What a program computes from numbers made up for its arguments."""
    host, bundle, sdscs = split_module(module)
    main = next(op for op in host.ops if isinstance(op, FuncOp))
    rng, given = np.random.default_rng(0), list[np.ndarray]()
    for kind in main.function_type.inputs:
        tensor = as_tensor_type(kind)
        assert tensor is not None
        whole = str(tensor.get_element_type()) == "i64"
        shape = tensor.get_shape()
        given.append(rng.integers(-9, 9, shape) if whole else rng.uniform(0.5, 1, shape).astype(np.float32))
    program = DeviceProgram(host, bundle, lambda file: describe(sdscs[file]), executor=run_on_host)
    return [result.ravel().tolist() for result in run_program(program, given)]


@cache
def lowered(name: str) -> Lowered:
    return lower(read(name), make_context(), options=MODELS[name][2])


@pytest.mark.parametrize("name", MODELS)
def test_only_notes_are_discardable(name: str) -> None:
    for level in LEVELS:
        for op in lowered(name).modules[level].walk():
            assert op.attributes.keys() <= ALLOWED.get(op.name, set()), f"{op.name} at the level {level}"


def test_the_models_have_the_facts_that_are_properties() -> None:
    """Else the other tests would hold nothing."""
    texts = {name: "".join(map(module_text, lowered(name).modules.values())) for name in MODELS}
    for name, words in {
        "attention": (" wide", " from_end", " element f32", " zero_padding", " elements {", "{dim = "),
        "concrete": (" segment 1", " pool_bytes "),
        "whole": (" op_info {", " integers", " integer_kernels [", " narrowed", ' because "', "{self = "),
    }.items():
        assert [word for word in words if word not in texts[name]] == [], name


@pytest.mark.parametrize("name", MODELS)
def test_a_program_without_discardable_attributes_is_the_same(name: str) -> None:
    whole = lowered(name).modules[LEVELS[-1]]
    bare = lower(dropped(read(name)), make_context(), options=MODELS[name][2], watch=Drops()).modules[LEVELS[-1]]
    assert module_text(bare) == module_text(dropped(whole.clone()))
    assert files(bare) == files(whole)
    assert results(bare) == results(whole)

"""The package as somebody explores it: names, help, version, and objects in a notebook."""

from __future__ import annotations

import pydoc
from importlib.metadata import version

import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.errors import InputError


@pytest.fixture(scope="module")
def compiled() -> spyre_mlir.CompiledModel:
    made = spyre_mlir.compile(nn.Linear(4, 3), (torch.ones(2, 4),))
    assert isinstance(made, spyre_mlir.CompiledModel)
    return made


def test_completion_and_help_show_public_names() -> None:
    assert {name for name in dir(spyre_mlir) if not name.startswith("_")} == set(spyre_mlir.__all__)
    text = pydoc.plain(pydoc.render_doc(spyre_mlir))
    assert all(f"    {name}(" in text for name in ("check", "compile", "info", "load"))
    assert spyre_mlir.__version__ == version("spyre-mlir")
    with pytest.raises(AttributeError, match="no attribute 'compil'"):
        _ = spyre_mlir.compil


def test_a_compiled_model_says_what_it_is(compiled: spyre_mlir.CompiledModel) -> None:
    assert repr(compiled) == f"<CompiledModel Linear: {compiled.kernels} kernels, (input 2x4) -> (output)>"


def test_a_model_with_symbols_says_them() -> None:
    shapes = ({0: torch.export.Dim("rows", min=2, max=9)},)
    dynamic = spyre_mlir.compile(nn.Linear(4, 3).eval(), (torch.ones(5, 4),), dynamic_shapes=shapes)
    assert repr(dynamic) == "<DynamicModel Linear: s0 2 to 9; 0 programs>"


def test_a_lazy_model_has_what_its_program_has() -> None:
    lazy = spyre_mlir.compile(nn.Linear(4, 3))
    assert isinstance(lazy, spyre_mlir.LazyModel)
    assert repr(lazy) == "<LazyModel Linear: 0 programs>"
    assert {"report", "save", "trace", "mlir", "verify"} <= set(dir(lazy))
    with pytest.raises(InputError, match="report is of one program, and the model has 0\n  try: call the model first"):
        lazy.report()
    lazy(torch.ones(2, 4))
    assert "tensor<2x4xf32>" in lazy.mlir("aten")
    assert list(lazy.log.lines()) == []
    assert not hasattr(lazy, "eval")
    lazy(torch.ones(3, 4))
    with pytest.raises(InputError, match="the model has 2\n  try: take one of `programs`"):
        lazy.report()


@pytest.mark.parametrize("name", ["eval", "train", "parameters", "state_dict", "to"])
def test_attributes_of_modules_say_what_takes_their_place(name: str, compiled: spyre_mlir.CompiledModel) -> None:
    shapes = ({0: torch.export.Dim("rows", min=2, max=9)},)
    dynamic = spyre_mlir.compile(nn.Linear(4, 3).eval(), (torch.ones(5, 4),), dynamic_shapes=shapes)
    for model in (compiled, spyre_mlir.compile(nn.Linear(4, 3)), dynamic):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'; it is no torch.nn.Module: .*the model"):
            getattr(model, name)
        with pytest.raises(AttributeError, match=r"has no attribute 'reprot'$"):
            getattr(model, "reprot")  # noqa: B009 - a type checker knows that there is none


def test_notebooks_show_what_is_printed(compiled: spyre_mlir.CompiledModel) -> None:
    x = torch.ones(2, 4)
    for shown in (
        compiled,
        compiled.report(),
        compiled.verify(x),
        compiled.accuracy(x),
        spyre_mlir.info(nn.ReLU(), (x,)),
    ):
        html = shown._repr_html_()
        assert html.startswith("<pre ")
        assert str(shown).splitlines()[-1].replace("<", "&lt;").replace(">", "&gt;") in html

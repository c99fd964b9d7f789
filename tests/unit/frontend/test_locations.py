"""Places of nodes and errors in the user's model, read from tracebacks and module stacks written by hand."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.fx import Graph, Node
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, NameLoc, StringAttr, UnknownLoc

import spyre_mlir
from spyre_mlir.frontend.locations import (
    location_of,
    module_path,
    place_in,
    place_of,
    raised_at,
    raised_by_torch,
    source_of,
)

TORCH = f"{Path(torch.__file__).parent}/nn/functional.py"
OURS = f"{Path(spyre_mlir.__file__).parent}/api.py"
PYTHON = f"{Path(traceback.__file__).parent}/functools.py"
INSTALLED = f"{Path(traceback.__file__).parent}/site-packages/transformers/llama.py"


def stack(*frames: tuple[str, int]) -> str:
    return "".join(f'  File "{file}", line {line}, in forward\n    y = x + 1\n' for file, line in frames)


def node(trace: object = None, modules: dict[str, tuple[str, object]] | None = None) -> Node:
    made = Graph().placeholder("x")
    made.meta |= {"stack_trace": trace, "nn_module_stack": modules}
    return made


@pytest.mark.parametrize(
    ("frames", "place"),
    [
        ([("/home/me/model.py", 3), ("/home/me/layers.py", 12)], "/home/me/layers.py:12"),
        ([("/home/me/model.py", 3), (TORCH, 7)], "/home/me/model.py:3"),
        ([("/home/me/model.py", 3), (PYTHON, 7)], "/home/me/model.py:3"),
        ([("/home/me/model.py", 3), ("<eval_with_key>.1", 7)], "/home/me/model.py:3"),
        ([("/home/me/model.py", 3), (OURS, 7)], "/home/me/model.py:3"),
        ([("/home/me/model.py", 3), (INSTALLED, 7)], f"{INSTALLED}:7"),
        ([(TORCH, 5), (TORCH, 7), (OURS, 9)], f"{TORCH}:7"),
        ([(OURS, 9)], None),
        ([], None),
    ],
)
def test_the_place_is_the_innermost_line_of_the_model(frames: list[tuple[str, int]], place: str | None) -> None:
    assert place_in(f"Traceback (most recent call last):\n{stack(*frames)}") == place


def test_a_node_without_a_trace_has_no_source() -> None:
    assert source_of(node()) is None
    assert source_of(node(17)) is None
    assert source_of(node(stack(("/home/me/model.py", 3)))) == ("/home/me/model.py", 3)


@pytest.mark.parametrize(
    ("modules", "path"),
    [
        (None, ""),
        ({}, ""),
        ({"a": ("", object)}, ""),
        ({"a": ("", object), "b": ("layers.0.mlp", object)}, "layers.0.mlp"),
        ({"a": ("L['self']", object)}, ""),
        ({"a": ("L['self'].layers[0].mlp", object)}, "layers.0.mlp"),
        ({"a": ("L['model'].layers[0].mlp", object)}, "model.layers.0.mlp"),
        ({"a": ("G['model'].layers.0.mlp", object)}, "model.layers.0.mlp"),
        ({"a": ("L['self'].blocks['first']", object)}, "blocks.first"),
        ({"a": ("L['self'].blocks[\"first\"]", object)}, "blocks.first"),
    ],
)
def test_the_module_path_is_that_of_the_innermost_module(modules: Any, path: str) -> None:
    assert module_path(node(modules=modules)) == path


INNER = {"a": ("", object), "b": ("layers.0", object)}


def test_a_location_is_file_and_line_named_with_the_module() -> None:
    line = FileLineColLoc(StringAttr("/home/me/model.py"), IntAttr(12), IntAttr(0))
    trace = stack(("/home/me/model.py", 12))
    assert location_of(node(trace)) == line
    assert location_of(node(trace, INNER)) == NameLoc(StringAttr("layers.0"), line)
    assert location_of(node()) == UnknownLoc()
    assert location_of(node(modules=INNER)) == NameLoc(StringAttr("layers.0"), UnknownLoc())


def test_a_message_names_the_line_or_else_the_node() -> None:
    trace = stack(("/home/me/model.py", 12))
    assert place_of(node(trace)) == "/home/me/model.py:12"
    assert place_of(node(trace, INNER)) == "/home/me/model.py:12 (layers.0)"
    assert place_of(node(modules=INNER)) == "node 'x' (layers.0)"


def raised(function: Callable[[], object]) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - any error will do
        function()
    return caught.value


def _calls_torch() -> object:
    return torch.nn.functional.interpolate(torch.ones(1, 1, 2), size=(1,), scale_factor=(2.0,))


def _calls_the_operator() -> object:
    return torch.ones(3) + torch.ones(4)


def test_an_error_of_torch_has_the_innermost_line_of_the_model_that_led_to_it() -> None:
    error = raised(lambda: [_calls_torch()])
    assert raised_at(error) == f"{__file__}:{_calls_torch.__code__.co_firstlineno + 1}"
    assert raised_by_torch(error)


def test_an_error_of_the_model_itself_is_not_torchs() -> None:
    assert not raised_by_torch(raised(_calls_the_operator)), "its innermost frame is the model's"


def test_an_error_of_ours_is_not_torchs() -> None:
    error = raised(lambda: spyre_mlir.compile(3, ()))  # type: ignore[arg-type]
    assert not raised_by_torch(error)


def test_an_error_that_nobody_raised_has_no_line() -> None:
    assert raised_at(ValueError("never raised")) is None
    assert not raised_by_torch(ValueError("never raised"))

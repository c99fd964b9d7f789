"""Usual structures of calls have a word in the text, others are written as Python's values; all of it reads back."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._pytree import TreeSpec, tree_flatten, treespec_dumps

import spyre_mlir
from spyre_mlir.frontend.program.plain_trees import text_of_tree, tree_of_text, tree_of_word, word_of_tree

Point = namedtuple("Point", ["x", "y"])


@dataclass
class Found:
    boxes: Any
    scores: Any = None


torch.export.register_dataclass(Found, serialized_type_name="shop.Found")


@dataclass
class Unnamed:
    a: Any
    b: Any = None


torch.export.register_dataclass(Unnamed)


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (((1,), {}), "positional"),
        (((1, 2, 3), {}), "positional"),
        (((), {}), "positional"),
        (1, "single"),
        (((1,), {"k": 2}), None),
        ((((1, 2),), {}), None),
        (([1], {}), None),
        ((1, 2), None),
    ],
)
def test_the_word_of_a_structure(value: Any, word: str | None) -> None:
    tree = tree_flatten(value)[1]
    assert word_of_tree(tree) == word
    if word is not None:
        assert tree_of_word(word, tree.num_leaves) == tree


def test_another_text_is_no_word() -> None:
    assert tree_of_word("[1]", 1) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"logits": 1, "past": [(2, 3), (4, 5)]}, "{'logits': _, 'past': [(_, _), (_, _)]}"),
        ((((1, 2),), {"k": 3}), "(((_, _),), {'k': _})"),
        ((1,), "(_,)"),
        ([[], (), {}], "[[], (), {}]"),
        ({3: 1, "it's": 2}, """{3: _, "it's": _}"""),
        (OrderedDict(a=1, b=(2,)), "collections.OrderedDict(a=_, b=(_,))"),
        (Found(1, [2]), "shop.Found(_, [_], context=[['boxes', 'scores'], []])"),
        (Found(1), "shop.Found(_, context=[['boxes'], ['scores']])"),
        ({"context": 1, "_": 2}, "{'context': _, '_': _}"),
        (OrderedDict(context=1), "collections.OrderedDict(_, context=['context'])"),
    ],
)
def test_other_structures_are_written_as_python_writes_values(value: Any, text: str) -> None:
    tree = tree_flatten(value)[1]
    assert text_of_tree(tree) == text
    assert tree_of_text(text, tree.num_leaves) == tree


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Point(1, [Point(2, 3)]), "HERE.Point(x=_, y=[HERE.Point(x=_, y=_)])"),
        ((1, torch.ones(2).sort()), "(_, torch.return_types.sort(values=_, indices=_))"),
        ({"k": Unnamed(1)}, "{'k': HERE.Unnamed(_, context=[['a'], ['b']])}"),
    ],
)
def test_classes_are_found_where_they_are_loaded(value: Any, text: str) -> None:
    tree, spelled = tree_flatten(value)[1], text.replace("HERE", __name__)
    assert text_of_tree(tree) == spelled
    read = tree_of_text(spelled, tree.num_leaves)
    assert read == tree
    assert isinstance(read, TreeSpec)
    assert type(read.unflatten([1] * tree.num_leaves)) is type(value)


def test_a_class_that_is_nowhere_is_what_the_reader_makes_of_it() -> None:
    local = namedtuple("local", ["x", "y"])
    text = text_of_tree(tree_flatten([1, local(2, (3,))])[1])
    assert text is not None
    assert tree_of_text(text, 3) is None
    found = tree_of_text(text, 3, lambda parts: TreeSpec(tuple, None, parts))
    assert found == tree_flatten([1, (2, (3,))])[1]


def test_results_of_transformers_are_calls_of_their_class() -> None:
    outputs = pytest.importorskip("transformers.modeling_outputs")
    tree = tree_flatten(outputs.CausalLMOutput(logits=torch.ones(1), hidden_states=(torch.ones(1),)))[1]
    text = "transformers.modeling_outputs.CausalLMOutput(logits=_, hidden_states=(_,))"
    assert text_of_tree(tree) == text
    assert tree_of_text(text, 2) == tree


def test_what_python_cannot_spell_is_written_as_torch_does() -> None:
    tree = tree_flatten(OrderedDict({"class": 1}))[1]
    assert text_of_tree(tree) == treespec_dumps(tree)
    assert tree_of_text(treespec_dumps(tree), 1) == tree


def test_texts_of_torch_are_read_too() -> None:
    tree = tree_flatten({"a": [1, 2]})[1]
    assert tree_of_text(treespec_dumps(tree), 2) == tree


@pytest.mark.parametrize(
    "text", ["", "{_: _}", "_ + _", "f(**_)", "unknown.Class(a=_)", "[1]", "import os", "f(_, context=g())"]
)
def test_a_text_that_stands_for_no_structure(text: str) -> None:
    assert tree_of_text(text, 1) is None


def test_the_first_line_of_a_usual_program_is_short() -> None:
    first = spyre_mlir.compile(torch.nn.ReLU(), (torch.ones(2, 3),)).mlir("aten").splitlines()[0]
    assert 'aten.input_tree = "positional", aten.output_tree = "single"' in first
    assert len(first) < 200


def test_dictionaries_with_a_default_read_back() -> None:
    tree = tree_flatten(defaultdict(list, a=1, b=(2, 3)))[1]
    text = text_of_tree(tree)
    assert text is not None and tree_of_text(text, 3) == tree


def test_a_model_takes_and_returns_a_dictionary_with_a_default(tmp_path: Path) -> None:
    class Counted(torch.nn.Module):
        def forward(self, given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
            return defaultdict(list, doubled=given["x"] * 2)

    x = torch.arange(4.0)
    compiled = spyre_mlir.compile(Counted(), (defaultdict(list, x=x),), numerics="exact")
    for call in (compiled, spyre_mlir.load(compiled.save(tmp_path / "bundle"), numerics="exact")):
        found = call(defaultdict(list, x=x))
        assert type(found) is defaultdict and found["other"] == [] and torch.equal(found["doubled"], x * 2)

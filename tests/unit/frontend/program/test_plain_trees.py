"""Usual structures of calls have a word in the text, which reads back; all others are spelled as torch does."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_flatten

import spyre_mlir
from spyre_mlir.frontend.program.plain_trees import tree_of_word, word_of_tree


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


def test_the_first_line_of_a_usual_program_is_short() -> None:
    first = spyre_mlir.compile(torch.nn.ReLU(), (torch.ones(2, 3),)).mlir("aten").splitlines()[0]
    assert 'aten.input_tree = "positional", aten.output_tree = "single"' in first
    assert len(first) < 200

"""Classes of torch's trees: what we rely on does the same in the version at hand."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree

from spyre_mlir.frontend.program.tree_classes import (
    is_tree_node,
    names_of_parts,
    parts_of_tree,
    register_dataclass,
    tree_of_named,
    unregister_dataclass,
)
from spyre_mlir.frontend.torch_private import tree_flatten


@dataclass
class Pair:
    left: Any
    right: Any = None


@dataclass
class Other:
    value: Any


def test_torch_sees_into_a_dataclass_while_it_is_registered() -> None:
    names = _pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE
    before = dict(names)
    assert not is_tree_node(Pair)
    for _ in range(2):
        register_dataclass(Pair)
        register_dataclass(Other)
        assert is_tree_node(Pair)
        assert _pytree.tree_leaves(Pair(1, [2, 3])) == [1, 2, 3]
        assert names == before, "registering leaves no class behind under the name that nameless ones share"
        unregister_dataclass(Pair)
        unregister_dataclass(Other)
        assert not is_tree_node(Pair)
        assert Pair not in _pytree.SUPPORTED_SERIALIZED_TYPES
    unregister_dataclass(Pair)


def test_a_name_that_another_class_had_stays_its() -> None:
    names, key = _pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE, _pytree.NO_SERIALIZED_TYPE_NAME_FOUND
    before = names.get(key)
    try:
        names[key] = Other
        register_dataclass(Pair)
        assert names[key] is Other
    finally:
        unregister_dataclass(Pair)
        names.pop(key)
        if before is not None:
            names[key] = before


Size = namedtuple("Size", ["width", "height"])


def test_parts_of_classes_that_name_them() -> None:
    assert names_of_parts(Size) == ["width", "height"]
    assert names_of_parts(type(torch.sort(torch.tensor([2, 1])))) == ["values", "indices"]
    assert names_of_parts(tuple) is names_of_parts(Pair) is None


def test_trees_are_taken_apart_and_put_together() -> None:
    for value, leaves in ((Size(1, [2, 3]), [1, 2]), (torch.sort(torch.tensor([2, 1])), [1, 1])):
        tree = tree_flatten(value)[1]
        inside = parts_of_tree(tree)[2]
        assert [part.num_leaves for part in inside] == leaves
        assert tree_of_named(type(value), inside) == tree
    assert parts_of_tree(tree_flatten(Size(1, 2))[1])[:2] == (namedtuple, Size)
    assert parts_of_tree(tree_flatten(1.5)[1])[0] is None

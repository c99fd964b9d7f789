"""Dataclasses as arguments and results, without leaving torch changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils import _pytree

import spyre_mlir
from spyre_mlir.errors import InputError
from spyre_mlir.frontend.program.dataclass_trees import flat_dataclasses


@dataclass
class Pair:
    left: Tensor
    right: Tensor | None = None
    scale: float = 2.0


@dataclass(frozen=True)
class Out:
    total: Tensor
    parts: list[Pair]
    name: str = "out"


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, pair: Pair, more: dict[str, Any] | None = None) -> Out:
        h = self.linear(pair.left) * pair.scale
        if pair.right is not None:
            h = h + pair.right
        return Out(h, [Pair(h, None, 1.0), pair if more is None else more["pair"]])


def registered() -> list[dict[Any, Any]]:
    tables = (_pytree.SUPPORTED_NODES, _pytree.SUPPORTED_SERIALIZED_TYPES, _pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE)
    return [dict(table) for table in tables]


A, B = (torch.randn(3, 4, generator=torch.Generator().manual_seed(n)) for n in (1, 2))


def same(got: Out, wanted: Out) -> None:
    assert type(got) is Out and got.name == wanted.name
    torch.testing.assert_close(got.total, wanted.total)
    for mine, theirs in zip(got.parts, wanted.parts, strict=True):
        assert type(mine) is Pair and mine.scale == theirs.scale
        torch.testing.assert_close(mine.left, theirs.left)
        assert (mine.right is None) == (theirs.right is None)


@pytest.mark.parametrize("pair", [Pair(A, B), Pair(A), Pair(left=A, scale=3.0)])
def test_arguments_and_results(pair: Pair) -> None:
    before, model = registered(), Model().eval()
    compiled = spyre_mlir.compile(model, (pair,), numerics="exact")
    with torch.no_grad():
        same(compiled(pair), model(pair))
    assert compiled.verify(pair)
    assert compiled.accuracy(pair).worst < 0.1
    assert registered() == before
    assert not model._forward_hooks


def test_by_keywords_in_dictionaries_and_lazily() -> None:
    before, model = registered(), Model().eval()
    lazy = spyre_mlir.compile(model, numerics="exact")
    given: dict[str, Any] = {"more": {"pair": Pair(B, A, 5.0)}}
    with torch.no_grad():
        same(lazy(Pair(A), **given), model(Pair(A), **given))
        same(lazy(Pair(A, B)), model(Pair(A, B)))
    assert len(lazy.programs) == 2
    assert registered() == before


def test_another_structure_is_refused() -> None:
    compiled = spyre_mlir.compile(Model().eval(), (Pair(A),))
    with pytest.raises(InputError, match=r"nested otherwise|was made for"):
        compiled(Pair(A, B))
    with pytest.raises(InputError, match=r"was made for 2\.0"):
        compiled(Pair(A, None, 3.0))


def test_an_error_leaves_nothing_behind() -> None:
    class Failing(nn.Module):
        def forward(self, pair: Pair) -> Tensor:
            raise ValueError("mine")

    before = registered()
    with pytest.raises(ValueError, match="mine"):
        spyre_mlir.compile(Failing(), (Pair(A),))
    assert registered() == before


def test_calls_within_calls_and_what_others_registered() -> None:
    before = registered()
    with flat_dataclasses(Pair(A)):
        with flat_dataclasses([Pair(B)]):
            pass
        assert len(_pytree.tree_leaves(Pair(A, B))) == 3
    assert registered() == before
    _pytree.register_dataclass(Pair, serialized_type_name="tests.Pair")
    try:
        with flat_dataclasses(Pair(A)):
            pass
        assert Pair in _pytree.SUPPORTED_NODES
    finally:
        _pytree._deregister_pytree_node(Pair)

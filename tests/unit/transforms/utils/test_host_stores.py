"""Stores that the host knows the positions of, and operators that are rewritten as a whole."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.frontend import import_program
from spyre_mlir.transforms.utils.host_stores import host_stores, rewrite_stores
from tests.functions import FunctionModel

CACHE, SLOTS, NEW = torch.zeros(4, 8), torch.zeros(2, dtype=torch.int64), torch.zeros(2, 8)


def imported(function: Any) -> ModuleOp:
    return import_program(FunctionModel(function), (CACHE, SLOTS, NEW)).module


def stored(cache: Tensor, slots: Tensor, new: Tensor) -> Tensor:
    cache.index_copy_(0, slots, new)
    return cache.sum()


def test_an_overwritten_argument_at_positions_of_the_host() -> None:
    (found,) = host_stores(imported(stored))
    assert [(one.op.overload, one.dim, one.count) for one in found] == [("index_copy", 0, 2)]
    assert not any(host_stores(imported(lambda cache, slots, new: stored(cache, slots + 1, new))))


def test_readers_get_what_is_written() -> None:
    module = imported(stored)
    (found,) = host_stores(module)
    rewrite_stores(found, lambda writer, _: lambda one: writer.call("neg", self=one.old))
    module.verify()
    overloads = [op.overload for op in module.walk() if isinstance(op, AtenOp)]
    assert "neg" in overloads and "index_copy" not in overloads

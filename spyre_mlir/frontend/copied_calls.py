"""Calls of operators that write to their arguments, which the host makes on copies.

Decision: docs/decisions/0215-operators-that-write-run-on-copies.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import torch

from spyre_mlir.frontend.spelled_calls import meant, spelled_operator
from spyre_mlir.frontend.torch_private import Operator, schema_of, tree_flatten

Tensor = torch.Tensor


def on_copies(tensors: list[Tensor], operator: str, arguments: str) -> list[Tensor]:
    """Call an operator of torch on copies.

    Args:
        tensors: real tensors, each once.
        operator: as torch spells it, ``vllm.rotary.default``.
        arguments: as `spelled_calls.spelled` gives them.

    Returns:
        its tensors, and the copies that it writes to, in the order of `written`.
    """
    call = spelled_operator(operator)
    copies = [tensor.clone(memory_format=torch.contiguous_format) for tensor in tensors]
    given = meant(arguments, copies)
    made = call(**given)
    return [*(part for part in tree_flatten(made)[0] if isinstance(part, Tensor)), *written(call, given)]


def written(operator: Operator, given: Mapping[str, Any]) -> Iterator[Any]:
    """Yield what an operator writes to, among its arguments by name: an argument, or each item of a list."""
    for parameter in schema_of(operator).arguments:
        value = given.get(parameter.name)
        alias = parameter.alias_info
        if alias is not None and alias.is_write and value is not None:
            yield from cast("list[Any]", value) if isinstance(value, (list, tuple)) else [value]


__all__ = ["on_copies", "written"]

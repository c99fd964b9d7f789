"""A layer of a Llama, compiled once for all tests that write it."""

from __future__ import annotations

from functools import cache

import torch

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from tests.end_to_end.models import llama


@cache
def llama_layer() -> tuple[CompiledModel, tuple[torch.Tensor, ...]]:
    model, inputs = llama(tokens=5)
    compiled = spyre_mlir.compile(model, inputs)
    assert isinstance(compiled, CompiledModel)
    return compiled, inputs

"""Graphs that Dynamo captured with symbolic sizes: exported with symbols once, and specialised for every size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import Dim
from torch.fx import GraphModule

from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dynamic.model import DynamicModel
from spyre_mlir.errors import ImportProgramError, InputError, UnsupportedError


def symbolic_shapes(graph: GraphModule, left_out: Mapping[int, object]) -> tuple[Any, ...] | None:
    """Return which sizes of the inputs are symbols, as `torch.export.export` takes it; None if none is.

    Args:
        graph: as captured.
        left_out: numbers of the inputs that are no arguments of the program.
    """
    placeholders = [n for n in graph.graph.nodes if n.op == "placeholder"]
    shapes = [_shape(n.meta.get("example_value")) for place, n in enumerate(placeholders) if place not in left_out]
    return tuple(shapes) if any(shapes) else None


def _shape(value: object) -> Any:
    if isinstance(value, torch.SymInt):
        return Dim.DYNAMIC
    if not isinstance(value, torch.Tensor):
        return None
    return {dim: Dim.AUTO for dim, extent in enumerate(value.shape) if isinstance(extent, torch.SymInt)} or None


@dataclass
class SymbolicGraph:
    """A graph as a model with symbols; None where torch cannot export it with them.

    Attributes:
        frozen: values of the buffers that it takes for granted.
    """

    model: DynamicModel | None
    frozen: Mapping[int, torch.Tensor]

    @classmethod
    def of(cls, make: Callable[[], object], frozen: Mapping[int, torch.Tensor]) -> SymbolicGraph:
        """Compile a graph with symbols, if that is possible."""
        try:
            made = make()
        except (ImportProgramError, UnsupportedError):
            made = None  # each size is exported by itself, and says what is wrong if anything is
        return cls(made if isinstance(made, DynamicModel) else None, frozen)

    def fits(self, frozen: Mapping[int, torch.Tensor]) -> bool:
        """Return whether the graph takes for granted what is the case."""
        return self.frozen.keys() == frozen.keys() and all(torch.equal(v, frozen[k]) for k, v in self.frozen.items())

    def program(self, inputs: Sequence[Any]) -> CompiledModel | None:
        """Return the program for the sizes of these inputs; None if they have one of their own."""
        try:
            return None if self.model is None else self.model.compiled_for(*inputs)
        except InputError:
            return None  # a size that torch took for granted, which another export need not

"""Sizes of inputs that are expressions of symbols, as `2*b`: torch cannot decompose such a program read from a file."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram

from spyre_mlir.errors import InputError
from spyre_mlir.frontend.torch_private import expression_of


def derived_refusal(exported: ExportedProgram) -> InputError | None:
    """Return the error for a program with such a size that is read from a file; None if it has none."""
    inputs = [(n.name, n.meta["val"]) for n in exported.graph.find_nodes(op="placeholder")]
    sizes = [(name, size) for name, x in inputs if isinstance(x, torch.Tensor) for size in x.shape]
    found = [(name, expression_of(size)) for name, size in sizes if isinstance(size, torch.SymInt)]
    for name, expression in found:
        if not expression.is_Symbol and expression.free_symbols:
            text = (
                f"a size is {expression}, and torch cannot decompose such a program once it has been read from a file"
            )
            return InputError(
                text,
                where=f"the input {name}",
                hint="give each size a symbol of its own, Dim.AUTO or Dim, and check what they have in common in the "
                "model; or compile the module itself",
            )
    return None


__all__ = ["derived_refusal"]

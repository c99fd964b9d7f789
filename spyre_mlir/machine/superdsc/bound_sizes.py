"""Sizes that are bound when the bundle runs: the operation for the given size."""

from __future__ import annotations

from dataclasses import replace

from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, Operand
from spyre_mlir.errors import InputError
from spyre_mlir.machine.superdsc.core_rules.per_core import Symbols


def resolved(view: Descriptor, symbols: Symbols | None) -> Descriptor:
    """Return the descriptor with bound sizes in place of the largest; tensors shrink to the size.

    Raises:
        InputError: a size that the file does not allow.
    """
    sizes = {dim.label: _size(dim, symbols or {}) for dim in view.dims if dim.symbolic is not None}
    if not sizes:
        return view
    dims = tuple(
        dim if dim.label not in sizes else replace(dim, extent=sizes[dim.label], symbolic=None) for dim in view.dims
    )
    return replace(view, dims=dims, operands=tuple(_resized(view, operand, sizes) for operand in view.operands))


def _size(dim: Dim, symbols: Symbols) -> int:
    if dim.symbolic is None:
        return dim.extent
    size = symbols.get(dim.symbolic.symbol, dim.extent)
    if not 0 < size <= dim.extent or size % dim.symbolic.granularity:
        message = f"size {dim.symbolic.name} = {size}"
        hint = f"it is a multiple of {dim.symbolic.granularity} and at most {dim.extent}"
        raise InputError(message, where=f"symbol {dim.symbolic.symbol}", hint=hint)
    return size


def _resized(view: Descriptor, operand: Operand, sizes: dict[str, int]) -> Operand:
    extents: list[int] = []
    for label, extent in zip(operand.order, operand.extents, strict=True):
        dim = view.dim(label)
        shrunk = dim.extent - sizes.get(label, dim.extent)
        extents.append(extent - (shrunk // dim.split if operand.component == keys.LX else shrunk))
    return replace(operand, extents=tuple(extents))

"""Operators that do the same with either part of a complex number: moves, sums, choices, fillings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import torch
from torch.fx import Node

from spyre_mlir.frontend.capture.complex_pairs.functions import truth
from spyre_mlir.frontend.capture.complex_pairs.writer import REAL_TYPES, ComplexPair, ComplexParts, PartWriter
from spyre_mlir.frontend.torch_private import Operator, schema_of

_ATEN = torch.ops.aten
# Tensors that say where, not what.
_PLACES = ("index", "indices", "mask", "condition")
# Numbers that stand for elements.
_ELEMENTS = ("self", "other", "value", "fill_value", "s")
# Views of a part need not be views in torch's strides, so they are asked for by shape.
_BY_SHAPE = {
    _ATEN.view.default: _ATEN.reshape.default,
    _ATEN._unsafe_view.default: _ATEN.reshape.default,
}
_NAMES = """
    alias cat clone col2im constant_pad_nd contiguous copy cumsum detach diag_embed diagonal diagonal_scatter
    empty empty_like expand fill flip full full_like gather im2col index index_add index_copy index_fill index_put
    index_select lift_fresh lift_fresh_copy masked_fill masked_scatter mean neg new_empty new_full new_zeros permute put
    reflection_pad1d reflection_pad2d reflection_pad3d repeat repeat_interleave replication_pad1d replication_pad2d
    replication_pad3d reshape roll scalar_tensor scatter scatter_add select select_scatter slice slice_scatter split
    split_with_sizes squeeze stack sum t take take_along_dim trace transpose tril triu unbind unfold unsqueeze view
    where zeros zeros_like _pad_circular _unsafe_index _unsafe_index_put _unsafe_view
"""
# They give their result from the positions of elements, or multiply it, in a way that no part alone can.
_NOT = {"scatter.reduce", "scatter.value_reduce", "repeat_interleave.Tensor"}


def is_by_parts(target: Operator) -> bool:
    """Return whether an operator does the same with either part."""
    name = str(target).removeprefix("aten.")
    return target.namespace == "aten" and _base(target) in _NAMES.split() and name not in _NOT


def _base(target: Operator) -> str:
    """The name of an operator without overload; that of a view for the operator that copies one."""
    name = str(target).removeprefix("aten.").split(".")[0]
    return name if name in _NAMES.split() else name.removesuffix("_copy")


def _written(target: Operator) -> Any:
    """The operator that is called for a part."""
    packet: Any = getattr(_ATEN, _base(target))
    same = getattr(packet, str(target).removeprefix("aten.").split(".")[1], target)
    return _BY_SHAPE.get(same, same)


def by_parts(w: PartWriter, target: Operator, given: Mapping[str, Any]) -> ComplexParts | list[ComplexParts]:
    """Write a call for the real parts and one for the imaginary parts."""
    re, im = (_call(w, target, given, part) for part in (0, 1))
    if isinstance(re.meta["val"], (list, tuple)):
        return [ComplexParts(*pair) for pair in zip(w.several(re), w.several(im), strict=True)]
    return ComplexParts(re, im)


def _call(w: PartWriter, target: Operator, given: Mapping[str, Any], part: int) -> Node:
    args: list[Any] = []
    named: dict[str, Any] = {}
    for argument in schema_of(target).arguments:
        if argument.name not in given:
            continue
        value = _argument(w, argument.name, given[argument.name], part)
        if not argument.kwarg_only:
            args.append(value)
        elif value is not None:
            named[argument.name] = value
    return w(_written(target), *args, **named)


def _argument(w: PartWriter, name: str, value: Any, part: int) -> Any:
    if name in _PLACES or value is None:
        return value
    if isinstance(value, torch.dtype):
        return REAL_TYPES.get(value, value)
    if isinstance(value, (list, tuple)):
        items = cast("list[Any]", value)
        if any(isinstance(item, ComplexPair) for item in items):
            return [_argument(w, name, item, part) for item in items]
        return items
    if isinstance(value, ComplexPair):
        return w.parts(value)[part]
    if isinstance(value, Node):
        like = value.meta["val"]
        if not isinstance(like, torch.Tensor):  # the number of a symbol
            return value
        return value if part == 0 else w.node(0.0, like, _real(like.dtype))
    return w.parts(value)[part] if name in _ELEMENTS and isinstance(value, (int, float, complex)) else value


def _real(dtype: torch.dtype) -> torch.dtype:
    return dtype if dtype.is_floating_point else torch.float32


def ones(w: PartWriter, target: Operator, given: Mapping[str, Any]) -> ComplexParts:
    """Write a filling with 1."""
    return ComplexParts(_call(w, target, given, 0), 0.0)


def converted(w: PartWriter, given: Mapping[str, Any], dtype: torch.dtype) -> ComplexParts | Node:
    """Write a conversion: to real numbers it drops the imaginary part, and to truth it looks at both."""
    source: ComplexPair | Node = given["self"]
    if dtype.is_complex:
        return w.known(source) if isinstance(source, ComplexPair) else ComplexParts(source, 0.0)
    z = w.parts(source)
    return truth(w, z) if dtype is torch.bool else w(_ATEN._to_copy.default, z.re, dtype=dtype)

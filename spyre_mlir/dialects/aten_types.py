"""Shapes and element types of aten-level results, from the op table and bound arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import cast

from xdsl.dialects.builtin import TensorType, f32, i1
from xdsl.ir import Attribute, SSAValue

from spyre_mlir.dialects.tensors import ELEMENTS, TypedValue, element_of, shape_of
from spyre_mlir.ops.index_views import IndexView, NotAView
from spyre_mlir.ops.table import Family, OpEntry

Value = object  # a Python value of an argument: number, bool, string, tuple, type, None, SSAValue or list of them


def result_shape(entry: OpEntry, bound: Mapping[str, Value]) -> tuple[int, ...]:
    """Return the shape of an entry's result for bound arguments.

    Raises:
        ConstraintError, IndexError, ValueError: the arguments do not go together.
    """
    tensors = {p.name: _shapes(bound[p.name]) for p in entry.params if p.is_tensor}
    rest = {p.name: bound[p.name] for p in entry.params if not p.is_tensor}
    if entry.shape is not None:
        return tuple(entry.shape(**{k: v for k, v in tensors.items() if v is not None}, **rest))
    if entry.family is Family.VIEW:
        (shape,) = tensors.values()
        return view_of(entry, IndexView.identity(cast(tuple[int, ...], shape)), rest).shape
    return broadcast_shapes([cast(tuple[int, ...], s) for s in tensors.values() if s is not None])


def view_of(entry: OpEntry, base: IndexView, attributes: Mapping[str, Value]) -> IndexView:
    """Apply a view entry to `base`; a view that is not affine starts from a fresh copy.

    A reshape that cuts across the dimensions even of a fresh copy starts from one dimension of all elements.
    """
    fresh = IndexView.identity(base.shape)
    for start in (base, fresh):
        try:
            return cast(IndexView, entry.meaning(start, **attributes))
        except NotAView:
            continue
    return cast(IndexView, entry.meaning(IndexView.identity((prod(base.shape),)), **attributes))


def broadcast_shapes(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the common shape of broadcast operands.

    Raises:
        ValueError: two extents differ and neither is 1.
    """
    rank = max((len(s) for s in shapes), default=0)
    out = [1] * rank
    for shape in shapes:
        for at, extent in enumerate(shape, start=rank - len(shape)):
            if extent != 1 and out[at] not in (1, extent):
                raise ValueError(f"shapes {', '.join(map(str, shapes))} do not broadcast")
            out[at] = out[at] if extent == 1 else extent
    return tuple(out)


def _shapes(value: Value) -> object:
    match value:
        case None:
            return None
        case SSAValue() | TypedValue():
            return shape_of(value)
        case list():
            return [_shapes(v) for v in cast(list[Value], value)]
        case _:
            return ()


def result_type(entry: OpEntry, bound: Mapping[str, Value]) -> TensorType:
    """Return the type of an entry's result: its shape, and the element type of its tensor operands.

    Booleans meet numbers as numbers; an op without tensor operands gives f32 unless it says what.
    """
    said = bound.get("dtype") if entry.family in (Family.CREATION, Family.MOVEMENT) else None
    if entry.boolean:
        element: Attribute = i1
    elif isinstance(said, str):
        element = ELEMENTS[said]
    else:
        elements = elements_of(entry, bound)
        # A number in a tensor's place says a float only where no tensor of numbers says which.
        numbers = any(isinstance(bound[p.name], float) for p in entry.params if p.is_tensor)
        element = next((t for t in elements if t != i1), f32 if numbers or not elements else i1)
    return TensorType(element, result_shape(entry, bound))


def elements_of(entry: OpEntry, bound: Mapping[str, Value]) -> list[Attribute]:
    """Return the element types that determine a result's: those of all tensors but indices, which give positions."""
    holders = [p for p in entry.params if p.is_tensor and p.name not in ("index", "indices")]
    return [t for p in holders for t in _elements(bound[p.name])]


def _elements(value: Value) -> list[Attribute]:
    match value:
        case SSAValue() | TypedValue():
            return [element_of(value)]
        case list():
            return [t for v in cast(list[Value], value) for t in _elements(v)]
        case _:
            return []

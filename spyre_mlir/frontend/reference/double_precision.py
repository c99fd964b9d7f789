"""Running a half-precision model in double precision: the reference for programs that never round.

A model in bfloat16 or float16 rounds after every operation in torch, by some 1e-3. Comparing exact numerics with
that would hide every error below it, so such a model is copied and run in float64, its weights as they are.

Decision: docs/decisions/0081-references-do-not-round.md
"""

from __future__ import annotations

import copy
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from typing_extensions import override

from spyre_mlir.frontend.process_groups import groups_to_share
from spyre_mlir.frontend.reference.operator_mode import OperatorMode
from spyre_mlir.frontend.torch_private import Operator, holders, schema_of, tree_map

aten = torch.ops.aten
_DOUBLE = {
    torch.bfloat16: torch.float64,
    torch.float16: torch.float64,
    torch.complex32: torch.complex128,
}
HALF = tuple(_DOUBLE)
_SINGLE_AT_MOST = tuple(op.default for op in (aten._scaled_mm, aten._scaled_mm_v2, aten._grouped_mm))


class WithoutHalves(OperatorMode):
    """Torch mode that turns conversions to half precision, and half-precision tensors, into double precision."""

    @override
    def run(self, func: Operator, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Runs one operator on widened arguments; tensors it writes to stay what they are."""
        written = [a.alias_info is not None and a.alias_info.is_write for a in schema_of(func).arguments]
        given = [a if w else widened(a) for a, w in zip(args, written, strict=False)]
        wide = widened(dict(kwargs))
        if func in _SINGLE_AT_MOST:
            return func(*_single(given), **_single(wide)).double()
        try:
            return func(*given, **wide)
        except RuntimeError:
            # Normalisation takes weights in single precision beside inputs in half, but not in double.
            if schema_of(func).is_mutable:
                raise
        return func(*_recast(given, torch.float32, torch.float64), **_recast(wide, torch.float32, torch.float64))


class SingleWhereNoDouble(OperatorMode):
    """Torch mode that runs operators without double precision in single precision, and widens their results."""

    @override
    def run(self, func: Operator, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Runs one operator; one that writes to its arguments only as it is."""
        named = dict(kwargs)
        try:
            return func(*args, **named)
        except RuntimeError as error:
            if schema_of(func).is_mutable or "double" not in str(error).lower():
                raise
        return _recast(func(*_recast(args, torch.float64, torch.float32), **named), torch.float32, torch.float64)


@contextmanager
def in_doubles() -> Generator[None]:
    """Make torch create tensors in double precision, and run every operator in the nearest available precision."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with SingleWhereNoDouble():
            yield
    finally:
        torch.set_default_dtype(before)


def _recast(tree: Any, old: torch.dtype, new: torch.dtype) -> Any:
    """A structure with the tensors of one dtype in another."""

    def recast(leaf: object) -> object:
        return leaf.to(new) if isinstance(leaf, torch.Tensor) and leaf.dtype is old else leaf

    return tree_map(recast, tree)


def widened(tree: Any) -> Any:
    """Return a structure with half-precision tensors and dtypes made double; other values stay the same objects."""

    def wide(leaf: object) -> object:
        if isinstance(leaf, torch.dtype):
            return _DOUBLE.get(leaf, leaf)
        return leaf.to(_DOUBLE[leaf.dtype]) if isinstance(leaf, torch.Tensor) and leaf.dtype in HALF else leaf

    return tree_map(wide, tree)


def _single(tree: Any) -> Any:
    """A structure with double-precision tensors and dtypes made single."""

    def single(leaf: object) -> object:
        if isinstance(leaf, torch.dtype):
            return torch.float32 if leaf is torch.float64 else leaf
        return leaf.float() if isinstance(leaf, torch.Tensor) and leaf.dtype is torch.float64 else leaf

    return tree_map(single, tree)


def has_halves(tensors: Iterable[object]) -> bool:
    """Return whether a floating-point tensor is in half precision."""
    return any(isinstance(t, torch.Tensor) and t.dtype in HALF for t in tensors)


def widened_model(model: torch.nn.Module) -> torch.nn.Module:
    """Return a copy of a model with half-precision parameters and buffers made double."""
    wide = copy.deepcopy(model, groups_to_share())
    for held in holders(wide):
        for name, value in held.items():
            if value is not None and value.dtype in HALF:
                made = value.detach().to(_DOUBLE[value.dtype])
                is_parameter = isinstance(value, torch.nn.Parameter)
                held[name] = torch.nn.Parameter(made, requires_grad=False) if is_parameter else made
    return wide

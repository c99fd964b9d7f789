"""Side effects of calls of operators: what draws random numbers changes the generator; all else is pure."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Protocol, cast

from typing_extensions import override
from xdsl.dialects.builtin import BoolAttr, DictionaryAttr, ModuleOp
from xdsl.ir import Operation
from xdsl.traits import (
    ConditionallySpeculatable,
    EffectInstance,
    MemoryEffect,
    MemoryEffectKind,
    is_side_effect_free,
)

from spyre_mlir.dialects.ir.modules import ops_in
from spyre_mlir.ops.draws import draws

_NONE = frozenset[EffectInstance]()
_GENERATOR = frozenset((EffectInstance(MemoryEffectKind.READ), EffectInstance(MemoryEffectKind.WRITE)))


class _Call(Protocol):
    overload: str


class DrawEffects(MemoryEffect, ConditionallySpeculatable):
    """Makes `cse` and `dce` leave calls that draw random numbers where they are."""

    @override
    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        """Return what a call of an operator reads and writes."""
        return _GENERATOR if draws_in(op) else _NONE

    @override
    @classmethod
    def is_speculatable(cls, op: Operation) -> bool:
        """Return whether a call may run although the program would not."""
        return not draws_in(op)


def draws_in(op: Operation) -> bool:
    """Return whether a call of an operator, at the level of aten or as a host step, draws random numbers."""
    arguments = op.properties.get("arguments")
    training = arguments.data.get("training") if isinstance(arguments, DictionaryAttr) else None
    return draws(cast(_Call, op).overload, training=training == BoolAttr.from_bool(True))


def draws_numbers(module: ModuleOp) -> bool:
    """Return whether a program, at any level, draws random numbers."""
    return any(op.has_trait(DrawEffects) and not is_side_effect_free(op) for op in ops_in(module))

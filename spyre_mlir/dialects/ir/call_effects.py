"""Side effects of calls: draws change the generator, collectives meet other ranks, checks end a run; else none."""

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
)

from spyre_mlir.dialects.ir.modules import ops_in
from spyre_mlir.ops.checks import is_check
from spyre_mlir.ops.draws import draws
from spyre_mlir.ops.native.collectives import is_collective

_NONE = frozenset[EffectInstance]()
_CHANGES = frozenset((EffectInstance(MemoryEffectKind.READ), EffectInstance(MemoryEffectKind.WRITE)))


class _Call(Protocol):
    overload: str


class CallEffects(MemoryEffect, ConditionallySpeculatable):
    """Makes `cse` and `dce` leave calls that draw random numbers, collectives and checks where they are."""

    @override
    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        """Return what a call of an operator reads and writes."""
        return _CHANGES if keeps_order(op) else _NONE

    @override
    @classmethod
    def is_speculatable(cls, op: Operation) -> bool:
        """Return whether a call may run although the program would not."""
        return not keeps_order(op)


def keeps_order(op: Operation) -> bool:
    """Return whether a call, at the level of aten or as a host step, runs once and in order with others of its kind."""
    return draws_in(op) or exchanges_in(op) or is_check(cast(_Call, op).overload)


def exchanges_in(op: Operation) -> bool:
    """Return whether a call of an operator, at the level of aten or as a host step, is a collective."""
    return is_collective(cast(_Call, op).overload)


def draws_in(op: Operation) -> bool:
    """Return whether a call of an operator, at the level of aten or as a host step, draws random numbers."""
    arguments = op.properties.get("arguments")
    training = arguments.data.get("training") if isinstance(arguments, DictionaryAttr) else None
    return draws(cast(_Call, op).overload, training=training == BoolAttr.from_bool(True))


def draws_numbers(module: ModuleOp) -> bool:
    """Return whether a program, at any level, draws random numbers."""
    return any(op.has_trait(CallEffects) and draws_in(op) for op in ops_in(module))


def runs_once(module: ModuleOp) -> bool:
    """Return whether a call of a program, at any level, cannot be repeated: it draws numbers, or meets other ranks."""
    return any(op.has_trait(CallEffects) and (draws_in(op) or exchanges_in(op)) for op in ops_in(module))

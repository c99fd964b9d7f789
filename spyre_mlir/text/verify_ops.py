"""Verification of a module's ops, where those of one form are verified once.

Half of the ops of a bundle add numbers to addresses. Whether an op of `arith` or `math` verifies follows from its class
and the types and attributes that it has, so one of each form answers for all. So it does for the end of a buffer's
life, and for the end of a nest's body, with the class of the op that holds the body.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Block, Operation

# By name: the dialect needs numpy, and tools that read other dialects start without it.
_PLAIN = frozenset((*(op.name for op in (*arith.Arith.operations, *math.Math.operations)), "spyre.kernel.free"))
_ENDS = frozenset(("spyre.loop.yield",))
_KEPT = 1 << 12


def verify_ops(op: Operation) -> None:
    """Verify an op and those in it, as `Operation.verify` does.

    Raises:
        VerifyException: one does not verify.
    """
    if type(op).verify is not Operation.verify:  # it looks after what it holds
        op.verify()
        return
    for region in op.regions:
        for block in region.blocks:
            _verify_block(block)
    op.verify(verify_nested_ops=False)


def _verify_block(block: Block) -> None:
    if block.is_empty:
        block.verify()
    for op in block.ops:
        if op.parent is not block:
            raise ValueError("an op says that it is in another block")
        if op.name in (_PLAIN if op.next_op is not None else _ENDS):  # the last op must be a terminator
            _verify_plain(op)
        else:
            verify_ops(op)


def _verify_plain(op: Operation) -> None:
    attributes, around = (*op.properties.items(), *op.attributes.items()), type(op.parent_op())
    types = op.operand_types, op.result_types
    form = (type(op), around, *types, *((name, _form(value)) for name, value in attributes))
    verified = _verified(form)
    if not verified:
        op.verify()
        verified.append(True)


@lru_cache(maxsize=_KEPT)
def _verified(_form: Hashable) -> list[bool]:
    """Not empty if an op of this form has verified."""
    return []


def _form(attribute: Attribute) -> Hashable:
    """All that counts of an attribute: a number of a type is as good as another."""
    return (IntegerAttr, attribute.get_type()) if isinstance(attribute, IntegerAttr) else attribute


__all__ = ["verify_ops"]

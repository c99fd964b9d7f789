"""Whole modules in one go: their ops as a list, their copies, and their end.

xDSL walks by generators inside generators and copies in two passes, because it allows for blocks in any order. In our
programs values are defined before they are used, and regions have one block.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Generic, TypeVar

from xdsl.ir import Block, Operation, SSAValue, SSAValues

_Op = TypeVar("_Op", bound=Operation)


def ops_in(op: Operation) -> list[Operation]:
    """Return an op and those in it, in the order of `Operation.walk`."""
    found = [op]
    if op.regions:
        _collect(op, found)
    return found


def _collect(op: Operation, found: list[Operation]) -> None:
    for region in op.regions:
        for block in region.blocks:
            inner = block.first_op
            while inner is not None:
                found.append(inner)
                if inner.regions:
                    _collect(inner, found)
                inner = inner.next_op


class OpsByClass:
    """Ops, found by their class without a look at each: most of a bundle's are of two classes.

    Args:
        ops: in any order.
    """

    def __init__(self, ops: Iterable[Operation]) -> None:
        self._found: defaultdict[type[Operation], list[Operation]] = defaultdict(list)
        for op in ops:
            self._found[type(op)].append(op)

    def of(self, kind: type[_Op]) -> list[_Op]:
        """Return the ops of a class and of those below it, class by class."""
        return [op for own, ops in self._found.items() if issubclass(own, kind) for op in ops if isinstance(op, kind)]


def copy_of(op: _Op) -> _Op:
    """Return a copy of an op, as `Operation.clone` does.

    Args:
        op: defines every value before it is used.
    """
    several = any(region.first_block is not region.last_block for inner in ops_in(op) for region in inner.regions)
    return op.clone() if several else copy_on(op, {})


def copy_on(op: _Op, values: dict[SSAValue, SSAValue]) -> _Op:
    """Return a copy of an op whose regions have one block at most, on other operands.

    Args:
        op: defines every value before it is used.
        values: by value from outside, the value that the copy reads instead; gets the new values of the copied ones.
    """
    made = op.clone_without_regions(values)
    for region, into in zip(op.regions, made.regions, strict=True):
        if (block := region.first_block) is None:
            continue
        copied = Block(arg_types=block.arg_types)
        for argument, new in zip(block.args, copied.args, strict=True):
            new.location, new.name_hint = argument.location, argument.name_hint
            values[argument] = new
        into.add_block(copied)
        copied.add_ops(copy_on(inner, values) for inner in block.ops)
    return made


def take_apart(op: Operation) -> None:
    """Free an op and those in it at once; no reader may have them still.

    Ops, their results and their neighbours in a block refer to each other, so that without this only Python's cycle
    collector frees them, which looks at everything alive to find them.
    """
    for inner in reversed(ops_in(op)):
        for region in inner.regions:
            for block in region.blocks:
                while block.args:
                    block.erase_arg(block.args[-1], safe_erase=False)
        if inner.parent is not None:
            inner.detach()
        inner.drop_all_references()
        inner.results = SSAValues()


class KeptOp(Generic[_Op]):
    """Holder of an op that others are copies of: with it, as when a cache is full, the op goes at once.

    Attributes:
        op: in no block.
    """

    def __init__(self, op: _Op) -> None:
        """Keep an op."""
        self.op = op

    def __del__(self) -> None:
        """Take the op apart."""
        take_apart(self.op)


__all__ = ["KeptOp", "OpsByClass", "copy_of", "copy_on", "ops_in", "take_apart"]

"""Liveness of tensors of a program: each dies after the last op of its own block that uses it, nested uses included."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from xdsl.ir import Block, Operation, SSAValue


class Liveness:
    """Last uses in a function.

    Args:
        root: the function.
    """

    def __init__(self, root: Operation) -> None:
        self._root = root

    @cached_property
    def dying(self) -> Mapping[Operation, tuple[SSAValue, ...]]:
        """Return per op the values of its block that are dead after it."""
        found: dict[Operation, list[SSAValue]] = {}
        for op in self._root.walk():
            for region in op.regions:
                for block in region.blocks:
                    self._block(block, found)
        return {op: tuple(values) for op, values in found.items()}

    def _block(self, block: Block, found: dict[Operation, list[SSAValue]]) -> None:
        first = block.first_op
        places = {op: number for number, op in enumerate(block.ops)}
        for value in [*block.args, *(result for op in block.ops for result in op.results)]:
            users = [user for user in (_ancestor(use.operation, block) for use in value.uses) if user is not None]
            maker = value.owner if isinstance(value.owner, Operation) else first
            last = max(users, key=lambda op: places[op], default=maker)
            if last is not None:
                found.setdefault(last, []).append(value)


def _ancestor(op: Operation, block: Block) -> Operation | None:
    """The op of a block that holds `op`."""
    current: Operation | None = op
    while current is not None and current.parent_block() is not block:
        current = current.parent_op()
    return current

"""Dominance check, which xDSL's verifier omits: a value must be defined before it is used.

Checked: every operand is a result of an earlier op of the same block, a result or argument of a block that
dominates it, or such a value of an enclosing op. Not checked: blocks that cannot be reached.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.text.dominators import dominator_children


class UseBeforeDefinition(VerifyException):
    """A use of a value that its definition does not dominate.

    Args:
        op: the op that uses the value.
        index: which operand it is.
    """

    def __init__(self, op: Operation, index: int) -> None:
        hint = op.operands[index].name_hint
        named = f" (%{hint})" if hint else ""
        super().__init__(f"operand #{index}{named} of '{op.name}' is used before it is defined")
        self.op = op


def verify_dominance(op: Operation) -> None:
    """Check that every use nested in `op` is dominated by its definition.

    One walk, linear in the number of ops and operands.

    Raises:
        UseBeforeDefinition: a use comes first; the exception knows the op.
    """
    _check_regions(op.regions, set())


def _check_regions(regions: Iterable[Region], visible: set[SSAValue]) -> None:
    for region in regions:
        first = region.blocks.first
        if first is None:
            continue
        if first.next_block is None:
            added: list[SSAValue] = []
            _check_block(first, visible, added)
            visible.difference_update(added)
        else:
            _check_blocks(region, first, visible)


def _check_blocks(region: Region, entry: Block, visible: set[SSAValue]) -> None:
    """Walk the dominator tree: on the way down a block's values are visible, on the way up no more."""
    children = dominator_children(region)
    stack: list[tuple[Block, list[SSAValue] | None]] = [(entry, None)]
    while stack:
        block, leaving = stack.pop()
        if leaving is not None:
            visible.difference_update(leaving)
            continue
        added: list[SSAValue] = []
        _check_block(block, visible, added)
        stack.append((block, added))
        stack.extend((child, None) for child in children.get(block, ()))


def _check_block(block: Block, visible: set[SSAValue], added: list[SSAValue]) -> None:
    visible.update(block.args)
    added.extend(block.args)
    for op in block.ops:
        for index, operand in enumerate(op.operands):
            if operand not in visible:
                raise UseBeforeDefinition(op, index)
        if op.regions:
            _check_regions(op.regions, visible)
        results = op.results
        visible.update(results)
        added.extend(results)

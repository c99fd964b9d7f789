"""The least that a core has to reach under any division of a step, whatever orders its buffers' dimensions have.

A search through orders and longer loops tries thousands of them, each with a kernel op of its own. Where even the
least is too much, none of them can help.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, prod

from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec
from spyre_mlir.hw.sticks import IndexMap
from spyre_mlir.ops.native import contractions
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedBuffer, PlannedKernel


def may_come_within_reach(step: PlannedKernel, spec: SpyreSpec) -> bool:
    """Return whether slices over the cores of a card could be small enough, if they were as compact as can be.

    Slices of a loop have as many elements as the shortest that cover it, so a longer loop is counted too.
    """
    kept = {name for expr in step.output[1] for name, _ in expr.terms}
    is_product = step.function == contractions.matmul.opfunc
    extents = {d.name: d.extent for d in step.space}
    divisible = [d.name for d in step.space if d.extent > 1 and (is_product or d.name in kept)]
    operands = [_walked_alone(buffer, index) for buffer, index in (*step.inputs, step.output)]

    def is_near(splits: Mapping[str, int]) -> bool:
        return all(_sticks(operand, extents, splits) * STICK_BYTES <= spec.span_bytes for operand in operands)

    return any(is_near(splits) for splits in _splits(divisible, spec.cores_per_card))


def _walked_alone(buffer: PlannedBuffer, index: IndexMap) -> dict[str, int]:
    """Loops that each walk a dimension on their own, and how many elements of it share a stick."""
    names = [name for expr in index for name, _ in expr.terms]
    found = dict[str, int]()
    for dim, expr in enumerate(index):
        if len(expr.terms) == 1 and names.count(expr.terms[0][0]) == 1:
            found[expr.terms[0][0]] = buffer.lanes if dim == buffer.layout.stick else 1
    return found


def _sticks(operand: Mapping[str, int], extents: Mapping[str, int], splits: Mapping[str, int]) -> int:
    """Return the least number of sticks that the busiest core touches."""
    return prod(ceil(ceil(extents[name] / splits.get(name, 1)) / lanes) for name, lanes in operand.items())


def _splits(names: Sequence[str], cores: int) -> Iterator[dict[str, int]]:
    """All numbers of slices of some loops that so many cores can take."""
    if not names:
        yield {}
        return
    for split in range(1, cores + 1):
        for others in _splits(names[1:], cores // split):
            yield {names[0]: split, **others}


__all__ = ["may_come_within_reach"]

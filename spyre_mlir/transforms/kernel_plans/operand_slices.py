"""Slices of a kernel's operands under any division: which cores see the same, and what the result may overwrite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.core_view import local_slices
from spyre_mlir.dialects.spyre.kernel_loop import TileOp
from spyre_mlir.hw.sticks import IndexMap


class OperandSlices:
    """Slices of a kernel's operands under any division, equal ones by equal numbers.

    Args:
        op: the kernel.
        held: of each operand, whether the scratchpads may hold it.
        number: the number of a core's view of a tensor.
    """

    def __init__(self, op: kernel.KernelOp, held: Sequence[bool], number: Callable[[Hashable], int]) -> None:
        tensors = [v.owner.compact() if isinstance(v.owner, TileOp) else kernel.device_tensor(v) for v in op.operands]
        self._op, self._number, self._loops = op, number, op.loop_extents()
        self._operands = [
            (tensor.in_hbm, index.data, _walked_once(index.data)) if may and op.has_slices(number) else None
            for number, (tensor, index, may) in enumerate(zip(tensors, op.maps.data, held, strict=True))
        ]

    def of(self, splits: Mapping[str, int]) -> tuple[tuple[int | None, ...], tuple[int, ...], frozenset[int]]:
        """Return views and bytes of the operands, and the inputs that the result may overwrite."""
        division, over = self._loops.divided(splits), {name for name, split in splits.items() if split > 1}
        # Cores that a loop divides without a step in a tensor would need the same of it: most divisions of a product.
        *inputs, output = found = [
            None if o is None or not o[2].issuperset(over) else local_slices(*o[:2], division) for o in self._operands
        ]
        views = tuple([None if s is None else self._number(s.view) for s in found])
        sizes = tuple([0 if s is None else s.bytes for s in found])
        in_place = [
            number
            for number, s in enumerate(inputs)
            if s is not None and output is not None and views[number] == views[-1]
            if self._op.is_elementwise(number) and s.walk == output.walk
        ]
        return views, sizes, frozenset(in_place)


def _walked_once(index: IndexMap) -> frozenset[str]:
    """Loops that walk one dimension of a tensor."""
    return frozenset([name for name, times in Counter(n for e in index for n, _ in e.terms).items() if times == 1])


__all__ = ["OperandSlices"]

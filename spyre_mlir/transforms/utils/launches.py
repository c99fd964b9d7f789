"""The launch that a kernel runs in: host steps separate launches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.ir import Block, Operation

from spyre_mlir.dialects.spyre.host import KernelHostOp
from spyre_mlir.dialects.spyre.kernel import KernelOp

Launches = Mapping[Operation, int]


def launch_numbers(block: Block) -> dict[Operation, int]:
    """Return the launch of every kernel op of a block and its loops: kernels with no host step between share one."""
    numbers: dict[Operation, int] = {}
    number, used = 0, False
    for op in block.ops:
        if isinstance(op, KernelHostOp):
            number, used = number + used, False
            continue
        inside = [inner for inner in op.walk() if isinstance(inner, KernelOp)]
        numbers.update(dict.fromkeys(inside, number))
        used = used or bool(inside)
    return numbers


def one_launch(users: Iterable[Operation], numbers: Launches) -> bool:
    """Return whether all kernels among a buffer's users run in one launch; only HBM survives between two launches."""
    return len({numbers[op] for op in users if op in numbers}) <= 1

"""Division of a matmul as torch-spyre's planner chooses it: the op in the planner's terms."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.hw.division import DividedLoop, Footprint, span_bytes
from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec
from spyre_mlir.hw.sticks import UNIT
from spyre_mlir.planning.rival import DeviceDim, ProductLoops, RivalError, RivalOp, rival_division


def published(
    op: kernel.KernelOp, loops: Sequence[DividedLoop], operands: Sequence[Footprint], spec: SpyreSpec
) -> dict[str, int]:
    """Return the division that torch-spyre's planner chooses.

    The present one stays if the planner refuses the op, uses fewer cores, or leaves more to a core than it reaches: the
    planner counts the steps of one dimension of an operand, and this compiler its bytes from the first to the last.
    """
    usual = op.space_splits()
    try:
        chosen = rival_division(rival_op(op, loops), spec)
    except RivalError:
        return usual
    near = all(span_bytes(loops, chosen, operand) <= spec.span_bytes for operand in operands)
    return chosen if near and prod(chosen.values()) >= prod(usual.values()) else usual


def rival_op(op: kernel.KernelOp, loops: Sequence[DividedLoop]) -> RivalOp:
    """Return an op as the planner's rules see it."""
    operands = list[tuple[DeviceDim, ...]]()
    for tensor, walked in zip(op.tensors, op.maps, strict=True):
        layout = tensor.layout
        names = {dim: tuple(n for n, _ in walked.data[dim].terms) for dim in range(len(layout.extents))} | {UNIT: ()}
        operands.append(tuple(DeviceDim(layout.count(dim, tensor.lanes), names[dim]) for dim in layout.order))
    return RivalOp(tuple(loops), tuple(operands), _roles(op, loops) if op.is_product else None)


def _roles(op: kernel.KernelOp, loops: Sequence[DividedLoop]) -> ProductLoops | None:
    """Roles of a matmul's loops, None where the planner's score does not cover them.

    Columns and depth are one loop each, in sticks. Without a batch of weights, the outer one of two loops of
    rows is the batch.
    """
    left, right = (op.maps.data[n].names for n in (0, 1))
    lanes = op.lane_dims()
    batch = [lp.name for lp in loops if lp.kept and lp.name in left and lp.name in right]
    rows = [lp.name for lp in loops if lp.kept and lp.name in left and lp.name not in right]
    columns = [lp.name for lp in loops if lp.kept and lp.name in right and lp.name not in left]
    depth = [lp.name for lp in loops if not lp.kept]
    shared = not batch
    if shared:
        batch, rows = rows[:-1], rows[-1:]
    if len(batch) > 1 or len(rows) > 1 or len(columns) != 1 or len(depth) != 1:
        return None
    if any(lanes.get(name, 1) == 1 for name in (*columns, *depth)) or any(name in lanes for name in rows):
        return None
    return ProductLoops(
        batch=next(iter(batch), None),
        rows=next(iter(rows), None),
        columns=columns[0],
        depth=depth[0],
        lanes=lanes[columns[0]],
        shared=shared,
        input_bytes=STICK_BYTES // op.tensors[0].lanes,
        output_bytes=STICK_BYTES // op.tensors[-1].lanes,
    )

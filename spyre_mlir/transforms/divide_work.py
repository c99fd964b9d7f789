"""Pass `divide-work`: divides the loops of every kernel op over the cores.

Equal slices only: whole sticks in the lanes, elements elsewhere. Spans come first, then the longest loops of the
result; what is left of the cores goes to the summed loop of a product, whose partial sums the cores add up. A product
departs from that where the cost model finds another division of as many cores clearly faster. Ops that are divided
already stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.target import spec_of
from spyre_mlir.errors import InputError, LoweringError
from spyre_mlir.hw.division import DividedLoop, Footprint, SpanError, divide
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.ops.table import Family
from spyre_mlir.transforms.kernel_to_superdsc.fast_division import divided, fastest, published
from spyre_mlir.transforms.utils.rebuild import Failures, describe_location


def loops_of(op: kernel.KernelOp) -> list[DividedLoop]:
    """Return the loops of an op, in the pieces that the hardware can divide."""
    padded, pieces, undivided = op.padded_extents(), op.divisible_pieces(), op.undivided()
    kept = op.maps.data[-1].names
    is_product = isinstance(op, kernel.ComputeOp) and op.entry.family is Family.CONTRACTION
    loops: list[DividedLoop] = []
    for dim in op.space.data:
        unit = pieces.get(dim.name, 1)
        whole = padded[dim.name] % unit == 0
        may = whole and dim.name not in undivided and (dim.name in kept or is_product)
        loops.append(DividedLoop(dim.name, padded[dim.name] // unit if whole else 1, dim.name in kept, may))
    return loops


def footprints(op: kernel.KernelOp, loops: list[DividedLoop]) -> list[Footprint]:
    """Return the strides of the operands per piece of each loop."""
    padded, out = op.padded_extents(), list[Footprint]()
    for acc, tensor in zip(op.accesses(), op.tensors, strict=True):
        strides, piece = dict[str, int](), 0
        for lp in loops:
            elements, stride = padded[lp.name] // lp.units, acc.strides.get(lp.name, 0)
            steps = elements // tensor.lanes if lp.name == acc.lane else elements
            strides[lp.name] = stride * steps
            piece += stride * (steps - 1)
        out.append(Footprint(strides, piece))
    return out


@dataclass(frozen=True)
class DivideWorkPass(ModulePass):
    """Sets the split of every kernel op that has none.

    Attributes:
        cores: how many cores to use at most; all of the card if not given.
        products: `fastest` lets products depart from the default division where the cost model finds another clearly
            faster, `published` as the front end of June 2026 does, `default` never.
    """

    name = "divide-work"

    cores: int | None = None
    products: Literal["fastest", "published", "default"] = "fastest"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Divide every kernel op of the module that has no split yet."""
        spec = spec_of(ctx, op)
        if self.cores is not None:
            if not 1 <= self.cores <= spec.cores_per_card:
                raise InputError(
                    f"divide-work was asked for {self.cores} cores, the card has {spec.cores_per_card}",
                    hint=f"give a number from 1 to {spec.cores_per_card}",
                )
            spec = replace(spec, cores_per_card=self.cores)
        whole = [o for o in op.walk() if isinstance(o, kernel.KernelOp) and all(d.split == 1 for d in o.space.data)]
        failures = Failures()
        for inner in whole:
            try:
                divide_kernel(inner, spec)
            except LoweringError as error:
                failures.meet(error, inner)
        failures.raise_all()
        for inner in whole if self.products != "default" else []:
            if inner.is_product:
                loops = loops_of(inner)
                choose = fastest if self.products == "fastest" else published
                inner.space = divided(inner.space, choose(inner, loops, footprints(inner, loops), spec))


def divide_kernel(op: kernel.KernelOp, spec: SpyreSpec, only: str | None = None) -> None:
    """Set the split of a kernel op over the cores.

    Args:
        op: the op.
        spec: the machine.
        only: the one loop that may be divided, if not all may.

    Raises:
        LoweringError: no split brings its operands within a core's reach.
    """
    loops = [lp if only in (None, lp.name) else replace(lp, divisible=False) for lp in loops_of(op)]
    operands = footprints(op, loops)
    try:
        splits = divide(loops, operands, spec)
    except SpanError as error:
        raise LoweringError(
            f"{op.function_name}: {error}",
            where=f"{op.name} at {describe_location(op)}",
            hint="use smaller tensors, or split the operation in the model",
        ) from error
    op.space = divided(op.space, splits)

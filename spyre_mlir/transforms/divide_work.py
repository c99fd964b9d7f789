"""Pass `divide-work`: divides the loops of every kernel op over the cores.

Equal slices only: whole sticks in the lanes, elements elsewhere. Spans come first, then the longest loops of the
result; what is left of the cores goes to the summed loop of a product, whose partial sums the cores add up. Ops that
are divided already stay as they are, such as those that `plan` has divided.

Decision: docs/decisions/0090-cores-share-the-table.md
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field, replace
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from spyre_mlir.dialects.ir.modules import ops_in
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.target import spec_of
from spyre_mlir.errors import InputError, LoweringError
from spyre_mlir.hw.division import SpanError, divide
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.transforms.kernel_to_superdsc.published_division import published
from spyre_mlir.transforms.plan_notes.notes import refuse_notes
from spyre_mlir.transforms.utils.hints import hinted_divisions, refuse_untiled, refused_division, settle_hints
from spyre_mlir.transforms.utils.kernels.loops import divided, footprints, loops_of
from spyre_mlir.transforms.utils.kernels.widened_weights import keeps_widened
from spyre_mlir.transforms.utils.patterns import apply_once
from spyre_mlir.transforms.utils.rebuild import Failures, describe_location


@dataclass(frozen=True)
class DivideWorkPass(ModulePass):
    """Sets the split of every kernel op that has none.

    Attributes:
        cores: how many cores to use at most; all of the card if not given.
        products: `published` divides products as torch-spyre's planner of October 2026 does.
    """

    name = "divide-work"

    cores: int | None = None
    products: Literal["default", "published"] = "default"

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
        kernels = [o for o in ops_in(op) if isinstance(o, kernel.KernelOp)]
        refuse_notes(op)
        settle_hints(kernels, spec)
        refuse_untiled(kernels, "the pass plan makes loops; run it before")
        loops = DivideLoops(spec)
        apply_once(loops, op.body)
        loops.failures.raise_all()
        if self.products == "published":
            apply_once(DivideProduct(spec, loops.divided), op.body)


@dataclass
class DivideLoops(RewritePattern):
    """Divides the loops of a kernel op that has no split yet.

    Attributes:
        spec: the machine.
        divided: the ops that had none.
        failures: errors about ops that no split suits.
    """

    spec: SpyreSpec
    divided: set[Operation] = field(default_factory=set[Operation])
    failures: Failures = field(default_factory=Failures)

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: kernel.KernelOp, rewriter: PatternRewriter, /) -> None:
        """Set the split of one op."""
        if any(d.split > 1 for d in op.space.data) or keeps_widened(op):
            return
        self.divided.add(op)
        try:
            divide_kernel(op, self.spec)
        except LoweringError as error:
            self.failures.meet(error, op)
        rewriter.notify_op_modified(op)


@dataclass
class DivideProduct(RewritePattern):
    """Gives a product the division that torch-spyre's planner chooses.

    Attributes:
        spec: the machine.
        divided: the ops whose division may change.
    """

    spec: SpyreSpec
    divided: Container[Operation]

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: kernel.KernelOp, rewriter: PatternRewriter, /) -> None:
        """Set the split of one product."""
        if op in self.divided and op.is_product and hinted_divisions(op, self.spec) is None:
            loops = loops_of(op)
            op.space = divided(op.space, published(op, loops, footprints(op, loops), self.spec))
            rewriter.notify_op_modified(op)


def divide_kernel(op: kernel.KernelOp, spec: SpyreSpec) -> None:
    """Set the split of a kernel op over the cores.

    Args:
        op: the op.
        spec: the machine.

    Raises:
        LoweringError: no split brings its operands within a core's reach.
        HintError: a hint asks for a division that is not legal.
    """
    if (hinted := hinted_divisions(op, spec)) is not None:
        if not hinted:
            raise refused_division(op, spec)
        op.space = divided(op.space, hinted[0])
        return
    loops = loops_of(op)
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

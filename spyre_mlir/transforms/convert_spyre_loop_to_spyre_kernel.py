"""Pass `convert-spyre-loop-to-spyre-kernel`: one hardware function per nest, on stick layouts.

Each nest gets one loop in the lanes. An operand in an unsuitable layout is sent in another one if it comes from
the host, else a restickify relays it out. The padding that a product reads beyond its operands' extents is set to 0
first. Work is not divided yet, and all tensors are in HBM.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.transforms.loop_to_kernel.conversion import PlansLayouts
from spyre_mlir.transforms.loop_to_kernel.layout_reasons import note_reasons


@dataclass(frozen=True)
class ConvertSpyreLoopToSpyreKernelPass(PlansLayouts):
    """Turns nests into hardware functions on device tensors.

    Attributes:
        keep_float32: store float32 tensors as they are instead of as DL16; a function without a form for them, and
            every product of matrices, still computes in DL16, its operands converted before.
        keep_float32_in: the same for some operations alone: by module, line or operator of the model, or by operation
            of kernels; functions are not called, as equal calls may differ in it.
        why: whether to note at kernels what `choose-layouts` has noted at nests, and which readers the inserted ones
            are for: `spyre.why`.
    """

    name = "convert-spyre-loop-to-spyre-kernel"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Convert every function of the module."""
        numbers = {one: number for number, one in enumerate(op.walk())} if self.why else {}
        planned = self.planned(ctx, op)
        if self.why:
            note_reasons([function.planner.chosen for function in planned], op, numbers)
        for function in planned:
            function.write()

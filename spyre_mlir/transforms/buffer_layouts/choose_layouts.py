"""Pass `choose-layouts`: says at every nest which loop is in the lanes, and how its result lies on the device.

```mlir
%0 = spyre.loop.nest [m = 4, n = 128] ins(%x[m, n] : …) -> [m, n] : tensor<4x128xf16>
  attributes {spyre.layout = #spyre.layout<lanes n, stick 1, order [1, 0]>} { … }
```
Tensors have no layouts before the conversion to kernels, so the choices are attributes (`spyre.layout`): a reader may
print the program here, change one and go on. The conversion follows them, and inserts what they ask for. Layouts
that the text has already stay, and are completed.

Where tensors are still laid out again, or kernels have few cores, other layouts are tried and priced (`repair`).

Decision: docs/decisions/0175-layouts-are-said-in-the-text.md
Decision: docs/decisions/0184-layouts-are-tried-where-they-cost.md
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from spyre_mlir.dialects.spyre.layout_choices import LAYOUT, WHY, LayoutAttr, LayoutChoice
from spyre_mlir.transforms.buffer_layouts.repair.planned_layouts import PlannedLayouts
from spyre_mlir.transforms.buffer_layouts.repair.prices import LayoutPricing
from spyre_mlir.transforms.buffer_layouts.repair.search import LayoutSearch
from spyre_mlir.transforms.convert_spyre_loop_to_spyre_kernel import ConvertSpyreLoopToSpyreKernelPass
from spyre_mlir.transforms.loop_to_kernel.conversion import FunctionPlan, PlansLayouts
from spyre_mlir.transforms.loop_to_kernel.layout_reasons import reason_of


@dataclass(frozen=True)
class ChooseLayoutsPass(PlansLayouts):
    """Chooses the layouts of all tensors that kernels make.

    Attributes:
        keep_float32: as for the conversion to kernels, where float32 tensors have sticks of their own.
        keep_float32_in: the same for some operations alone; no other layouts are tried then.
        why: whether to note at each nest, too, who chose its layout and which ones are legal: `spyre.why`.
        relaid: for how many sticks one counts that a change of layout of DL16 moves.
        repair: whether to try other layouts where a tensor is laid out again, or a nest has few cores.
        numbers: of the cost model that differ from its calibrated profile, as ``name=value``, for these trials.
    """

    name = "choose-layouts"

    repair: bool = True
    numbers: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Choose layouts in every function of the module."""
        planned = self.planned(ctx, op)
        if self.repair and not self.keep_float32_in:
            planned = self._repaired(ctx, op, planned)
        for function in planned:
            chosen = function.planner.chosen
            for nest, choice in chosen.choices().items():
                if self.why:
                    nest.attributes[WHY] = reason_of(chosen, nest).attribute
                nest.attributes[LAYOUT] = LayoutAttr(choice)
            function.say()
            function.take_back()

    def _repaired(self, ctx: Context, op: ModuleOp, planned: list[FunctionPlan]) -> list[FunctionPlan]:
        """The plans, or those with quicker layouts."""
        layouts = [PlannedLayouts.of(function) for function in planned]
        if not any(one.spots for one in layouts):
            return planned
        convert, pricing = (
            ConvertSpyreLoopToSpyreKernelPass(keep_float32=self.keep_float32),
            LayoutPricing(ctx, self.numbers),
        )
        tried = dict[Operation, LayoutChoice]()
        for search in (LayoutSearch.chains, LayoutSearch.better):
            for function in planned:
                function.take_back()
            better = search(LayoutSearch(op, convert, pricing), layouts)
            if not better:
                continue
            tried |= better
            for nest, choice in better.items():
                nest.attributes[LAYOUT] = LayoutAttr(choice)
            planned = self.planned(ctx, op)
            for function in planned:
                function.planner.chosen.tried = tried
            layouts = [PlannedLayouts.of(function) for function in planned]
        return planned

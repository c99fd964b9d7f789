"""Pass `choose-layouts`: says at every nest which loop is in the lanes, and how its result lies on the device.

```mlir
%0 = spyre.loop.nest [m = 4, n = 128] ins(%x[m, n] : …) -> [m, n] : tensor<4x128xf16>
  attributes {spyre.layout = #spyre.layout<lanes n, stick 1, order [1, 0]>} { … }
```
Tensors have no layouts before the conversion to kernels, so the choices are attributes (`spyre.layout`): a reader may
print the program here, change one and go on. The conversion follows them, and inserts what they ask for. Layouts
that the text has already stay, and are completed.

Decision: docs/decisions/0175-layouts-are-said-in-the-text.md
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.dialects.spyre.layout_choices import LAYOUT, WHY, LayoutAttr
from spyre_mlir.transforms.loop_to_kernel.conversion import PlansLayouts
from spyre_mlir.transforms.loop_to_kernel.layout_reasons import reason_of


@dataclass(frozen=True)
class ChooseLayoutsPass(PlansLayouts):
    """Chooses the layouts of all tensors that kernels make.

    Attributes:
        keep_float32: as for the conversion to kernels, where float32 tensors have sticks of their own.
        keep_float32_in: the same for some operations alone.
        why: whether to note at each nest, too, who chose its layout and which ones are legal: `spyre.why`.
    """

    name = "choose-layouts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Choose layouts in every function of the module."""
        for function in self.planned(ctx, op):
            chosen = function.planner.chosen
            for nest, choice in chosen.choices().items():
                if self.why:
                    nest.attributes[WHY] = reason_of(chosen, nest).attribute
                nest.attributes[LAYOUT] = LayoutAttr(choice)
            function.say()
            function.take_back()

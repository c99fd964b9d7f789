"""Pass `outline-regions`: turns equal regions of a function, such as the layers of a model, into calls of one function.

```mlir
func.func private @layers(%0: tensor<1x8x64xf32>, %weight: tensor<64x64xf32>, …) -> tensor<1x8x64xf32>
%1 = func.call @layers(%0, %w0, …)
%2 = func.call @layers(%1, %w1, …)
```
Regions are equal if their ops have equal names, arguments and types and read each other alike; weights, and whatever
else comes from outside, are parameters. A region becomes a function if it is there twice or more often and that saves
enough ops: two layers need 40 each, many need ten.

Decision: docs/decisions/0118-layers-once.md
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.transforms.regions.outlining import outline


@dataclass(frozen=True)
class OutlineRegionsPass(ModulePass):
    """Makes one function of equal regions."""

    name = "outline-regions"

    @override
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Outline the regions of every function of the module."""
        for function in functions(op):
            outline(op, function)

"""Pass `inline-loops`: puts loops over slices where they are called, so that one launch runs them and their neighbours.

```mlir
func.call @steps(%h, %x, %y) : (!t, !x, !x) -> ()
```
becomes the `scf.for` that is all of `@steps`. Such a function is called once; those of equal layers are called more
often, and stay. Nothing that the scratchpads or the pool hold outlives a call, so their places may be taken again.

Decision: docs/decisions/0197-loops-over-slices-are-loops-of-the-bundle.md
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from spyre_mlir.transforms.regions.inlining import inline_single_calls


@dataclass(frozen=True)
class InlineLoopsPass(ModulePass):
    """Replaces calls of functions that are called once by their ops."""

    name = "inline-loops"

    @override
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Inline the single calls of the module."""
        inline_single_calls(op)

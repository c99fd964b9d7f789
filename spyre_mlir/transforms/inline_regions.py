"""Pass `inline-regions`: replaces calls by the ops of the functions they call, so that the program is flat."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from spyre_mlir.transforms.regions.inlining import inline_all


@dataclass(frozen=True)
class InlineRegionsPass(ModulePass):
    """Replaces calls by the ops of their functions."""

    name = "inline-regions"

    @override
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Inline every call of the module."""
        inline_all(op)

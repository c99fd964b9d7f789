"""Base of passes that rewrite each function of a module by itself."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.target import spec_of
from spyre_mlir.hw.spec import SpyreSpec


@dataclass(frozen=True)
class FunctionPass(ModulePass):
    """A pass over the functions of a module that have a body, in the order of the module."""

    @override
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite every function of the module."""
        spec = spec_of(ctx, op)
        for function in functions(op):
            self.rewrite(function, spec)

    @abstractmethod
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Rewrite a function in place.

        Args:
            function: with a body, inside its module.
            spec: the card that the module is compiled for.
        """
        ...


__all__ = ["FunctionPass"]

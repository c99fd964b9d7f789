"""Observers of the passes that lower a program."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Protocol

from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.dialects.ir.modules import copy_of


class PassWatcher(Protocol):
    """Observer of every pass; the tools use one that logs and dumps."""

    def before(self, name: str, module: ModuleOp) -> object:
        """Called when a pass begins, with the module that it is about to change."""
        ...

    def after(self, name: str, module: ModuleOp) -> object:
        """Called when a pass has run; the module is not yet verified."""
        ...


@dataclass
class ModulesBefore:
    """Observer that keeps copies of the modules that passes were given; the last one where a program is lowered again.

    Attributes:
        names: of the passes.
        told: another observer, which is told of every pass.
        modules: by name of the pass, as soon as it has begun.
    """

    names: Collection[str]
    told: PassWatcher | None = None
    modules: dict[str, ModuleOp] = field(default_factory=dict[str, ModuleOp])

    def before(self, name: str, module: ModuleOp) -> None:
        """Keep a copy of the module if the pass is one of the names."""
        if name in self.names:
            self.modules[name] = copy_of(module)
        if self.told is not None:
            self.told.before(name, module)

    def after(self, name: str, module: ModuleOp) -> None:
        """Tell the other observer."""
        if self.told is not None:
            self.told.after(name, module)


__all__ = ["ModulesBefore", "PassWatcher"]

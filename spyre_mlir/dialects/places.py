"""Location of an op in the model: file, line and module path, as stored in MLIR locations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, NameLoc, StringAttr, UnknownLoc
from xdsl.ir import Attribute, Operation
from xdsl.traits import IsTerminator


@dataclass(frozen=True)
class Source:
    """A location in a model; unknown parts are None or empty.

    Attributes:
        file: path of the file, as torch recorded it.
        line: line in the file.
        module: path of the module, e.g. ``layers.0.mlp``; empty for the root.
    """

    file: str | None = None
    line: int = 0
    module: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file is not None else ""
        return f"{place} ({self.module})".strip() if self.module else place

    def __bool__(self) -> bool:
        return self.file is not None or bool(self.module)


def source_of(location: Attribute) -> Source:
    """Return the source of a location; an empty source where it holds none."""
    module = ""
    while isinstance(location, NameLoc):
        module, location = module or location.desc.data, location.location
    if isinstance(location, FileLineColLoc):
        return Source(location.filename.data, location.line.data, module)
    return Source(module=module)


def placed(name: str, location: Attribute) -> str:
    """Return the name of an operation with its place in the model, e.g. ``aten.relu at model.py:3``."""
    source = source_of(location)
    return f"{name} at {source}" if source else name


def location_of(source: Source) -> LocationAttr:
    """Return the MLIR location of a source."""
    known = source.file is not None
    place: LocationAttr = UnknownLoc()
    if known:
        place = FileLineColLoc(StringAttr(source.file or ""), IntAttr(source.line), IntAttr(0))
    return NameLoc(StringAttr(source.module), place) if source.module else place


def common_module(ops: Iterable[Operation]) -> str:
    """Return the module that all ops with a place are in; empty for the root."""
    common: list[str] | None = None
    for op in ops:
        if op.has_trait(IsTerminator, value_if_unregistered=False):
            continue
        source = source_of(op.location)
        parts = source.module.split(".")
        if common is None:
            common = parts if source else None
        elif source:
            pairs = enumerate(zip(common, parts, strict=False))
            common = common[: next((n for n, (a, b) in pairs if a != b), min(len(common), len(parts)))]
    return ".".join(common or ())


@dataclass(frozen=True)
class Rebase:
    """Places of the ops of a region at one of its calls: ``layers.0.mlp`` becomes ``layers.3.mlp``.

    The function of a region keeps the places of the layer that it was made from.

    Attributes:
        home: that layer's module.
        to: the module of the call; empty if it is not known, which leaves places as they are.
    """

    home: str = ""
    to: str = ""

    @staticmethod
    def of(ops: Iterable[Operation], call: Operation) -> Rebase:
        """Return the places of a function's ops at a call of it."""
        to = source_of(call.location).module
        parts, depth = common_module(ops).split("."), len(to.split("."))
        # Lowering may leave only ops of one submodule: the layer is as deep as the call says.
        return Rebase(".".join(parts[:depth]), to) if to and len(parts) >= depth else Rebase()

    def source(self, source: Source) -> Source:
        """Return a place at the call."""
        if not self.to or not f"{source.module}.".startswith(f"{self.home}."):
            return source
        return Source(source.file, source.line, self.to + source.module[len(self.home) :])

    def location(self, location: LocationAttr) -> LocationAttr:
        """Return a location at the call."""
        moved = self.source(source_of(location))
        return location_of(moved) if moved else location

    def text(self, text: str) -> str:
        """Return a message about places of the function as one about places at the call."""
        return re.sub(rf"(?<![\w.]){re.escape(self.home)}(?!\w)", lambda _: self.to, text) if self.to else text

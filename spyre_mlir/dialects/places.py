"""Location of an op in the model: file, line, module path and operator, as stored in MLIR locations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, NameLoc, StringAttr, UnknownLoc
from xdsl.ir import Attribute, Operation
from xdsl.traits import IsTerminator

_NUMBER = re.compile(r"#(\d+)")  # no module's path looks like it
_OPERATOR = "@"  # no module's path begins so


@dataclass(frozen=True)
class Source:
    """A location in a model; unknown parts are None or empty.

    Attributes:
        file: path of the file, as torch recorded it.
        line: line in the file.
        module: path of the module, e.g. ``layers.0.mlp``; empty for the root.
        number: of the op in its program, if the ops were `numbered`; 0 if not.
        operator: that the op was made for, e.g. ``aten.softmax.int``, if operators were `named`; no part of the place.
    """

    file: str | None = None
    line: int = 0
    module: str = ""
    number: int = 0
    operator: str = field(default="", compare=False)

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file is not None else ""
        return f"{place} ({self.module})".strip() if self.module else place

    def __bool__(self) -> bool:
        return self.file is not None or bool(self.module)


def source_of(location: Attribute) -> Source:
    """Return the source of a location; an empty source where it holds none."""
    module, number, operator = "", 0, ""
    while isinstance(location, NameLoc):
        name, location = location.desc.data, location.location
        if found := _NUMBER.fullmatch(name):
            number = int(found[1])
        elif name.startswith(_OPERATOR):
            operator = name.removeprefix(_OPERATOR)
        else:
            module = module or name
    if isinstance(location, FileLineColLoc):
        return Source(location.filename.data, location.line.data, module, number, operator)
    return Source(module=module, number=number, operator=operator)


def placed(name: str, location: Attribute) -> str:
    """Return the name of an operation with its place in the model, e.g. ``aten.relu at model.py:3``."""
    source = source_of(location)
    return f"{name} at {source}" if source else name


def location_of(source: Source) -> LocationAttr:
    """Return the MLIR location of a source."""
    place: LocationAttr = UnknownLoc()
    if source.file is not None:
        place = FileLineColLoc(StringAttr(source.file), IntAttr(source.line), IntAttr(0))
    place = NameLoc(StringAttr(source.module), place) if source.module else place
    place = NameLoc(StringAttr(f"{_OPERATOR}{source.operator}"), place) if source.operator else place
    return NameLoc(StringAttr(f"#{source.number}"), place) if source.number else place


def numbered(ops: Iterable[Operation]) -> None:
    """Number ops from 1 in their locations, which lowering keeps: of any op below, the op it was made for is known."""
    for number, op in enumerate(ops, start=1):
        op.location = location_of(replace(source_of(op.location), number=number))


def named(operators: Iterable[tuple[Operation, str]]) -> None:
    """Put names of operators into the locations of ops, which lowering keeps; see `Source.operator`."""
    for op, name in operators:
        op.location = location_of(replace(source_of(op.location), operator=name))


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
        shift: how much higher the numbers of ops are at the call, if they are `numbered`; None if they do not follow.
    """

    home: str = ""
    to: str = ""
    shift: int | None = None

    @staticmethod
    def of(ops: Iterable[Operation], call: Operation, function: Operation | None = None) -> Rebase:
        """Return the places of a function's ops at a call of it."""
        place, first = source_of(call.location), 0 if function is None else source_of(function.location).number
        shift = place.number - first if place.number and first else None
        parts, depth = common_module(ops).split("."), len(place.module.split("."))
        # Lowering may leave only ops of one submodule: the layer is as deep as the call says.
        if place.module and len(parts) >= depth:
            return Rebase(".".join(parts[:depth]), place.module, shift)
        return Rebase(shift=shift)

    def source(self, source: Source) -> Source:
        """Return a place at the call."""
        number = source.number + self.shift if self.shift is not None and source.number else 0
        if not self.to or not f"{source.module}.".startswith(f"{self.home}."):
            return replace(source, number=number)
        return replace(source, module=self.to + source.module[len(self.home) :], number=number)

    def location(self, location: LocationAttr) -> LocationAttr:
        """Return a location at the call."""
        source = source_of(location)
        return location_of(self.source(source)) if source or source.number or source.operator else location

    def text(self, text: str) -> str:
        """Return a message about places of the function as one about places at the call."""
        return re.sub(rf"(?<![\w.]){re.escape(self.home)}(?!\w)", lambda _: self.to, text) if self.to else text

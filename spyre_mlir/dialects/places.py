"""Location of an op in the model: file, line and module path, as stored in MLIR locations."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, NameLoc, StringAttr, UnknownLoc
from xdsl.ir import Attribute


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

    def moved(self, home: str, to: str) -> Source:
        """Return the same place in another module of the same kind: ``layers.0.mlp`` in ``layers.0`` is at `to`."""
        if not home or not to or not f"{self.module}.".startswith(f"{home}."):
            return self
        return Source(self.file, self.line, to + self.module[len(home) :])


def source_of(location: Attribute) -> Source:
    """Return the source of a location; an empty source where it holds none."""
    module = ""
    while isinstance(location, NameLoc):
        module, location = module or location.desc.data, location.location
    if isinstance(location, FileLineColLoc):
        return Source(location.filename.data, location.line.data, module)
    return Source(module=module)


def location_of(source: Source) -> LocationAttr:
    """Return the MLIR location of a source."""
    known = source.file is not None
    place: LocationAttr = UnknownLoc()
    if known:
        place = FileLineColLoc(StringAttr(source.file or ""), IntAttr(source.line), IntAttr(0))
    return NameLoc(StringAttr(source.module), place) if source.module else place

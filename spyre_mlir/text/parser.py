"""The parser of IR text: xDSL's, with MLIR's meaning of floats, and linear time where xDSL's is slower."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from difflib import get_close_matches
from typing import NoReturn

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, ModuleOp, StringAttr, UnknownLoc
from xdsl.ir import Attribute, Dialect, Operation, SSAValue, TypeAttribute
from xdsl.parser import UnresolvedOperand
from xdsl.utils.exceptions import UnregisteredConstructException, VerifyException

from spyre_mlir.text.internals import InternalsParser

_FLAT = r'<[^<>"]*>'
_NESTED = rf'<[^<>"]*(?:{_FLAT}[^<>"]*)*>'
_TWICE_NESTED = rf'<[^<>"]*(?:{_NESTED}[^<>"]*)*>'  # a tensor of an encoding of a list: as deep as ours get
_MEMO_TYPE = re.compile(rf"(?:tensor|memref|vector|![A-Za-z_][\w.$]*){_TWICE_NESTED}")


class NameScope(dict[str, tuple[SSAValue, ...]]):
    """Names of the visible values.

    xDSL copies this table at every region and restores the copy at its end. A region only ever adds
    names, so remembering the length is enough, and entering a region costs nothing.
    """

    def copy(self) -> SavedScope:
        """Save the present state; assigning it back to the parser restores it."""
        return SavedScope(self)


class SavedScope(dict[str, tuple[SSAValue, ...]]):
    """A saved state of a scope. Empty as a dictionary: the parser only ever hands it back."""

    def __init__(self, scope: NameScope) -> None:
        super().__init__()
        self._scope = scope
        self._size = len(scope)

    def restored(self) -> NameScope:
        """Remove the names added since, newest first, and return the scope."""
        for _ in range(len(self._scope) - self._size):
            self._scope.popitem()
        return self._scope


class SpyreParser(InternalsParser):
    """A parser of MLIR text.

    Beyond xDSL's parser it reads infinities and NaNs as upstream MLIR does, is linear in the number of
    regions, makes one object of equal types, gives every op that carries no location its line and
    column, and suggests names for operations it does not know.

    Args:
        ctx: dialects that may be loaded.
        input: the text.
        name: file name for messages and locations.
        locations: whether ops without a `loc(...)` get their place in this text.
        line_offset: lines of the file before the text, if the text is a chunk of a file.
    """

    def __init__(
        self,
        ctx: Context,
        input: str | bytes,
        name: str = "<unknown>",
        *,
        locations: bool = True,
        line_offset: int = 0,
    ) -> None:
        self._types: dict[str, TypeAttribute | None] = {}
        self._locations = locations
        self._line_offset = line_offset
        self._file = StringAttr(name)
        self._after_location = -1
        super().__init__(ctx, input, name)
        text = self.lexer.input.content
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))] if locations else [0]

    @property
    def ssa_values(self) -> dict[str, tuple[SSAValue, ...]]:
        """Values that can be named at this point."""
        return self._names

    @ssa_values.setter
    def ssa_values(  # pyright: ignore[reportIncompatibleVariableOverride] - a property in place of a field
        self, values: dict[str, tuple[SSAValue, ...]]
    ) -> None:
        self._names = values.restored() if isinstance(values, SavedScope) else NameScope(values)

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        """Parse a module, or the operations of one."""
        if self.at_end:
            self.raise_error("expected a module or an operation, got a text without any: the file is empty or cut off")
        return super().parse_module(allow_implicit_module)

    def parse_optional_attribute(self) -> Attribute | None:
        """Parse an attribute, if present; one that does not verify is reported at its text."""
        start = self.token_start
        try:
            return super().parse_optional_attribute()
        except VerifyException as error:
            self._does_not_verify(error, start)

    def parse_optional_type(self) -> TypeAttribute | None:
        """Parse a type, if present; a type whose text has been seen before is the same object again."""
        start = self.token_start
        try:
            return self._type_of_text()
        except VerifyException as error:
            self._does_not_verify(error, start)

    def _does_not_verify(self, error: VerifyException, start: int) -> NoReturn:
        read = self.lexer.input.content[start : self.token_start].rstrip()
        self.raise_error(str(error), start, start + max(1, len(read)))

    def _type_of_text(self) -> TypeAttribute | None:
        match = _MEMO_TYPE.match(self.lexer.input.content, self.token_start)
        if match is None:
            return super().parse_optional_type()
        text = match.group()
        if (known := self._types.get(text)) is not None:
            self.resume_at(match.end())
            return known
        parsed = super().parse_optional_type()
        if text not in self._types:
            self._types[text] = parsed if self._stands_behind(match.end()) else None
        return parsed

    def _stands_behind(self, end: int) -> bool:
        """Return whether the parser has read exactly up to `end`, blanks and comments aside."""
        here = self.token_start
        self.resume_at(end)
        same = self.token_start == here
        self.resume_at(here)
        return same

    def parse_operation(self) -> Operation:
        """Parse an operation; without a `loc(...)` its location is its position in this text."""
        start = self.token_start
        try:
            op = super().parse_operation()
        except VerifyException as error:
            # Formats hold types against the op's definition when the op is already read.
            self.raise_error(str(error), start, self._end_of_line(start))
        if self._locations and isinstance(op.location, UnknownLoc) and self._after_location != self.token_start:
            op.location = self.location_of(start)
        return op

    def _end_of_line(self, position: int) -> int:
        end = self.lexer.input.content.find("\n", position)
        return len(self.lexer.input.content) if end < 0 else end

    def resolve_operands(
        self, args: Sequence[UnresolvedOperand], input_types: Sequence[Attribute], error_pos: int
    ) -> Sequence[SSAValue]:
        """Resolve operands; a mismatch with the number of types is reported at the operands."""
        return super().resolve_operands(args, input_types, args[0].span.start if args else error_pos)

    def parse_optional_location(self) -> LocationAttr | None:
        """Parse a `loc(...)`, if present."""
        location = super().parse_optional_location()
        if location is not None:
            # A written `loc(unknown)` stays unknown: remember that a location ended here.
            self._after_location = self.token_start
        return location

    def location_of(self, position: int) -> FileLineColLoc:
        """Return file, line and column of a position of the text."""
        line = bisect_right(self._line_starts, position)
        column = position - self._line_starts[line - 1] + 1
        return FileLineColLoc(self._file, IntAttr(line + self._line_offset), IntAttr(column))

    def unknown_operation(self, name: str) -> NoReturn:
        """Report an unknown operation at its name, with the nearest known names."""
        here = self.token_start
        start = self.lexer.input.content.rfind(name, 0, here)
        message = f"Operation {name} is not registered{self._nearest(name)}"
        if start < 0:
            self.raise_error(message)
        self.raise_error(message, start, start + len(name))

    def _nearest(self, name: str) -> str:
        dialect_name, _ = Dialect.split_name(name) if "." in name else (name, "")
        known = {*self.ctx.registered_dialect_names, *(dialect.name for dialect in self.ctx.loaded_dialects)}
        if dialect_name not in known:
            close = get_close_matches(dialect_name, known, n=1)
            hint = f", did you mean '{close[0]}'?" if close else ""
            return f": there is no dialect '{dialect_name}'{hint}"
        try:
            dialect = self.ctx.get_optional_dialect(dialect_name)
        except UnregisteredConstructException:
            return ""
        names = [op.name for op in dialect.operations] if dialect is not None else []
        close = get_close_matches(name, names, n=3)
        return ": did you mean " + " or ".join(f"'{other}'" for other in close) + "?" if close else ""

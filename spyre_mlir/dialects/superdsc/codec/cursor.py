"""A place in a JSON value: typed navigation, and errors that name the place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from spyre_mlir.dialects.superdsc.dialect.verify import address_of
from spyre_mlir.dialects.superdsc.model.json_value import Json, as_int, as_int_map, as_ints, as_texts, spell
from spyre_mlir.errors import ReadError, UnsupportedError

_SHOWN = 60


class Misread(ReadError):
    """An access to a JSON value of unexpected type or content.

    Args:
        path: the JSON path.
        expected: what should be there.
        got: what is there.
    """

    def __init__(self, path: str, expected: str, got: str) -> None:
        super().__init__(f"expected {expected}, got {got}", where=path)
        self.path, self.expected, self.got = path, expected, got


class Cursor(NamedTuple):
    """A value and the JSON path that leads to it; a tuple, because a file has thousands of places."""

    value: Json
    path: str

    def fail(self, expected: str, got: str | None = None) -> NoReturn:
        """Refuse the value as wrong.

        Raises:
            Misread: always.
        """
        raise Misread(self.path, expected, self.shown if got is None else got)

    def unsupported(self, problem: str, hint: str | None = None) -> NoReturn:
        """Refuse the value as valid but unsupported.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(f"{problem}: {self.shown}", where=self.path, hint=hint)

    @property
    def shown(self) -> str:
        """Return the value as text, cut if it is long."""
        text = spell(self.value)
        return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"

    def __contains__(self, key: object) -> bool:
        return isinstance(self.value, dict) and key in self.value

    def at(self, key: str) -> Cursor:
        """Return a member of an object."""
        if not isinstance(self.value, dict):
            self.fail("an object")
        if key not in self.value:
            self.fail(f"a member {key!r}", f"members {list(self.value)}")
        return Cursor(self.value[key], f"{self.path}.{key}")

    def members(self) -> Iterator[tuple[str, Cursor]]:
        """Return the members of an object, in order."""
        if not isinstance(self.value, dict):
            self.fail("an object")
        for key, value in self.value.items():
            yield key, Cursor(value, f"{self.path}.{key}")

    def items(self) -> list[Cursor]:
        """Return the entries of a list."""
        if not isinstance(self.value, list):
            self.fail("a list")
        return [Cursor(value, f"{self.path}[{place}]") for place, value in enumerate(self.value)]

    def only(self) -> Cursor:
        """Return the entry of a list of one."""
        entries = self.items()
        if len(entries) != 1:
            self.fail("a list of one entry", f"{len(entries)} entries")
        return entries[0]

    def integer(self) -> int:
        """Return the integer here."""
        number = as_int(self.value)
        return self.fail("an integer") if number is None else number

    def number(self) -> int:
        """Return the integer here, written as a number or as a decimal string."""
        number = address_of(self.value)
        return self.fail("an integer or a decimal string") if number is None else number

    def text(self) -> str:
        """Return the string here."""
        return self.value if isinstance(self.value, str) else self.fail("a string")

    def texts(self) -> list[str]:
        """Return the list of strings here."""
        texts = as_texts(self.value)
        return self.fail("a list of strings") if texts is None else texts

    def integers(self) -> list[int]:
        """Return the list of integers here."""
        numbers = as_ints(self.value)
        return self.fail("a list of integers") if numbers is None else numbers

    def integer_map(self) -> dict[str, int]:
        """Return the object of integers here."""
        numbers = as_int_map(self.value)
        return self.fail("an object of integers") if numbers is None else numbers

    def must_be(self, expected: Json) -> None:
        """Refuse any other value."""
        if spell(self.value) != spell(expected):
            self.fail(spell(expected))

"""Tables of what plugins register at points of the compiler, in order of priority."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from enum import Enum
from typing import Generic, TypeVar

from spyre_mlir.errors import RegistrationError
from spyre_mlir.ops.call_info import Registered

Point = TypeVar("Point", bound=Enum)


class AtPoints(Generic[Point]):
    """Registered functions and passes by point; the highest priority comes first."""

    def __init__(self, points: type[Point], content: str) -> None:
        """Starts with nothing registered; `content` is the plural of what is, for messages."""
        self._points, self._content = points, content
        self._found: dict[Point, list[Registered]] = {}

    def point(self, name: Point | str) -> Point:
        """Return a point by its name.

        Raises:
            RegistrationError: there is no such point; the error lists them.
        """
        try:
            return self._points(name)
        except ValueError as error:
            known = ", ".join(str(point.value) for point in self._points)
            raise RegistrationError(
                f"there is no point {name!r} for {self._content}", hint=f"the points are {known}"
            ) from error

    def add(self, point: Point, registered: Registered) -> None:
        """Add a registration at a point, behind those of the same priority."""
        known = self._found.setdefault(point, [])
        known.append(registered)
        known.sort(key=lambda one: -one.priority)

    def at(self, point: Point) -> list[Registered]:
        """Return the registrations at a point, in execution order."""
        return list(self._found.get(point, ()))

    @contextmanager
    def isolated(self) -> Generator[None]:
        """Undo at the end of the block the registrations inside it."""
        before = {point: list(found) for point, found in self._found.items()}
        try:
            yield
        finally:
            self._found = before


__all__ = ["AtPoints"]

"""Hints: wishes of a program's author for the plan of an operation, as an attribute that all levels keep.

``{spyre.hint = {division = {"0" = 4 : i64, k = 2 : i64}, place = "lx"}}``. Keys of a division are names of loops of the
kernels, or numbers of dimensions of the result. A hint changes no result, so the attribute is discardable.

Decision: docs/decisions/0140-hints-are-notes.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Operation

from spyre_mlir.dialects.places import placed
from spyre_mlir.errors import InputError

HINT = "spyre.hint"
PLACES = ("lx", "hbm")
_FORM = 'for example {division = {"0" = 4 : i64}, place = "lx"}'


class HintError(InputError):
    """A hint that cannot be followed."""


@dataclass(frozen=True)
class Hint:
    """The hint at an operation.

    Attributes:
        division: slices by loop: its name, or the number of a dimension of the result.
        place: where the results are kept, `lx` or `hbm`; empty if that is left to the planner.
        op: number of the operation in its function, from which on what it became is told from other operations.
        rank: of the result of the operation.
    """

    division: Mapping[str, int] = field(default_factory=dict[str, int])
    place: str = ""
    op: int | None = None
    rank: int | None = None

    @property
    def attribute(self) -> DictionaryAttr:
        """The attribute that says it."""
        found: dict[str, Attribute] = {}
        if self.division:
            found["division"] = DictionaryAttr({k: IntegerAttr(n, i64) for k, n in self.division.items()})
        if self.place:
            found["place"] = StringAttr(self.place)
        numbers = {name: n for name, n in (("op", self.op), ("rank", self.rank)) if n is not None}
        return DictionaryAttr(found | {name: IntegerAttr(n, i64) for name, n in numbers.items()})

    def __bool__(self) -> bool:
        return bool(self.division or self.place)

    def put(self, op: Operation) -> None:
        """Set the hint of an operation; an empty one takes it away."""
        if self:
            op.attributes[HINT] = self.attribute
        else:
            op.attributes.pop(HINT, None)


def hint_of(op: Operation) -> Hint | None:
    """Return the hint at an operation; None if it has none.

    Raises:
        HintError: the attribute is no hint.
    """
    if (said := op.attributes.get(HINT)) is None:
        return None
    try:
        return checked(_plain(said))
    except HintError as error:
        raise HintError(error.message, where=placed(op.name, op.location), hint=error.hint) from error


def _plain(attribute: Attribute) -> Any:
    """The value of an attribute in Python; the attribute itself if it has none."""
    if isinstance(attribute, DictionaryAttr):
        return {name: _plain(value) for name, value in attribute.data.items()}
    if isinstance(attribute, IntegerAttr):
        return cast("IntegerAttr[Any]", attribute).value.data
    return attribute.data if isinstance(attribute, StringAttr) else attribute


def checked(said: object, form: str = _FORM) -> Hint:
    """Return a hint from its parts as plain values.

    Args:
        said: the parts.
        form: an example, for errors.

    Raises:
        HintError: a part is unknown, or has no such value.
    """
    if not isinstance(said, Mapping):
        raise HintError(f"a hint is a dictionary, got {said}", hint=form)
    parts = dict(cast("Mapping[str, Any]", said))
    division, place = parts.pop("division", {}), parts.pop("place", "")
    numbers = {name: parts.pop(name, None) for name in ("op", "rank")}
    for name, number in numbers.items():
        if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
            raise HintError(f"the {name} of a hint is a whole number, got {number!r}", hint=form)
    if parts:
        raise HintError(f"a hint has no part {next(iter(parts))!r}", hint=f"its parts are division and place, {form}")
    if place not in ("", *PLACES):
        raise HintError(f"the place of a hint is {' or '.join(PLACES)}, got {place!r}", hint=form)
    if not isinstance(division, Mapping):
        raise HintError(f"the division of a hint is slices by loop, got {division!r}", hint=form)
    slices: dict[str, int] = {}
    for key, count in cast("Mapping[object, object]", division).items():
        if isinstance(key, bool) or not isinstance(key, int | str):
            raise HintError(f"a loop is the number of a dimension or a name, got {key!r}", hint=form)
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise HintError(f"the slices of {key} are a whole number from 1 on, got {count!r}", hint=form)
        slices[str(key)] = count
    return Hint(slices, place, **numbers)


__all__ = ["HINT", "PLACES", "Hint", "HintError", "checked", "hint_of"]

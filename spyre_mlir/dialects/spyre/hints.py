"""Hints: wishes of a program's author for the plan of an operation, as an attribute that all levels keep.

``{spyre.hint = {division = {"0" = 4 : i64, k = 2 : i64}, tile = {"0" = 8 : i64}, place = "lx"}}``, and ``layout =
#spyre.layout<stick 0>``. Keys of a division and of a tile are names of loops of the kernels, or numbers of dimensions
of the result. A hint changes no result, so the attribute is discardable.

Decision: docs/decisions/0140-hints-are-notes.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Operation

from spyre_mlir.dialects.places import placed
from spyre_mlir.dialects.spyre.layout_choices import LayoutAttr, LayoutChoice
from spyre_mlir.errors import InputError
from spyre_mlir.hw.sticks import UNIT, dim_text

HINT = "spyre.hint"
PLACES = ("lx", "hbm")
_LAYOUT_FORM = 'for example layout={"stick": 0} or layout={"stick": -1, "order": [1, 0, 2]}'
_FORM = 'for example {division = {"0" = 4 : i64}, place = "lx"}'


class HintError(InputError):
    """A hint that cannot be followed."""


@dataclass(frozen=True)
class Hint:
    """The hint at an operation.

    Attributes:
        division: slices by loop: its name, or the number of a dimension of the result.
        place: where the results are kept, `lx` or `hbm`; empty if that is left to the planner.
        layout: how the results lie; None if that is left to the planner.
        tile: trips of the loops around the kernels, by loop like the division; 1 for no loop.
        op: number of the operation in its function, from which on what it became is told from other operations.
        rank: of the result of the operation.
    """

    division: Mapping[str, int] = field(default_factory=dict[str, int])
    place: str = ""
    layout: LayoutChoice | None = None
    tile: Mapping[str, int] = field(default_factory=dict[str, int])
    op: int | None = None
    rank: int | None = None

    @property
    def attribute(self) -> DictionaryAttr:
        """The attribute that says it."""
        found: dict[str, Attribute] = {}
        for part, counts in (("division", self.division), ("tile", self.tile)):
            if counts:
                found[part] = DictionaryAttr({k: IntegerAttr(n, i64) for k, n in counts.items()})
        if self.place:
            found["place"] = StringAttr(self.place)
        if self.layout is not None:
            found["layout"] = LayoutAttr(self.layout)
        numbers = {name: n for name, n in (("op", self.op), ("rank", self.rank)) if n is not None}
        return DictionaryAttr(found | {name: IntegerAttr(n, i64) for name, n in numbers.items()})

    @property
    def noted(self) -> dict[str, Any]:
        """Its parts as plain values, which `checked` reads and notes on nodes of torch keep."""
        said: dict[str, Any] = {"division": dict(self.division), "place": self.place, "tile": dict(self.tile)}
        if self.layout is not None:
            stick, order = self.layout.stick, [_noted_dim(dim) for dim in self.layout.order]
            parts = {"lanes": self.layout.lanes, "stick": None if stick is None else _noted_dim(stick), "order": order}
            said["layout"] = {name: part for name, part in parts.items() if part not in ("", None, [])}
        return said

    def __bool__(self) -> bool:
        return bool(self.division or self.tile or self.place or self.layout is not None)

    def put(self, op: Operation) -> None:
        """Set the hint of an operation; an empty one takes it away."""
        if self:
            op.attributes[HINT] = self.attribute
        else:
            op.attributes.pop(HINT, None)


def _noted_dim(dim: int) -> int | str:
    return dim_text(UNIT) if dim == UNIT else dim


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
    return attribute.data if isinstance(attribute, StringAttr | LayoutAttr) else attribute


def checked(said: object, form: str = _FORM, rank: int | None = None) -> Hint:
    """Return a hint from its parts as plain values.

    Args:
        said: the parts.
        form: an example, for errors.
        rank: of the result, if dimensions of its layout may be counted from the end.

    Raises:
        HintError: a part is unknown, or has no such value.
    """
    if not isinstance(said, Mapping):
        raise HintError(f"a hint is a dictionary, got {said}", hint=form)
    parts = dict(cast("Mapping[str, Any]", said))
    division, tile, place = parts.pop("division", {}), parts.pop("tile", {}), parts.pop("place", "")
    numbers = {name: parts.pop(name, None) for name in ("op", "rank")}
    for name, number in numbers.items():
        if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
            raise HintError(f"the {name} of a hint is a whole number, got {number!r}", hint=form)
    layout = _layout(parts.pop("layout", None), rank)
    if parts:
        known = "its parts are division, layout, place and tile"
        raise HintError(f"a hint has no part {next(iter(parts))!r}", hint=f"{known}, {form}")
    if place not in ("", *PLACES):
        raise HintError(f"the place of a hint is {' or '.join(PLACES)}, got {place!r}", hint=form)
    slices = _counts(division, "the division of a hint is slices by loop", "the slices of", form)
    trips = _counts(tile, "the tile of a hint is trips by loop", "the trips over", form)
    return Hint(slices, place, layout, trips, **numbers)


def _counts(said: object, whole: str, each: str, form: str) -> dict[str, int]:
    """Read numbers by loop.

    Raises:
        HintError: they are none; `whole` and `each` say what they should be.
    """
    if not isinstance(said, Mapping):
        raise HintError(f"{whole}, got {said!r}", hint=form)
    found: dict[str, int] = {}
    for key, count in cast("Mapping[object, object]", said).items():
        if isinstance(key, bool) or not isinstance(key, int | str):
            raise HintError(f"a loop is the number of a dimension or a name, got {key!r}", hint=form)
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise HintError(f"{each} {key} are a whole number from 1 on, got {count!r}", hint=form)
        found[str(key)] = count
    return found


def _layout(said: object, rank: int | None) -> LayoutChoice | None:
    """Read a layout from its parts.

    Raises:
        HintError: a part is unknown, or has no such value.
    """
    if said is None or isinstance(said, LayoutChoice):
        return said
    if not isinstance(said, Mapping) or not said:
        raise HintError(f"the layout of a hint is a dictionary, got {said!r}", hint=_LAYOUT_FORM)
    parts = dict(cast("Mapping[str, object]", said))
    lanes, stick, order = parts.pop("lanes", ""), parts.pop("stick", None), parts.pop("order", ())
    if parts:
        known = "its parts are stick, order and lanes"
        raise HintError(f"the layout of a hint has no part {next(iter(parts))!r}", hint=f"{known}, {_LAYOUT_FORM}")
    if not isinstance(lanes, str):
        raise HintError(f"the lanes of a layout are the name of a loop, got {lanes!r}", hint=_LAYOUT_FORM)
    if not isinstance(order, list | tuple):
        raise HintError(f"the order of a layout is a list of dimensions, got {order!r}", hint=_LAYOUT_FORM)
    dims = tuple(_dimension(dim, rank) for dim in cast("Sequence[object]", order))
    return LayoutChoice(lanes, None if stick is None else _dimension(stick, rank), dims)


def _dimension(said: object, rank: int | None) -> int:
    """The number of a dimension from the front; `UNIT` of one that a sparse layout has beside them."""
    if said == dim_text(UNIT):
        return UNIT
    if isinstance(said, bool) or not isinstance(said, int):
        raise HintError(f"a dimension of a layout is a number or 'unit', got {said!r}", hint=_LAYOUT_FORM)
    found = said if said >= 0 or rank is None else said + rank
    if found < 0 or (rank is not None and found >= rank):
        wanted = "from 0 on" if rank is None else f"from {-rank} to {rank - 1}"
        raise HintError(f"a layout names dimension {said}, expected one {wanted}", hint=_LAYOUT_FORM)
    return found


__all__ = ["HINT", "PLACES", "Hint", "HintError", "checked", "hint_of"]

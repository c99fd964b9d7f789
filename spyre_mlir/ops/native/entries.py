"""Entries of a tensor replaced, at places that the host knows.

Decision: docs/decisions/0218-entries-are-stored-in-place.md
Decision: docs/decisions/0253-prompts-fill-whole-pages.md
"""

from __future__ import annotations

from spyre_mlir.ops.annotations import Lanes, np
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.table import Sample, require

PUT_ENTRY = "spyre::put_entry"
PUT_PAGE = "spyre::put_page"


def put_entry_shape(
    self: tuple[int, ...],
    entry: tuple[int, ...],
    positions: tuple[int, ...],
    place: tuple[int, ...],
    *,
    dim: int,
    number: int,
    per: int = 1,
) -> tuple[int, ...]:
    """Shape of self, after a check of the other shapes."""
    counted = (dim,) if per == 1 else (dim, dim + 1)
    require("C1", per in (1, *self[dim + 1 : dim + 2]), f"{per} places in an entry of shape {self[dim + 1 :]}")
    wanted = tuple(1 if d in counted else e for d, e in enumerate(self))
    require("C2", entry == wanted, f"an entry of shape {entry}, expected {wanted}")
    require("C3", 0 <= number < int(np.prod(positions)), f"position {number} of shape {positions}")
    require("C4", place == (1,), f"a place of shape {place}, expected (1,)")
    return self


@ATEN.movement(aten=[PUT_ENTRY], shape=put_entry_shape)
def put_entry(
    self: Lanes, entry: Lanes, positions: Lanes, place: Lanes, *, dim: int, number: int, per: int = 1
) -> Lanes:
    """`self` with one entry of `dim` replaced, or one place of the `per` places, along `dim` + 1, of each entry.

    Of `positions`, integers that the host has, one says which it is, counted in places. `place` is the same number as
    a float, not negative: kernels compare it.

    Constraints:
        C1: per is 1, or the extent of the dimension behind dim.
        C2: entry has the shape of self, but for 1 along dim, and along the dimension behind it if per is not 1.
        C3: positions has an element with this number.
        C4: place is one number: this element, from the end if that is negative.
    """
    count = self.shape[dim] * per
    at = int(positions.reshape(-1)[number])
    inside = -count <= at < count and int(place.reshape(-1)[0]) == at % count
    require("C4", inside, f"place {place.reshape(-1)[0]} for position {at} of {count}")
    out = self.copy()
    where = (*(slice(None),) * dim, at % count // per, *((at % per,) if per > 1 else ()))
    out[where] = entry.reshape(out[where].shape)
    return out


ATEN.samples(
    put_entry,
    Sample(((4, 6, 2), (1, 1, 2), (1,), (1,)), {"dim": 0, "number": 0, "per": 6}, low=0.0, high=0.0),
    Sample(((4, 6, 2), (1, 1, 2), (1,), (1,)), {"dim": 0, "number": 0, "per": 5}, breaks="C1"),
    Sample(((4, 6, 2), (1, 1, 3), (1,), (1,)), {"dim": 0, "number": 0, "per": 6}, breaks="C2"),
    Sample(((4, 6, 2), (1, 6, 2), (1,), (1,)), {"dim": 0, "number": 1}, breaks="C3"),
    Sample(((4, 6, 2), (1, 6, 2), (1,), (2,)), {"dim": 0, "number": 0}, breaks="C4"),
)


def put_page_shape(
    self: tuple[int, ...], entry: tuple[int, ...], positions: tuple[int, ...], *, dim: int, number: int, count: int
) -> tuple[int, ...]:
    """Shape of self, after a check of the other shapes."""
    places = min(self[dim + 1 : dim + 2], default=0)
    require("C1", 0 < count <= places, f"{count} places of an entry of shape {self[dim + 1 :]}")
    wanted = (*self[:dim], 1, *self[dim + 1 :])
    require("C2", entry == wanted, f"an entry of shape {entry}, expected {wanted}")
    last, have = number + count, int(np.prod(positions))
    require("C3", number >= 0 and last <= have, f"positions {number} to {last - 1} of shape {positions}")
    return self


@ATEN.movement(aten=[PUT_PAGE], shape=put_page_shape)
def put_page(self: Lanes, entry: Lanes, positions: Lanes, *, dim: int, number: int, count: int) -> Lanes:
    """`self` with the first `count` places, along `dim` + 1, of one entry of `dim` replaced by those of `entry`.

    Of `positions`, integers that the host has, `count` from a number on are these places, counted through all entries.

    Constraints:
        C1: the dimension behind dim has as many places as are replaced, or more.
        C2: entry has the shape of self, but for 1 along dim.
        C3: positions has as many elements from this number on.
        C4: they are the first places of one entry, in order; from the end where they are negative.
    """
    per = self.shape[dim + 1]
    places = self.shape[dim] * per
    found = positions.reshape(-1)[number : number + count].astype(np.int64)
    found = np.where(found < 0, found + places, found)
    at = int(found[0])
    inside = 0 <= at < places and at % per == 0 and bool((found == at + np.arange(count)).all())
    require("C4", inside, f"positions {found[0]} to {found[-1]} of entries of {per} places")
    out, before = self.copy(), (slice(None),) * dim
    out[(*before, at // per, slice(count))] = entry[(*before, 0, slice(count))]
    return out


ATEN.samples(
    put_page,
    Sample(((4, 1, 2), (1, 1, 2), (1,)), {"dim": 0, "number": 0, "count": 1}, low=0.0, high=0.0),
    Sample(((4, 6, 2), (1, 6, 2), (6,)), {"dim": 0, "number": 0, "count": 7}, breaks="C1"),
    Sample(((4, 6, 2), (1, 5, 2), (6,)), {"dim": 0, "number": 0, "count": 6}, breaks="C2"),
    Sample(((4, 6, 2), (1, 6, 2), (6,)), {"dim": 0, "number": 1, "count": 6}, breaks="C3"),
    Sample(((4, 6, 2), (1, 6, 2), (6,)), {"dim": 0, "number": 0, "count": 6}, low=0.0, high=0.0, breaks="C4"),
)

__all__ = ["PUT_ENTRY", "PUT_PAGE", "put_entry", "put_page"]

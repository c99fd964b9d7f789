"""Heads whose channels a product with a named matrix moves, and rotations of parts of heads."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from xdsl.dialects.builtin import BFloat16Type, Float16Type, f32
from xdsl.ir import SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.formats import DL16
from spyre_mlir.transforms.aten_forms.recognition.rotations import Factor, Rotation
from spyre_mlir.transforms.utils.aten_ops import AtenWriter, erase_unread, is_open

# A product of more channels has a matrix that is no longer small beside them.
MOST_CHANNELS = 4 * DL16.elements_per_stick()
_WIDENING = "_to_copy"
# Parts of a table that are joined; more would be many kernels.
_MOST_PARTS = 3


def can_move(heads: SSAValue) -> bool:
    """Return whether a product moves channels of heads exactly: in half precision, which a model may widen."""
    widened = _widened(heads)
    narrow = element_of(heads if widened is None else widened.operands[0])
    return isinstance(narrow, Float16Type | BFloat16Type) and shape_of(heads)[-1] <= MOST_CHANNELS


def moved_heads(writer: AtenWriter, heads: SSAValue, mode: str, distance: int) -> SSAValue:
    """Write heads whose channels a named matrix moves; those that a model widens to float32 are moved before.

    Args:
        writer: where to.
        heads: [..., channels].
        mode: of `spyre::resample`.
        distance: its scale.
    """
    if (widened := _widened(heads)) is not None:
        made = moved_heads(writer, widened.operands[0], mode, distance)
        return writer.call(_WIDENING, widened, **{**widened.arguments(), "self": made})
    size, element = (shape_of(heads)[-1],) * 2, str(element_of(heads))
    matrix = writer.call("spyre::resample", size=size, mode=mode, scale=float(distance), dtype=element)
    turned = writer.call("linear", input=heads, weight=matrix)
    for made in (matrix.owner, turned.owner):
        if isinstance(made, AtenOp):
            made.wide = None
    return turned


def rotate(op: AtenOp, found: Rotation) -> bool:
    """Rotate all channels of heads in place of an op that ends a rotation of parts; return whether tables are known."""
    writer, heads = AtenWriter(op), found.heads
    own, turned = (_table(writer, f, stay) for f, stay in ((found.own, 1.0), (found.turned, 0.0)))
    if own is None or turned is None:
        return False
    if found.apart:
        heads = moved_heads(writer, heads, "taps", 2)
    there = writer.call("mul.Tensor", self=moved_heads(writer, heads, "turned", found.distance), other=turned)
    made = writer.call("add.Tensor", self=writer.call("mul.Tensor", self=heads, other=own), other=there, alpha=1)
    op.results[0].replace_all_uses_with(made)
    erase_unread(op)
    return True


def _widened(heads: SSAValue) -> AtenOp | None:
    """The op that widens heads to float32, before which they can be moved as well as behind it."""
    op = heads.owner
    if not isinstance(op, AtenOp) or op.overload != _WIDENING or element_of(heads) != f32:
        return None
    return op if is_open(op) else None


def _table(writer: AtenWriter, factors: Sequence[Factor], stay: float) -> SSAValue | None:
    """A table with a factor for each channel, `stay` for those without; None if it would have many parts."""
    tables = {factor[0] for factor in factors if factor is not None}
    if len(tables) != 1:
        return None
    (table,) = tables
    *lead, width = shape_of(table)
    places = [-1 if factor is None else factor[1] for factor in factors]
    if places == [n // 2 for n in range(2 * width)]:
        twice = writer.call("expand", self=writer.call("unsqueeze", self=table, dim=-1), size=(*lead, width, 2))
        return writer.call("view", self=twice, size=(*lead, 2 * width))
    runs = _runs(places)
    if len(runs) > _MOST_PARTS:
        return None
    known = [(first, count) for first, count in runs if first >= 0]
    if len(known) == 1:
        before = runs[0][1] if runs[0][0] < 0 else 0
        pad = (before, len(factors) - before - known[0][1])
        part = _part(writer, table, *known[0])
        return writer.call("constant_pad_nd", self=part, pad=pad, value=stay) if any(pad) else part
    size, element = tuple(lead), str(element_of(table))
    parts = [
        writer.call("full", size=(*size, count), fill_value=stay, dtype=element)
        if first < 0
        else _part(writer, table, first, count)
        for first, count in runs
    ]
    return writer.call("cat", tensors=parts, dim=-1)


def _runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """First place and number of places that follow one another; -1 and a number for channels that stay."""
    keys = [(-1, 0) if place < 0 else (place - n, 1) for n, place in enumerate(places)]
    groups = (list(group) for _, group in groupby(range(len(places)), keys.__getitem__))
    return [(places[group[0]], len(group)) for group in groups]


def _part(writer: AtenWriter, table: SSAValue, first: int, count: int) -> SSAValue:
    if (first, count) == (0, shape_of(table)[-1]):
        return table
    return writer.call("slice.Tensor", self=table, dim=-1, start=first, end=first + count, step=1)


__all__ = ["MOST_CHANNELS", "can_move", "moved_heads", "rotate"]

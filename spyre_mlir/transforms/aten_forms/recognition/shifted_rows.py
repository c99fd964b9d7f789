"""Rows of scores that a model moves by a view of other rows, each by its own number of places."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from spyre_mlir.dialects.argument_notes import counts_up
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.transforms.utils.aten_ops import arguments_of, is_open

_SLICE, _VIEW = "slice.Tensor", "view"
_PRODUCTS = ("matmul", "bmm")
_KEPT = (_VIEW, "permute", "unsqueeze", "squeeze.dims", "squeeze.dim", "clone")

# A reader of shifted rows, with the first column that it takes and the one behind the last.
Reader = tuple[AtenOp, int, int]


@dataclass(frozen=True)
class Shift:
    """Scores whose column j - i + offset comes to column j of row i.

    Attributes:
        product: makes the scores, or a tensor of the same rows.
        offset: where the first row begins.
        moved: the op that drops the first row of the view.
        readers: slices of the shifted rows; all columns that they take are scores of the same row.
    """

    product: AtenOp
    offset: int
    moved: AtenOp
    readers: tuple[Reader, ...]

    @property
    def scores(self) -> SSAValue:
        """The result of the product."""
        return self.product.results[0]

    @property
    def rows(self) -> int:
        """The rows of the scores."""
        return shape_of(self.scores)[-2]


def shift_of(op: AtenOp) -> Shift | None:
    """Return the shift that a slice is the middle of: rows of another length are seen, and the first is dropped."""
    if op.overload != _SLICE or not is_open(op) or not (viewed := _viewed(op)):
        return None
    before, (*_, rows, columns) = viewed, shape_of(viewed)
    readers = _readers(op, columns) if rows > 1 else None
    # Row i of the view begins behind i + 1 columns that other rows have.
    if readers is None or max(end for _, _, end in readers) - 1 + rows >= columns:
        return None
    joined = before.owner if isinstance(before.owner, AtenOp) and before.owner.overload == "cat" else None
    scores = before if joined is None else _behind_one_column(joined)
    product = None if scores is None or (joined and not before.has_one_use()) else _product_of(scores)
    return None if product is None else Shift(product, rows - (joined is not None), op, readers)


def _viewed(op: AtenOp) -> SSAValue | None:
    """The tensor whose rows are seen with another length, if a slice drops the first row of that view."""
    (view,), args = (v.owner for v in op.operands), arguments_of(op)
    if not isinstance(view, AtenOp) or view.overload != _VIEW or not view.results[0].has_one_use():
        return None
    seen, whole, dropped = shape_of(view.results[0]), shape_of(view.operands[0]), shape_of(op.results[0])
    if len(seen) < 2 or len(seen) != len(whole) or args["dim"] % len(seen) != len(seen) - 2:
        return None
    turned = seen[:-2] == whole[:-2] and seen[-2:] == whole[:-3:-1]
    return view.operands[0] if turned and dropped[-2] == seen[-2] - 1 and args["start"] == 1 else None


def _readers(op: AtenOp, columns: int) -> tuple[Reader, ...] | None:
    """The slices of the shifted rows; None if anything else reads them."""
    uses = list(op.results[0].uses)
    view = uses[0].operation if len(uses) == 1 else None
    if not isinstance(view, AtenOp) or view.overload != _VIEW or not is_open(view):
        return None
    shape, rows = shape_of(view.results[0]), shape_of(op.results[0])
    if shape != (*rows[:-2], rows[-1], columns - 1) or not view.results[0].uses:
        return None
    found = [_reader(use.operation, len(shape)) for use in view.results[0].uses]
    return tuple(r for r in found if r is not None) if all(r is not None for r in found) else None


def _reader(op: object, rank: int) -> Reader | None:
    """An op that takes neighbouring columns, and which."""
    if not isinstance(op, AtenOp) or not is_open(op) or op.overload not in (_SLICE, "index_select"):
        return None
    args, taken = arguments_of(op), shape_of(op.results[0])[-1]
    if args["dim"] % rank != rank - 1:
        return None
    if op.overload == _SLICE:
        start = args["start"] or 0
        return (op, start, start + taken) if args["step"] == 1 and start >= 0 else None
    return (op, 0, taken) if counts_up(args["index"]) else None


def _behind_one_column(op: AtenOp) -> SSAValue | None:
    """The tensor that a concatenation puts one column in front of, which no reader of shifted rows takes."""
    rank = len(shape_of(op.results[0]))
    if len(op.operands) != 2 or arguments_of(op)["dim"] % rank != rank - 1:
        return None
    return op.operands[1] if shape_of(op.operands[0])[-1] == 1 else None


def _product_of(scores: SSAValue) -> AtenOp | None:
    """The product whose rows and columns a tensor has, behind a batch; None if anything else reads them."""
    rows = shape_of(scores)[-2:]
    while isinstance(op := scores.owner, AtenOp) and scores.has_one_use() and is_open(op):
        if op.overload in _PRODUCTS:
            return op if shape_of(scores)[-2:] == rows and len(shape_of(op.operands[1])) > 1 else None
        if op.overload not in _KEPT or not _keeps_rows(op):
            return None
        scores = op.operands[0]
    return None


def _keeps_rows(op: AtenOp) -> bool:
    """Whether an op moves dimensions of one element alone, and leaves the last two of the others as they are."""
    before, after = ([e for e in shape_of(v) if e != 1] for v in (op.operands[0], op.results[0]))
    if op.overload == "permute":
        dims = [d % len(shape_of(op.results[0])) for d in arguments_of(op)["dims"]]
        kept = [d for d in dims if shape_of(op.operands[0])[d] != 1]
        return kept == sorted(kept)
    return len(before) > 1 and before[-2:] == after[-2:]


__all__ = ["Shift", "shift_of"]

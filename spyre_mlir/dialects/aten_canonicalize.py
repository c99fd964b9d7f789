"""Canonicalisation of the aten level: views, copies and arithmetic that change no bit of any element.

Nothing here depends on the numbers: a float plus 0 is no copy of the float (-0.0 + 0.0 is 0.0), nor is a float times 1
(a signalling NaN becomes a quiet one); integers allow both. Ops marked for the host stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from typing_extensions import override
from xdsl.dialects.builtin import IntegerType, i1
from xdsl.ir import Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.aten_arguments import as_arguments, said_arguments, to_attribute
from spyre_mlir.dialects.ir.canonicalization import Patterns
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.ops.index_views import IndexView, NotAView
from spyre_mlir.ops.native import movement, pointwise, views
from spyre_mlir.ops.table import Family, OpEntry

# Views that keep the order of the elements whatever the shape.
_RESHAPES = (views.view, views.squeeze, views.unsqueeze, views.alias)
_PERMUTATIONS = (views.permute, views.transpose, views.t)
_COPIES = (movement.clone, movement._to_copy, movement.cat)  # pyright: ignore[reportPrivateUsage] # ATen's own name
_NEUTRAL = ((pointwise.add, 0), (pointwise.sub, 0), (pointwise.mul, 1))


def _is_rounded(value: SSAValue) -> bool:
    """Return whether a tensor has no digits that another op would round away."""
    owner = value.owner
    if isinstance(owner, Block):
        return True
    return isinstance(owner, AtenOp) and owner.entry is not None and not owner.on_host and not owner.is_wide


def _passes_on(ops: Sequence[AtenOp], source: SSAValue) -> bool:
    """Return whether ops that move elements give those of `source` unchanged: neither they nor others round them."""
    return all(op.is_wide for op in ops) or _is_rounded(source)


def _moved(op: Operation | Block, *entries: OpEntry) -> AtenOp | None:
    """Return the op if it is a view of the device, by one of these entries if any are given."""
    if not isinstance(op, AtenOp) or op.on_host or op.entry is None or op.entry.family is not Family.VIEW:
        return None
    return op if not entries or op.entry in entries else None


def _applied(op: AtenOp, view: IndexView) -> IndexView | None:
    """Return a view of a view; None if it is none of the base."""
    entry = cast(OpEntry, op.entry)
    arguments = {name: value for name, value in op.arguments().items() if not isinstance(value, SSAValue)}
    try:
        return cast(IndexView, entry.meaning(view, **arguments))
    except NotAView:
        return None


def _undo_each_other(ops: Sequence[AtenOp], source: SSAValue) -> bool:
    """Return whether views, the first of `source`, give `source` back."""
    view: IndexView | None = IndexView.identity(shape_of(source))
    for op in ops:
        view = None if view is None else _applied(op, view)
    return view is not None and view.is_identity


@dataclass
class DropUndoneViews(RewritePattern):
    """Replaces a view that changes nothing, or undoes the view that it reads, by the tensor.

    ``permute(x, [0, 1])`` and ``t(t(x))`` become ``x``.
    """

    @override
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AtenOp, rewriter: PatternRewriter, /) -> None:
        """Rewrite one view."""
        chain: list[AtenOp] = []
        value = op.results[0]
        while len(chain) < 2 and (view := _moved(value.owner)) is not None:
            chain.insert(0, view)
            value = view.operands[0]
            if value.type == op.results[0].type and _undo_each_other(chain, value) and _passes_on(chain, value):
                rewriter.replace(op, (), [value])
                return


@dataclass
class SkipReshape(RewritePattern):
    """Makes a reshape read what another reshape reads: ``view(unsqueeze(x))`` becomes ``view(x)``."""

    @override
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AtenOp, rewriter: PatternRewriter, /) -> None:
        """Rewrite the operand of one reshape."""
        if _moved(op, views.view) is None or (inner := _moved(op.operands[0].owner, *_RESHAPES)) is None:
            return
        if not op.is_wide or _passes_on([inner], inner.operands[0]):
            op.operands[0] = inner.operands[0]
            rewriter.notify_op_modified(op)


@dataclass
class MergePermutes(RewritePattern):
    """Makes one permutation of two: ``permute(transpose(x, 0, 1), [2, 0, 1])`` becomes ``permute(x, [2, 1, 0])``."""

    @override
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AtenOp, rewriter: PatternRewriter, /) -> None:
        """Rewrite the operand and the order of one permutation."""
        if _moved(op, views.permute) is None or (inner := _moved(op.operands[0].owner, *_PERMUTATIONS)) is None:
            return
        # Extents say nothing about an order: 2 stands for each, as 1 has no index.
        view = _applied(inner, IndexView.identity((2,) * len(shape_of(op.operands[0]))))
        both = None if view is None else _applied(op, view)
        if both is not None and (not op.is_wide or _passes_on([inner], inner.operands[0])):
            op.operands[0] = inner.operands[0]
            order = to_attribute([axes[0] for axes in both.dims])
            op.given = as_arguments({**said_arguments(op.given), "dims": order})
            rewriter.notify_op_modified(op)


@dataclass
class DropCopy(RewritePattern):
    """Replaces a copy, a conversion to the type that the tensor has, and a `cat` of one tensor by the tensor."""

    @override
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AtenOp, rewriter: PatternRewriter, /) -> None:
        """Rewrite one copy."""
        if op.entry is None or op.entry.family is not Family.MOVEMENT or op.on_host or len(op.operands) != 1:
            return
        (source,) = op.operands
        if op.entry in _COPIES and source.type == op.results[0].type and _passes_on([op], source):
            rewriter.replace(op, (), [source])


@dataclass
class DropNeutralNumber(RewritePattern):
    """Replaces integers plus 0, minus 0 or times 1 by the integers."""

    @override
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AtenOp, rewriter: PatternRewriter, /) -> None:
        """Rewrite one op on a tensor and a number."""
        neutral = next((number for entry, number in _NEUTRAL if op.entry is entry), None)
        if neutral is None or op.on_host or len(op.operands) != 1:
            return
        (source,), number = op.operands, op.arguments()["other"]
        element = element_of(source)
        if not isinstance(element, IntegerType) or element == i1 or source.type != op.results[0].type:
            return
        if type(number) is int and number == neutral and _passes_on([op], source):
            rewriter.replace(op, (), [source])


PATTERNS: Patterns = {AtenOp: (DropUndoneViews(), SkipReshape(), MergePermutes(), DropCopy(), DropNeutralNumber())}

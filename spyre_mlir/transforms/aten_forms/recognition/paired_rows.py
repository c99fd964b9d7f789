"""Recognition of rows for pairs of a token and an expert that are in the order of tokens, and added up by weight.

So does IBM's Foundation Model Stack: products name the expert of each row, and a batched product with the weights of a
token's experts adds up its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from typing_extensions import override
from xdsl.ir import SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.ops.composed.nn.expert_mm import EXPERT_MM
from spyre_mlir.ops.table import Family
from spyre_mlir.transforms.aten_forms.recognition.sorted_rows import (
    COPIES,
    SHAPES,
    ExpertRows,
    Routing,
    RowWalk,
    chosen_by,
    has_rows,
    index_of,
    producer,
)
from spyre_mlir.transforms.utils.aten_ops import arguments_of, is_open

_VIEWS = ("view", "permute", "unsqueeze")


def paired_rows(total: AtenOp) -> ExpertRows | None:
    """Return the rows that a product with weights adds up by token; None if it is no such product.

    Args:
        total: an op; recognised is a `bmm` of tokens x width x choices with tokens x choices x 1.
    """
    if total.overload != "bmm" or not is_open(total):
        return None
    rows, weights = (_Labelled.of(value) for value in total.operands)
    if (rows.labels, weights.labels) != ((0, 2, 1), (0, 1, None)):
        return None
    product = _product_behind(rows.source)
    routing = None if product is None else _routing(product)
    if routing is None or shape_of(weights.source) != (routing.tokens, routing.choices):
        return None
    if shape_of(rows.source)[:2] != (routing.tokens, routing.choices):
        return None
    found = ExpertRows(routing, rows.source, weights=weights.source)
    walk = _Walk(found)
    return found if walk.takes(found.result) and walk.stays_inside({*rows.chain, total}) else None


@dataclass(frozen=True)
class _Labelled:
    """A tensor in which views have moved the dimensions of another one, and added dimensions of one.

    Attributes:
        source: the other tensor, of rank 3, or of rank 2.
        labels: by dimension, that of the source; None if it is an added one.
        chain: the views.
    """

    source: SSAValue
    labels: tuple[int | None, ...]
    chain: tuple[AtenOp, ...] = ()

    @staticmethod
    def of(value: SSAValue) -> _Labelled:
        """Return the source that is furthest behind, with all dimensions in place."""
        chain = list[AtenOp]()
        while isinstance(op := value.owner, AtenOp) and op.overload in _VIEWS and _keeps(op):
            chain.append(op)
            value = op.operands[0]
        labels: tuple[int | None, ...] = tuple(range(len(shape_of(value))))
        for op in reversed(chain):
            labels = _labels(op, labels)
        return _Labelled(value, labels, tuple(chain))


def _keeps(op: AtenOp) -> bool:
    """Whether a view moves dimensions and adds some of one, but parts and joins none."""
    if op.on_host:
        return False
    if op.overload != "view":
        return True
    return _long(shape_of(op.operands[0])) == _long(shape_of(op.results[0]))


def _long(shape: tuple[int, ...]) -> list[int]:
    return [extent for extent in shape if extent != 1]


def _labels(op: AtenOp, labels: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """Labels behind a view: dimensions of one are not told apart, so a view that has some forgets theirs."""
    args, before = arguments_of(op), shape_of(op.operands[0])
    if op.overload == "permute":
        order: Sequence[int] = args["dims"]
        return tuple(labels[dim] for dim in order)
    if op.overload == "unsqueeze":
        dim = args["dim"] % (len(before) + 1)
        return (*labels[:dim], None, *labels[dim:])
    if shape_of(op.results[0]) == before:
        return labels
    long = iter([label for label, extent in zip(labels, before, strict=True) if extent != 1])
    return tuple(None if extent == 1 else next(long) for extent in shape_of(op.results[0]))


def _product_behind(value: SSAValue) -> AtenOp | None:
    """The last product with matrices of experts that rows are computed from."""
    waiting, seen = [value], set[SSAValue]()
    while waiting:
        value = waiting.pop()
        if value in seen or not isinstance(op := value.owner, AtenOp):
            continue
        seen.add(value)
        if op.overload == EXPERT_MM:
            return op
        waiting += [v for v in op.operands if shape_of(v)[:1] == shape_of(op.results[0])[:1] or op.overload == "view"]
    return None


def _routing(product: AtenOp) -> Routing | None:
    """The routing that a product names; None if a token may have an expert twice."""
    args = arguments_of(product)
    mapping, experts = args["token_expert_mapping"], shape_of(args["moe_matrix"])[0]
    top = chosen_by(mapping)
    if top is None or shape_of(top.operands[0])[-1] != experts:
        return None
    tokens, choices = shape_of(mapping)
    return Routing(tokens, choices, experts, mapping) if tokens > 1 else None


class _Walk(RowWalk):
    """Walk over rows in the order of tokens."""

    def __init__(self, found: ExpertRows) -> None:
        super().__init__(found, EXPERT_MM)
        self._routing = found.routing

    @override
    def _is_gathered(self, op: AtenOp) -> bool:
        """Whether rows are gathered by expert."""
        source, index = arguments_of(op)["self"], index_of(op)
        if index is None or not self._is_chosen(index) or shape_of(source)[0] != self._routing.experts:
            return False
        self._found.experts[op.results[0]] = source
        return True

    def _is_chosen(self, numbers: SSAValue) -> bool:
        """Whether numbers are those of the experts in the order of rows."""
        return _unviewed(numbers) is _unviewed(self._routing.chosen)

    @override
    def _is_product(self, op: AtenOp) -> bool:
        """Whether a product multiplies the rows of tokens, or of pairs, with the matrices of the same experts."""
        args = arguments_of(op)
        rows, whole = args["input"], shape_of(args["moe_matrix"])[0] == self._routing.experts
        if not whole or not self._is_chosen(args["token_expert_mapping"]):
            return False
        if args["topk"] == self._routing.choices and shape_of(rows)[0] == self._routing.tokens:
            self._found.tokens[rows] = rows
            return True
        return args["topk"] == 1 and self.takes(rows)

    @override
    def _is_row_wise(self, op: AtenOp) -> bool:
        """Whether each row of an op follows from the same row of its operands, and from tensors without rows."""
        shape, dims = shape_of(op.results[0]), self._row_dims(op.results[0])
        if dims == 0:
            return False
        if op.overload == "view":
            before = self._row_dims(op.operands[0])
            return before > 0 and shape_of(op.operands[0])[before:] == shape[dims:] and self.takes(op.operands[0])
        if op.overload in SHAPES:
            extra, dim = op.overload == "unsqueeze", arguments_of(op)["dim"]
            return dim % (len(shape_of(op.operands[0])) + extra) >= dims and self.takes(op.operands[0])
        family = None if op.entry is None else op.entry.family
        if family is not Family.POINTWISE and op.overload not in COPIES:
            return False
        own = [v for v in op.operands if has_rows(v, op.results[0])]
        return bool(own) and all(shape_of(v)[:dims] == shape[:dims] and self.takes(v) for v in own)

    def _row_dims(self, value: SSAValue) -> int:
        """In how many dimensions a tensor has the rows; 0 if it has none."""
        shape, routing = shape_of(value), self._routing
        if shape[:2] == (routing.tokens, routing.choices):
            return 2
        return 1 if shape[:1] == (routing.rows,) else 0


def _unviewed(value: SSAValue) -> SSAValue:
    while (op := producer(value, "view", *COPIES)) is not None:
        value = op.operands[0]
    return value


__all__ = ["paired_rows"]

"""Recognition of rows that are sorted by expert, multiplied with the matrices of their experts, and put back.

A router gives each token some experts. A model then has a row for every pair of a token and an expert, sorts these
rows, computes products of groups with them, restores their order and adds up the rows of each token.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from typing_extensions import override
from xdsl.ir import Operation, SSAValue

from spyre_mlir.dialects.argument_notes import counts_up
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.ops.composed.nn.grouped_mm import GROUPED_MM
from spyre_mlir.ops.table import Family
from spyre_mlir.transforms.utils.aten_ops import arguments_of, is_open

COPIES = ("_to_copy", "clone")
SHAPES = ("slice.Tensor", "unsqueeze")


@dataclass(frozen=True)
class Routing:
    """Experts that a router chose for each token.

    Attributes:
        tokens: their number.
        choices: number of experts of a token, all different.
        experts: number of all experts.
        chosen: numbers of experts, tokens x choices in row-major order.
    """

    tokens: int
    choices: int
    experts: int
    chosen: SSAValue

    @property
    def rows(self) -> int:
        """Number of pairs of a token and one of its experts."""
        return self.tokens * self.choices


@dataclass(frozen=True)
class SortedRouting(Routing):
    """Experts by which rows are sorted.

    Attributes:
        by_expert: `chosen`, a vector, sorted in ascending order.
        order: by sorted row, its place in `chosen`.
    """

    by_expert: SSAValue
    order: SSAValue


@dataclass(frozen=True)
class ExpertRows:
    """Ops on rows of pairs of a token and an expert, up to those that are added up by token.

    Attributes:
        routing: the experts of each token.
        result: the rows that are added up.
        weights: numbers of tokens x choices by which they are multiplied before; None if there are none.
        tokens: by tensor of rows of tokens, its source, of `Routing.tokens` rows.
        pairs: by vector of rows, its source in the order of `Routing.chosen`: numbers of a token and an expert.
        experts: by tensor of rows gathered by expert, its source, of `Routing.experts` rows.
        steps: all other ops on rows, in order.
    """

    routing: Routing
    result: SSAValue
    weights: SSAValue | None = None
    tokens: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    pairs: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    experts: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    steps: list[AtenOp] = field(default_factory=list[AtenOp])

    @property
    def widest(self) -> int:
        """Most elements that a row has in the result of a step."""
        return max(_elements(op.results[0]) for op in self.steps) // self.routing.rows


@dataclass(frozen=True)
class SortedRows(ExpertRows):
    """Rows that are sorted by expert, up to those that are put back in order. Tensors have a row in dimension 0."""

    routing: SortedRouting


def sorted_rows(total: AtenOp) -> SortedRows | None:
    """Return the sorted rows that a sum over the experts of each token adds up; None if it is no such sum.

    Args:
        total: an op; recognised is a sum over dimension 1 of tokens x choices x width.
    """
    if total.overload != "sum.dim_IntList" or not is_open(total):
        return None
    args = arguments_of(total)
    by_token = producer(args["self"], "view")
    gather = None if by_token is None else producer(arguments_of(by_token)["self"], "index.Tensor")
    if by_token is None or gather is None or args["keepdim"]:
        return None
    routing, shape = _routing(gather), shape_of(by_token.results[0])
    if routing is None or len(shape) != 3 or shape[:2] != (routing.tokens, routing.choices):
        return None
    if args["dim"] not in (1, -2, (1,), (-2,)):
        return None
    found = SortedRows(routing, arguments_of(gather)["self"])
    walk = _Walk(found)
    inside = walk.takes(found.result) and walk.has_product and walk.stays_inside([gather])
    return found if inside else None


def _routing(gather: AtenOp) -> SortedRouting | None:
    """The routing behind a gather that puts sorted rows back in order; None if it is not recognised."""
    inverse = producer(index_of(gather), "index_put")
    if inverse is None or arguments_of(inverse)["accumulate"] or not counts_up(arguments_of(inverse)["values"]):
        return None
    order = arguments_of(inverse)["indices"]
    sort = producer(order[0], "sort") if len(order) == 1 else None
    if sort is None or order[0] is not sort.results[1] or arguments_of(sort)["descending"]:
        return None
    chosen = arguments_of(sort)["self"]
    if len(shape_of(chosen)) != 1 or shape_of(order[0]) != shape_of(arguments_of(inverse)["self"]):
        return None
    top = chosen_by(chosen)
    if top is None:
        return None
    (rows,), choices = shape_of(chosen), shape_of(top.results[1])[-1]
    experts, first, order = shape_of(top.operands[0])[-1], sort.results[0], sort.results[1]
    return SortedRouting(rows // choices, choices, experts, chosen, first, order) if rows > 1 else None


def chosen_by(numbers: SSAValue) -> AtenOp | None:
    """Return the op that chose different numbers in each row; None if it is not recognised."""
    while (op := producer(numbers, "view", *COPIES)) is not None:
        numbers = op.operands[0]
    top = producer(numbers, "topk")
    if top is None or numbers is not top.results[1]:
        return None
    return top if arguments_of(top)["dim"] in (-1, len(shape_of(top.operands[0])) - 1) else None


class RowWalk(ABC):
    """Walk from rows back to their sources, which it adds to them with the ops on the way."""

    def __init__(self, found: ExpertRows, product: str) -> None:
        """Starts at `found.result`.

        Args:
            found: gets the sources and the steps.
            product: the operator that multiplies rows with the matrices of their experts.
        """
        self._found, self._name = found, product
        self._seen = dict[SSAValue, bool]()
        self.has_product = False

    def takes(self, value: SSAValue) -> bool:
        """Return whether a value and all rows that it is computed from are understood, and note them."""
        if value not in self._seen:
            self._seen[value] = False
            self._seen[value] = isinstance(value.owner, AtenOp) and self._understands(value.owner)
        return self._seen[value]

    def stays_inside(self, readers: Collection[Operation]) -> bool:
        """Return whether nothing reads the result of a step but other steps and these."""
        inside = {*self._found.steps, *readers}
        return all(use.operation in inside for op in self._found.steps for use in op.results[0].uses)

    def _understands(self, op: AtenOp) -> bool:
        if not is_open(op) or len(op.results) != 1:
            return False
        if op.overload == "index.Tensor":
            return self._is_gathered(op)
        self.has_product |= (is_product := op.overload == self._name)
        if not (self._is_product(op) if is_product else self._is_row_wise(op)):
            return False
        self._found.steps.append(op)
        return True

    @abstractmethod
    def _is_gathered(self, op: AtenOp) -> bool:
        """Whether rows come from tensors of other rows, which are noted."""

    @abstractmethod
    def _is_product(self, op: AtenOp) -> bool:
        """Whether a product multiplies each row by the matrix of its expert."""

    @abstractmethod
    def _is_row_wise(self, op: AtenOp) -> bool:
        """Whether each row of an op follows from the same row of its operands, and from tensors without rows."""


class _Walk(RowWalk):
    """Walk over sorted rows."""

    def __init__(self, found: SortedRows) -> None:
        super().__init__(found, GROUPED_MM)
        self._routing = found.routing

    @override
    def _is_gathered(self, op: AtenOp) -> bool:
        """Whether rows come from tokens, from pairs of a token and an expert, or from experts."""
        source, index, routing = arguments_of(op)["self"], index_of(op), self._routing
        extents, value = shape_of(source), op.results[0]
        if index is routing.order and extents == (routing.rows,):
            self._found.pairs[value] = source
        elif index is routing.by_expert and extents[0] == routing.experts:
            self._found.experts[value] = source
        elif index is not None and _is_token(index, routing) and extents[0] == routing.tokens:
            self._found.tokens[value] = source
        else:
            return False
        return True

    @override
    def _is_product(self, op: AtenOp) -> bool:
        """Whether a grouped product multiplies each row by the matrix of its expert."""
        args = arguments_of(op)
        one_each = shape_of(args["weight"])[0] == self._routing.experts and _are_group_ends(args["offs"], self._routing)
        return one_each and self.takes(args["input"])

    @override
    def _is_row_wise(self, op: AtenOp) -> bool:
        """Whether each row of an op follows from the same row of its operands, and from tensors without rows."""
        family = None if op.entry is None else op.entry.family
        shape, value = shape_of(op.results[0]), op.results[0]
        if op.overload in SHAPES:
            extra, dim = op.overload == "unsqueeze", arguments_of(op)["dim"]
            return dim % (len(shape_of(op.operands[0])) + extra) != 0 and self.takes(op.operands[0])
        if (family is not Family.POINTWISE and op.overload not in COPIES) or shape[:1] != (self._routing.rows,):
            return False
        own = [v for v in op.operands if has_rows(v, value)]
        return bool(own) and all(self.takes(v) for v in own)


def has_rows(operand: SSAValue, result: SSAValue) -> bool:
    """Return whether the first dimension of an operand is that of the result."""
    mine, whole = shape_of(operand), shape_of(result)
    return len(mine) == len(whole) and mine[0] == whole[0]


def _is_token(index: SSAValue, routing: SortedRouting) -> bool:
    """Whether an index is the number of the token of each sorted row."""
    if routing.choices == 1 and index is routing.order:
        return True
    op = producer(index, "div.Tensor_mode")
    if op is None:
        return False
    args = arguments_of(op)
    return args["self"] is routing.order and _have(args, other=routing.choices, rounding_mode="floor")


def _are_group_ends(ends: SSAValue, routing: SortedRouting) -> bool:
    """Whether a vector has, for each expert, the number of the row behind its last."""
    total = producer(ends, "cumsum")
    counts = None if total is None else _without_copies(arguments_of(total)["self"])
    histogram = None if counts is None else producer(counts, "histc")
    if histogram is None:
        return False
    args = arguments_of(histogram)
    whole = _have(args, bins=routing.experts, min=0, max=routing.experts - 1)
    return whole and _without_copies(args["self"]) is routing.by_expert


def _without_copies(value: SSAValue) -> SSAValue:
    while (op := producer(value, *COPIES)) is not None:
        value = op.operands[0]
    return value


def index_of(op: AtenOp) -> SSAValue | None:
    """Return the index of a gather of rows; None if it has several, or chooses by truth values."""
    indices = arguments_of(op)["indices"]
    rows = len(indices) == 1 and indices[0] is not None and len(shape_of(indices[0])) == 1
    return indices[0] if rows and str(element_of(indices[0])) != "i1" else None


def producer(value: SSAValue | None, *overloads: str) -> AtenOp | None:
    """Return the op that made a value, if it is one of these."""
    op = None if value is None else value.owner
    return op if isinstance(op, AtenOp) and op.overload in overloads and not op.on_host else None


def _have(args: Mapping[str, Any], **wanted: object) -> bool:
    """Whether all these arguments have these values."""
    return all(args[name] == value for name, value in wanted.items())


def _elements(value: SSAValue) -> int:
    return prod(shape_of(value))


__all__ = [
    "COPIES",
    "SHAPES",
    "ExpertRows",
    "Routing",
    "RowWalk",
    "SortedRouting",
    "SortedRows",
    "chosen_by",
    "has_rows",
    "index_of",
    "producer",
    "sorted_rows",
]

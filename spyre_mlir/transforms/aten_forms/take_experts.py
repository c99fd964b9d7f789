"""Pass `take-experts`: multiplies the rows of few tokens with the matrices of their own experts, and reads no others.

```mlir
%ys = aten.call "transformers::grouped_mm_fallback"(%rows, %w, %ends) : (tensor<2x64xf16>, tensor<8x64x96xf16>, …)
```
becomes two products, if one token chose two experts. The host reads which ones, and says where their matrices start:
```mlir
%n0, %n1 = aten.call "aten.split.Tensor"(%chosen) {…} host because "…" : (tensor<2xi64>) -> (tensor<1xi64>, …)
%m0 = aten.index_select(%w, %n0) {dim = 0} attributes {spyre.placed} : … -> tensor<1x64x96xf16>
```

Decision: docs/decisions/0189-the-host-says-which-experts-are-read.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from typing_extensions import override
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerType, ModuleOp, TensorType, UnitAttr
from xdsl.ir import BlockArgument, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from spyre_mlir.dialects.aten import AtenOp, make_op
from spyre_mlir.dialects.aten_arguments import PLACED, spell_arguments
from spyre_mlir.dialects.ir.module_control import called_by_control
from spyre_mlir.dialects.spyre.host import SAYS_WHERE
from spyre_mlir.dialects.tensors import element_of, integer_bits, shape_of
from spyre_mlir.hw.cost_parameters import CALIBRATED, LAUNCH_US
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec
from spyre_mlir.ops.composed.nn.expert_mm import EXPERT_MM
from spyre_mlir.ops.composed.nn.grouped_mm import GROUPED_MM
from spyre_mlir.transforms.aten_forms.recognition.sorted_rows import SortedRows, has_rows, sorted_rows
from spyre_mlir.transforms.utils.aten_ops import AtenWriter, arguments_of, erase_unread, is_open, unshaped
from spyre_mlir.transforms.utils.function_pass import FunctionPass
from spyre_mlir.transforms.utils.host_support import mark

_TURNS = ("permute", "transpose.int")
_BYTES = DL16.bits // 8
# Each row has kernels of its own: more would take seconds to plan.
_MOST_ROWS = 64
_LEAST_BITS = 32  # of integers that number anything


@dataclass(frozen=True)
class TakeExpertsPass(FunctionPass):
    """Rewrites mixtures of experts with fewer rows than experts, outside of functions of control flow."""

    name = "take-experts"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Rewrite mixtures whose rows are few: sorted ones that are understood, and those that copy their matrices."""
        module = function.parent_op()
        if isinstance(module, ModuleOp) and function.sym_name.data in called_by_control(module):
            return
        ops = [o for o in function.body.block.ops if isinstance(o, AtenOp)]
        if any(op.overload == GROUPED_MM for op in ops):
            for total in ops:
                if total.parent is not None and (found := sorted_rows(total)) is not None and _pays_sorted(found):
                    _rewrite(total, found)
        _take_copied([op for op in ops if op.parent is not None])


def _pays(rows: int, weights: Sequence[SSAValue]) -> bool:
    """Whether it takes less time to read a matrix for each row, with the host's step between, than all matrices."""
    if rows > _MOST_ROWS or not all(map(_is_weight, weights)):
        return False
    spared = sum((shape_of(w)[0] - rows) * prod(shape_of(w)[1:]) for w in weights) * _BYTES
    launches = len(weights) * (rows - 1) + 1
    return CALIBRATED.link_us(rows * STICK_BYTES) + LAUNCH_US * launches < CALIBRATED.memory_us(spared)


def _pays_sorted(found: SortedRows) -> bool:
    weights = [arguments_of(op)["weight"] for op in found.steps if op.overload == GROUPED_MM]
    return _pays(found.routing.rows, weights)


def _is_weight(value: SSAValue) -> bool:
    """Whether a tensor is an argument, or one with its matrices turned."""
    while isinstance(turn := value.owner, AtenOp):
        if not _is_turn(turn):
            return False
        value = turn.operands[0]
    return isinstance(value, BlockArgument) and not isinstance(element_of(value), IntegerType)


def _is_turn(turn: AtenOp) -> bool:
    """Whether an op changes the order of dimensions, but for the first."""
    if turn.on_host or turn.overload not in _TURNS:
        return False
    args, rank = arguments_of(turn), len(shape_of(turn.results[0]))
    if turn.overload == "permute":
        return args["dims"][0] % rank == 0
    return 0 not in (args["dim0"] % rank, args["dim1"] % rank)


def _rewrite(total: AtenOp, found: SortedRows) -> None:
    writer = AtenWriter(total)
    result = _Pairs(writer, found, _read(found.routing.chosen, total)).total(total)
    _replace(total, result)


def _replace(op: AtenOp, result: SSAValue) -> None:
    result.name_hint = op.results[0].name_hint
    op.results[0].replace_all_uses_with(result)
    erase_unread(op)


def _read(numbers: SSAValue, before: AtenOp) -> Sequence[SSAValue]:
    """Numbers of a vector on the host, one by one; the host reads them in front of an op."""
    operands, attributes = spell_arguments({"self": numbers, "split_size": 1, "dim": 0}, SSAValue)
    types = [TensorType(element_of(numbers), (1,))] * shape_of(numbers)[0]
    step = make_op("split.Tensor", operands, attributes, types)
    step.location = before.location
    mark(step, SAYS_WHERE)
    Rewriter.insert_op(step, InsertPoint.before(before))
    return step.results


def _own(writer: AtenWriter, value: SSAValue, number: SSAValue) -> SSAValue:
    """The entry with a number in the first dimension of a weight, or of a weight whose matrices are turned."""
    turn = value.owner
    if isinstance(turn, AtenOp):
        args = arguments_of(turn)
        return writer.call(turn.overload, turn, **args | {"self": _own(writer, turn.operands[0], number)})
    taken = writer.call("index_select", self=value, dim=0, index=number)
    assert isinstance(taken.owner, AtenOp)
    taken.owner.attributes[PLACED] = UnitAttr()
    return taken


def _row(writer: AtenWriter, value: SSAValue, row: int) -> SSAValue:
    if shape_of(value)[0] == 1:
        return value
    return writer.call("slice.Tensor", self=value, dim=0, start=row, end=row + 1, step=1)


def _stacked(writer: AtenWriter, rows: Sequence[SSAValue]) -> SSAValue:
    return writer.call("cat", tensors=list(rows), dim=0)


class _Pairs:
    """Rows of pairs of a token and an expert, in the order in which the router gives them."""

    def __init__(self, writer: AtenWriter, found: SortedRows, numbers: Sequence[SSAValue]) -> None:
        """Takes the numbers of the experts on the host, one for each pair."""
        self._writer, self._found, self._routing, self._numbers = writer, found, found.routing, numbers
        self._made = dict(found.pairs)
        self._made |= {value: self._rows_of_experts(x) for value, x in found.experts.items()}

    def total(self, total: AtenOp) -> SSAValue:
        """Return the sum over the experts of each token."""
        for op in self._found.steps:
            self._made[op.results[0]] = self._product(op) if op.overload == GROUPED_MM else self._step(op)
        rows, routing = self._made[self._found.result], self._routing
        size = (routing.tokens, routing.choices, *shape_of(rows)[1:])
        by_token = self._writer.call("view", self=rows, size=size)
        dtype = arguments_of(total)["dtype"]
        return self._writer.call("sum.dim_IntList", self=by_token, dim=(1,), keepdim=False, dtype=dtype)

    def _rows_of_experts(self, value: SSAValue) -> SSAValue:
        """Rows such as biases, one for each pair, from a tensor with one for each expert."""
        if _is_weight(value):
            return _stacked(self._writer, [_own(self._writer, value, number) for number in self._numbers])
        return self._writer.call("index_select", self=value, dim=0, index=self._routing.chosen)

    def _rows(self, value: SSAValue) -> SSAValue:
        """All rows, in the order of the pairs, that stand for sorted rows."""
        if value not in self._made and value in self._found.tokens:
            rows = [self._one(value, pair) for pair in range(len(self._numbers))]
            self._made[value] = _stacked(self._writer, rows)
        return self._made[value]

    def _one(self, value: SSAValue, pair: int) -> SSAValue:
        """The row of a pair: that of its token, if rows come from tokens."""
        if value in self._found.tokens:
            return _row(self._writer, self._found.tokens[value], pair // self._routing.choices)
        return _row(self._writer, self._made[value], pair)

    def _product(self, op: AtenOp) -> SSAValue:
        args, made = arguments_of(op), list[SSAValue]()
        for pair, number in enumerate(self._numbers):
            matrix = _own(self._writer, args["weight"], number)
            matrix = self._writer.call("view", op, self=matrix, size=shape_of(matrix)[1:])
            made.append(self._writer.call("mm", op, self=self._one(args["input"], pair), other=matrix))
        return _stacked(self._writer, made)

    def _step(self, op: AtenOp) -> SSAValue:
        args, shapes = arguments_of(op), op.overload in ("slice.Tensor", "unsqueeze")
        own = {name: value for name, value in args.items() if value in op.operands}
        args |= {name: self._rows(v) for name, v in own.items() if shapes or has_rows(v, op.results[0])}
        return self._writer.call(op.overload, op, **args)


@dataclass(frozen=True)
class _Copied:
    """A product of rows with matrices of a weight that computed numbers name, copies of them or themselves.

    Attributes:
        op: the product.
        numbers: of the matrices, one for each product of a row.
        weight: the stacked matrices.
        turns: what turns the copies, the last one first.
        rows: rows x 1 x depth, or rows x depth x 1 or rows x depth if the matrices stand on the left.
        left: whether they do.
        each: how many matrices a row meets.
    """

    op: AtenOp
    numbers: SSAValue
    weight: SSAValue
    turns: tuple[AtenOp, ...]
    rows: SSAValue
    left: bool
    each: int = 1


def _take_copied(ops: Sequence[AtenOp]) -> None:
    """Rewrite products with numbered matrices, and copies of rows of weights that the same numbers name."""
    by_numbers = dict[SSAValue, list[_Copied]]()
    for op in ops:
        if (found := _copied(op) or _expert_mm(op)) is not None:
            by_numbers.setdefault(unshaped(found.numbers), []).append(found)
    for source, products in by_numbers.items():
        if not _pays(prod(shape_of(source)), [p.weight for p in products]):
            continue
        copies = [op for op in ops if _copy_of(op, source) is not None]
        first = next(op for op in ops if op in copies or any(op is p.op for p in products))
        vector = AtenWriter(first).call("view", self=source, size=(prod(shape_of(source)),))
        numbers = _read(vector, first)
        for product in products:
            _replace(product.op, _with_matrices(product, numbers))
        for op in [op for op in copies if op.parent is not None]:
            table, writer = _copy_of(op, source), AtenWriter(op)
            if table is not None and len(shape_of(table)) == 2 and _is_weight(table):
                _replace(op, _stacked(writer, [_own(writer, table, number) for number in numbers]))


def _expert_mm(op: AtenOp) -> _Copied | None:
    if op.overload != EXPERT_MM or not is_open(op):
        return None
    args = arguments_of(op)
    numbers, weight = args["token_expert_mapping"], args["moe_matrix"]
    if isinstance(unshaped(numbers), BlockArgument) or integer_bits(element_of(numbers)) < _LEAST_BITS:
        return None
    return _Copied(op, numbers, weight, (), args["input"], left=True, each=args["topk"])


def _copied(op: AtenOp) -> _Copied | None:
    if op.overload != "bmm" or not is_open(op):
        return None
    for number in (0, 1):
        value, rows, turns = op.operands[number], op.operands[1 - number], list[AtenOp]()
        while isinstance(turn := value.owner, AtenOp) and _is_turn(turn):
            turns.append(turn)
            value = turn.operands[0]
        numbers = _numbers(turn)
        weight = None if numbers is None or not isinstance(turn, AtenOp) else _copy_of(turn, unshaped(numbers))
        if numbers is None or weight is None or len(shape_of(weight)) != 3:
            continue
        if shape_of(rows)[2 if number == 0 else 1] == 1:
            return _Copied(op, numbers, weight, tuple(turns), rows, number == 0)
    return None


def _numbers(op: object) -> SSAValue | None:
    """The vector of computed integers by which an op copies entries of the first dimension; None for other ops."""
    if not isinstance(op, AtenOp) or op.on_host or op.overload not in ("index.Tensor", "index_select"):
        return None
    args = arguments_of(op)
    if op.overload == "index_select":
        found = [args["index"]] if args["dim"] == 0 and PLACED not in op.attributes else []
    else:
        found = args["indices"]
    if len(found) != 1 or found[0] is None or isinstance(found[0], BlockArgument) or len(shape_of(found[0])) != 1:
        return None
    return found[0] if integer_bits(element_of(found[0])) >= _LEAST_BITS else None


def _copy_of(op: AtenOp, source: SSAValue) -> SSAValue | None:
    """The tensor of which an op copies the entries that a vector of some numbers names; None for other ops."""
    numbers = _numbers(op)
    return arguments_of(op)["self"] if numbers is not None and unshaped(numbers) is source else None


def _with_matrices(product: _Copied, numbers: Sequence[SSAValue]) -> SSAValue:
    """The product with parts of the weight in place of their copies."""
    op, writer, made = product.op, AtenWriter(product.op), list[SSAValue]()
    for row, number in enumerate(numbers):
        matrix = _own(writer, product.weight, number)
        for turn in reversed(product.turns):
            matrix = writer.call(turn.overload, turn, **arguments_of(turn) | {"self": matrix})
        if product.left:
            matrix = writer.call("permute", self=matrix, dims=(0, 2, 1))
        depth, columns = shape_of(matrix)[1:]
        matrix = writer.call("view", self=matrix, size=(depth, columns))
        one = writer.call("view", self=_row(writer, product.rows, row // product.each), size=(1, depth))
        made.append(writer.call("mm", self=one, other=matrix))
    return writer.call("view", self=_stacked(writer, made), size=shape_of(op.results[0]))

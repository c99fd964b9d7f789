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
from spyre_mlir.dialects.ir.control import called_by_control
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.cost_parameters import LAUNCH_US, PROFILES
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec
from spyre_mlir.ops.composed.nn.grouped_mm import GROUPED_MM
from spyre_mlir.transforms.aten_forms.recognition.sorted_rows import SortedRows, has_rows, sorted_rows
from spyre_mlir.transforms.utils.aten_ops import AtenWriter, arguments_of, erase_unread
from spyre_mlir.transforms.utils.function_pass import FunctionPass
from spyre_mlir.transforms.utils.host_support import SAYS_WHERE, mark

_TURNS = ("permute", "transpose.int")
_BYTES = DL16.bits // 8
_NS_PER_US = 1000.0
# Each row has kernels of its own: more would take seconds to plan.
_MOST_ROWS = 64


@dataclass(frozen=True)
class TakeExpertsPass(FunctionPass):
    """Rewrites mixtures of experts with fewer rows than experts, outside of functions of control flow."""

    name = "take-experts"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Rewrite every sum over the experts of each token whose rows are understood, and few."""
        module = function.parent_op()
        if isinstance(module, ModuleOp) and function.sym_name.data in called_by_control(module):
            return
        ops = [o for o in function.body.block.ops if isinstance(o, AtenOp)]
        if any(op.overload == GROUPED_MM for op in ops):
            for total in ops:
                if total.parent is not None and (found := sorted_rows(total)) is not None and _pays(found):
                    _rewrite(total, found)


def _pays(found: SortedRows) -> bool:
    """Whether it takes less time to read a matrix for each row, with the host's step between, than all matrices."""
    routing, numbers = found.routing, PROFILES["calibrated"]
    weights = [arguments_of(op)["weight"] for op in found.steps if op.overload == GROUPED_MM]
    if routing.rows > _MOST_ROWS or not all(map(_is_weight, weights)):
        return False
    one_us = sum(prod(shape_of(w)[1:]) for w in weights) * _BYTES / numbers.hbm_gb_per_s / _NS_PER_US
    link_us = routing.rows * STICK_BYTES / numbers.host_link_gb_per_s / _NS_PER_US
    launches_us = LAUNCH_US * len(weights) * (routing.rows - 1) + LAUNCH_US
    return routing.rows * one_us + link_us + launches_us < routing.experts * one_us


def _is_weight(value: SSAValue) -> bool:
    """Whether a tensor is an argument, or one with its matrices turned."""
    while isinstance(turn := value.owner, AtenOp):
        if turn.on_host or turn.overload not in _TURNS or not _keeps_first(turn):
            return False
        value = turn.operands[0]
    return isinstance(value, BlockArgument) and not isinstance(element_of(value), IntegerType)


def _keeps_first(turn: AtenOp) -> bool:
    args, rank = arguments_of(turn), len(shape_of(turn.results[0]))
    if turn.overload == "permute":
        return args["dims"][0] % rank == 0
    return 0 not in (args["dim0"] % rank, args["dim1"] % rank)


def _rewrite(total: AtenOp, found: SortedRows) -> None:
    pairs = _Pairs(AtenWriter(total), total, found)
    result = pairs.total(total)
    result.name_hint = total.results[0].name_hint
    total.results[0].replace_all_uses_with(result)
    erase_unread(total)


class _Pairs:
    """Rows of pairs of a token and an expert, in the order in which the router gives them."""

    def __init__(self, writer: AtenWriter, total: AtenOp, found: SortedRows) -> None:
        self._writer, self._found, self._routing = writer, found, found.routing
        self._numbers = self._read(total)
        self._made = dict(found.pairs)
        self._made |= {value: self._rows_of_experts(x) for value, x in found.experts.items()}

    def _read(self, total: AtenOp) -> Sequence[SSAValue]:
        """The numbers of the experts on the host, one for each pair."""
        chosen = self._routing.chosen
        operands, attributes = spell_arguments({"self": chosen, "split_size": 1, "dim": 0}, SSAValue)
        types = [TensorType(element_of(chosen), (1,))] * self._routing.rows
        step = make_op("split.Tensor", operands, attributes, types)
        step.location = total.location
        mark(step, SAYS_WHERE)
        Rewriter.insert_op(step, InsertPoint.before(total))
        return step.results

    def total(self, total: AtenOp) -> SSAValue:
        for op in self._found.steps:
            self._made[op.results[0]] = self._product(op) if op.overload == GROUPED_MM else self._step(op)
        rows, routing = self._made[self._found.result], self._routing
        size = (routing.tokens, routing.choices, *shape_of(rows)[1:])
        by_token = self._writer.call("view", self=rows, size=size)
        args = arguments_of(total)
        return self._writer.call("sum.dim_IntList", self=by_token, dim=(1,), keepdim=False, dtype=args["dtype"])

    def _own(self, value: SSAValue, number: SSAValue) -> SSAValue:
        """The row that an expert has in a tensor with one for each expert: a view of a weight, taken of the weight."""
        turn = value.owner
        if isinstance(turn, AtenOp):
            args = arguments_of(turn)
            return self._writer.call(turn.overload, turn, **args | {"self": self._own(turn.operands[0], number)})
        taken = self._writer.call("index_select", self=value, dim=0, index=number)
        assert isinstance(taken.owner, AtenOp)
        taken.owner.attributes[PLACED] = UnitAttr()
        return taken

    def _rows_of_experts(self, value: SSAValue) -> SSAValue:
        """Rows such as biases, one for each pair, from a tensor with one for each expert."""
        if _is_weight(value):
            return self._stacked([self._own(value, number) for number in self._numbers])
        return self._writer.call("index_select", self=value, dim=0, index=self._routing.chosen)

    def _stacked(self, rows: Sequence[SSAValue]) -> SSAValue:
        return self._writer.call("cat", tensors=list(rows), dim=0)

    def _rows(self, value: SSAValue) -> SSAValue:
        """All rows, in the order of the pairs, that stand for sorted rows."""
        if value not in self._made and value in self._found.tokens:
            self._made[value] = self._stacked([self._row(value, pair) for pair in range(len(self._numbers))])
        return self._made[value]

    def _row(self, value: SSAValue, pair: int) -> SSAValue:
        if value in self._found.tokens:
            value, pair = self._found.tokens[value], pair // self._routing.choices
        else:
            value = self._made[value]
        if shape_of(value)[0] == 1:
            return value
        return self._writer.call("slice.Tensor", self=value, dim=0, start=pair, end=pair + 1, step=1)

    def _product(self, op: AtenOp) -> SSAValue:
        args = arguments_of(op)
        made: list[SSAValue] = []
        for pair, number in enumerate(self._numbers):
            matrix = self._own(args["weight"], number)
            matrix = self._writer.call("view", op, self=matrix, size=shape_of(matrix)[1:])
            made.append(self._writer.call("mm", op, self=self._row(args["input"], pair), other=matrix))
        return self._stacked(made)

    def _step(self, op: AtenOp) -> SSAValue:
        args = arguments_of(op)
        own = {name: value for name, value in args.items() if value in op.operands}
        args |= {name: self._rows(value) for name, value in own.items() if has_rows(value, op.results[0])}
        if op.overload == "unsqueeze" or op.overload == "slice.Tensor":
            args["self"] = self._rows(op.operands[0])
        return self._writer.call(op.overload, op, **args)

"""Pass `spread-experts`: computes all tokens with every expert, and adds up the results of the experts they chose.

```mlir
%ys = aten.call "transformers::grouped_mm_fallback"(%rows, %w, %ends) : (tensor<2048x64xf16>, tensor<128x64x96xf16>, …)
```
becomes a product of 256 tokens with each of 128 matrices, if each token chose 8 experts:
```mlir
%ys = aten.bmm(%tokens, %w) : (tensor<128x256x64xf16>, tensor<128x64x96xf16>) -> tensor<128x256x96xf16>
```
Which rows belong to an expert is data, and the device has no loop whose bounds are data. A grouped product therefore
multiplies every row by every matrix, and there are as many sorted rows as tokens times the experts of each.

Decision: docs/decisions/0178-all-tokens-meet-all-experts.md
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from typing_extensions import override
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.aten_arguments import TERMS
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.ops.composed.nn.expert_mm import EXPERT_MM
from spyre_mlir.ops.composed.nn.grouped_mm import GROUPED_MM, groups_at_once
from spyre_mlir.transforms.aten_forms.recognition.paired_rows import paired_rows
from spyre_mlir.transforms.aten_forms.recognition.sorted_rows import ExpertRows, has_rows, sorted_rows
from spyre_mlir.transforms.utils.aten_ops import AtenWriter, arguments_of, erase_unread
from spyre_mlir.transforms.utils.function_pass import FunctionPass

_PRODUCTS = (GROUPED_MM, EXPERT_MM)


@dataclass(frozen=True)
class SpreadExpertsPass(FunctionPass):
    """Rewrites mixtures of experts with rows in the order of experts, which are put back, or of tokens."""

    name = "spread-experts"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Rewrite every sum over the experts of each token whose rows are understood."""
        ops = [o for o in function.body.block.ops if isinstance(o, AtenOp)]
        for product, recognise in ((GROUPED_MM, sorted_rows), (EXPERT_MM, paired_rows)):
            if any(op.overload == product for op in ops):
                for total in ops:
                    if total.parent is not None and (found := recognise(total)) is not None:
                        _rewrite(total, found)


def _rewrite(total: AtenOp, found: ExpertRows) -> None:
    """Replace a sum over experts, and erase the ops on rows."""
    routing = found.routing
    together = groups_at_once(routing.experts, routing.tokens * found.widest)
    parts = range(0, routing.experts, together)
    writer = AtenWriter(total)
    choices = _Choices(writer, found)
    sums = [_Spread(writer, found, choices, first, first + together).total(total) for first in parts]
    result = reduce(lambda a, b: writer.call("add.Tensor", self=a, other=b), sums)
    if shape_of(result) != shape_of(total.results[0]):  # a product has one column
        result = writer.call("view", self=result, size=shape_of(total.results[0]))
    result.name_hint = total.results[0].name_hint
    total.results[0].replace_all_uses_with(result)
    erase_unread(total)


class _Choices:
    """Choices of a router as tensors of experts x tokens."""

    def __init__(self, writer: AtenWriter, found: ExpertRows) -> None:
        """Takes rows of these choices."""
        self._writer, self._routing = writer, found.routing
        self._chosen = self._by_choice(found.routing.chosen)

    def mask(self, element: str) -> SSAValue:
        """Return truth values of experts x tokens, true for chosen experts, computed in the type `element`."""
        ones = self._writer.call("scatter.value", self=self._zeros(element), dim=0, index=self._chosen, value=1.0)
        return self._writer.call("gt.Scalar", self=ones, other=0)

    def spread(self, pairs: SSAValue) -> SSAValue:
        """Return experts x tokens from numbers in the order of `Routing.chosen`; 0 for experts not chosen."""
        zeros = self._zeros(str(element_of(pairs)))
        return self._writer.call("scatter.src", self=zeros, dim=0, index=self._chosen, src=self._by_choice(pairs))

    def _by_choice(self, pairs: SSAValue) -> SSAValue:
        by_token = self._writer.call("view", self=pairs, size=(self._routing.tokens, self._routing.choices))
        return self._writer.call("permute", self=by_token, dims=(1, 0))

    def _zeros(self, element: str) -> SSAValue:
        size = (self._routing.experts, self._routing.tokens)
        return self._writer.call("full", size=size, fill_value=0.0, dtype=element)


class _Spread:
    """Rows of all tokens for a range of experts: experts x tokens x …, or 1 x tokens x … if equal for all experts."""

    def __init__(self, writer: AtenWriter, found: ExpertRows, choices: _Choices, first: int, end: int) -> None:
        """Takes rows, and the experts from `first` to `end`."""
        self._writer, self._found = writer, found
        self._first, self._end = first, end
        self._weights: SSAValue | None = None
        if found.weights is not None:
            self._weights = writer.call("unsqueeze", self=self._own(choices.spread(found.weights)), dim=-1)
        self._made = {value: writer.call("unsqueeze", self=x, dim=0) for value, x in found.tokens.items()}
        self._made |= {value: self._own(choices.spread(x)) for value, x in found.pairs.items()}
        # The mask is computed before the products: a kernel between them would end their loop.
        self._mask = writer.call("unsqueeze", self=self._own(choices.mask(str(element_of(found.result)))), dim=-1)
        parts = {value: self._own(x) for value, x in found.experts.items()}
        self._made |= {value: writer.call("unsqueeze", self=x, dim=1) for value, x in parts.items()}

    def total(self, total: AtenOp) -> SSAValue:
        """Return the part of a sum over the chosen experts that these experts have: tokens x …."""
        for op in self._found.steps:
            self._made[op.results[0]] = self._product(op) if op.overload in _PRODUCTS else self._step(op)
        rows = self._made[self._found.result]
        if self._weights is not None:
            rows = self._writer.call("mul.Tensor", self=rows, other=self._weights)
        # Results of experts that a token did not choose may be infinite: a product with 0 would be NaN.
        kept = self._writer.call("where.ScalarOther", condition=self._mask, self=rows, other=0.0)
        dtype = arguments_of(total).get("dtype")
        made = self._writer.call("sum.dim_IntList", self=kept, dim=(0,), keepdim=False, dtype=dtype)
        if isinstance(made.owner, AtenOp):
            made.owner.attributes[TERMS] = IntegerAttr(self._found.routing.choices, i64)
        return made

    def _own(self, value: SSAValue) -> SSAValue:
        """The rows of these experts, from a tensor with one row for each expert."""
        if (self._first, self._end) == (0, shape_of(value)[0]):
            return value
        return self._writer.call("slice.Tensor", self=value, dim=0, start=self._first, end=self._end, step=1)

    def _product(self, op: AtenOp) -> SSAValue:
        """Rows by the matrices of their experts: a product of all tokens with the matrix of each of these."""
        args, named = arguments_of(op), op.overload == EXPERT_MM
        rows, weight = self._made[args["input"]], self._own(args["moe_matrix" if named else "weight"])
        if named:
            weight = self._writer.call("transpose.int", op, self=weight, dim0=1, dim1=2)
        size = (self._end - self._first, *shape_of(rows)[1:])
        if shape_of(rows) != size:
            rows = self._writer.call("expand", op, self=rows, size=size)
        return self._writer.call("bmm", op, self=rows, other=weight)

    def _step(self, op: AtenOp) -> SSAValue:
        """A step on rows, applied to the rows of all tokens for each of these experts."""
        if op.overload == "view":  # has pairs in another number of dimensions
            return self._made[op.operands[0]]
        args = arguments_of(op)
        own = {name: value for name, value in args.items() if value in op.operands and value in self._made}
        args |= {name: self._made[value] for name, value in own.items() if has_rows(value, op.results[0])}
        if op.overload in ("slice.Tensor", "unsqueeze"):
            rank = len(shape_of(op.results[0]))
            args |= {"self": self._made[op.operands[0]], "dim": args["dim"] % rank - rank}
        return self._writer.call(op.overload, op, **args)

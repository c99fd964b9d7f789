"""Pass `convolve-rows`: computes convolutions with image columns in the lanes, where inputs and results lie so.

```mlir
%1 = aten.call "spyre::convolve_rows"(%x, %w) {padding = array<i64: 1, 1>} : (...) -> tensor<1x64x56x56xf16>
```
The usual product of a convolution has channels in the lanes of its operand and of its result, so an image that
torch-spyre has placed is laid out again before the product, and the result after it. Where images and results have
their columns in the lanes, and columns fill them well, a product with the weight as its first operand is quicker.
Convolutions in groups are quicker in this form even if the layouts of inputs and results are free: each core then has
whole groups, with all the image rows that they read. So do depthwise convolutions, which have their channels in the
lanes elsewhere, as convolutions around them do. The patches of an embedding need not fill the lanes: the pass compares
the time to lay out their windows and results with the time spent on empty lanes.

Decision: docs/decisions/0174-wide-images-are-convolved-by-rows.md
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue, Use
from xdsl.passes import ModulePass

from spyre_mlir.dialects.argument_notes import PREPARED_KINDS, kind_of, new_values, placed_arguments, placed_results
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.ir.module_control import called_by_control
from spyre_mlir.dialects.target import spec_of
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.hw.cost_parameters import CALIBRATED
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec
from spyre_mlir.hw.sticks import round_up
from spyre_mlir.ops.composed.nn.row_convolution import CONVOLUTIONS, CONVOLVE_ROWS
from spyre_mlir.ops.helpers.depthwise import keeps_columns
from spyre_mlir.ops.helpers.sliding_windows import spread
from spyre_mlir.ops.table import Family
from spyre_mlir.transforms.utils.aten_ops import arguments_of, is_open, replace

_LANES, _BYTES = DL16.elements_per_stick(), DL16.bits // 8
# Normalisations by known statistics: they multiply and add a number for each channel.
_NORMS = ("_native_batch_norm_legit_no_training",)
# The least part of the lanes that columns must fill; the rest are multiplied in vain.
_FILLED = 0.75
# The part of a core's scratchpad that copies of a weight and gathered taps may take.
_HELD = 0.5
# The part of the scratchpads that copies of a weight for patches may take: nothing else is in them then.
_COPIES = 0.85


@dataclass(frozen=True)
class ConvolveRowsPass(ModulePass):
    """Rewrites convolutions whose images and results have their columns in the lanes."""

    name = "convolve-rows"

    @override
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite convolutions between inputs and results of a function, with pointwise ops between them."""
        spec, by_control = spec_of(ctx, op), called_by_control(op)
        for function in functions(op):
            if function.sym_name.data not in by_control:
                for found in _Images(function, spec).between():
                    _rewrite(found)


def _rewrite(op: AtenOp) -> None:
    """Replace a convolution by `spyre::convolve_rows`."""
    args = arguments_of(op)
    pairs = {name: spread(args[name], 2) for name in ("padding", "stride", "dilation")}
    replace(op, CONVOLVE_ROWS, {name: args[name] for name in ("input", "weight", "bias", "groups")} | pairs)


class _Images:
    """Convolutions of a function, and the images between them."""

    def __init__(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Finds the convolutions that may be rewritten, one by one."""
        self._block = function.body.block
        arguments, results = range(len(function.body.block.args)), range(len(function.function_type.outputs))
        placed = placed_arguments(function) | placed_results(function)
        # Without notes of placed tensors, all layouts are free, except those of weights.
        free = {number for number in arguments if kind_of(function, number) not in PREPARED_KINDS}
        self._inputs = placed_arguments(function) if placed else free
        self._results = placed_results(function) if placed else set(results) - set(new_values(function).values())
        ops = [o for o in function.body.block.ops if isinstance(o, AtenOp) and _fits(o, spec)]
        self._found = [o for o in ops if placed or arguments_of(o)["groups"] != 1]

    def between(self) -> list[AtenOp]:
        """Return the convolutions whose images have columns in the lanes on both sides.

        Leaving out one changes the images of its neighbours, so the set shrinks until it stays.
        """
        before = -1
        while len(self._found) != before:
            before = len(self._found)
            in_lanes, read_in_lanes = self._in_lanes(), self._read_in_lanes()
            self._found = [o for o in self._found if o.operands[0] in in_lanes and o.results[0] in read_in_lanes]
        return self._found

    def _in_lanes(self) -> set[SSAValue]:
        """Tensors that are written with their columns in the lanes."""
        in_lanes: set[SSAValue] = {a for a in self._block.args if a.index in self._inputs}
        for op in self._block.ops:
            if not isinstance(op, AtenOp):
                continue
            images = [v for v in op.operands if _is_elementwise(op) and shape_of(v) == shape_of(op.results[0])]
            if op in self._found or (images and in_lanes.issuperset(images)):
                in_lanes.add(op.results[0])
        return in_lanes

    def _read_in_lanes(self) -> set[SSAValue]:
        """Tensors whose readers all read them with their columns in the lanes."""
        read_in_lanes = set[SSAValue]()
        for op in reversed(list(self._block.ops)):
            for value in op.results:
                if value.uses and all(self._takes(use, value, read_in_lanes) for use in value.uses):
                    read_in_lanes.add(value)
        return read_in_lanes

    def _takes(self, use: Use, value: SSAValue, read_in_lanes: Collection[SSAValue]) -> bool:
        op = use.operation
        if isinstance(op, func.ReturnOp):
            return use.index in self._results
        if op in self._found:
            return use.index == 0
        if not isinstance(op, AtenOp) or not _is_elementwise(op):
            return False
        return shape_of(op.results[0]) == shape_of(value) and op.results[0] in read_in_lanes


def _is_elementwise(op: AtenOp) -> bool:
    return op.overload in _NORMS or (op.entry is not None and op.entry.family is Family.POINTWISE)


def _fits(op: AtenOp, spec: SpyreSpec) -> bool:
    """Whether it has steps of 1, wide images and room for its weight; or patches that gain; or is depthwise."""
    if op.overload not in CONVOLUTIONS or not is_open(op):
        return False
    args = arguments_of(op)
    if _lie_side_by_side(op):
        return _gains_side_by_side(op, spec)
    image, weight, result = (shape_of(v) for v in (*op.operands[:2], op.results[0]))
    if args.get("transposed", False) or any(args.get("output_padding", ())):
        return False
    if len(image) == 4 and min(image) > 0 and args["groups"] == image[1] == weight[0] > 1:
        stride, padding, dilation = (spread(args[name], 2) for name in ("stride", "padding", "dilation"))
        return keeps_columns(image, weight, stride, (padding, padding), dilation)
    if {*args["stride"], *args["dilation"]} != {1}:
        return False
    if len(image) != 4 or min(*image, *result) == 0 or min(_filled(image[-1]), _filled(result[-1])) < _FILLED:
        return False
    groups, (outputs, own, rows, columns) = args["groups"], weight
    summed = rows * columns * own
    lines = -(-image[0] * result[2] // spec.cores_per_card)  # of a core
    copies = lines * outputs * round_up(summed, _LANES)
    taps = lines * groups * summed * round_up(image[-1], _LANES)
    return (copies + taps) // _LANES * STICK_BYTES <= _HELD * spec.lx_usable_bytes


def _lie_side_by_side(op: AtenOp) -> bool:
    """Whether the windows of a convolution of images lie side by side, as patches do, without padding."""
    args, kernel = arguments_of(op), shape_of(op.operands[1])[2:]
    more = (*args["padding"], *args.get("output_padding", ()))
    plain = set(args["dilation"]) == {1} and args["groups"] == 1 and not args.get("transposed", False)
    return len(kernel) == 2 and spread(args["stride"], 2) == kernel != (1, 1) and plain and not any(more)


def _gains_side_by_side(op: AtenOp, spec: SpyreSpec) -> bool:
    """Whether patches take longer to lay out, and their result, than lanes without columns to multiply."""
    image, weight, result = (shape_of(v) for v in (*op.operands[:2], op.results[0]))
    if len(image) != 4 or min(*image, *result) == 0:
        return False
    (batch, own, height, width), (outputs, _, rows, columns), (*_, high, wide) = image, weight, result
    lines, summed, full = batch * high, own * rows * columns, round_up(wide, _LANES)
    copies = lines * outputs * round_up(summed, _LANES)
    if copies * _BYTES > _COPIES * spec.lx_usable_bytes * spec.cores_per_card:
        return False
    chosen = lines * own * rows * round_up(width, _LANES) * columns * full  # by the matrix of zeros and ones
    more = copies * full - lines * outputs * summed * wide + chosen
    laid_out = 2 * lines * outputs * full + 4 * batch * own * height * round_up(width, _LANES)
    rate = CALIBRATED.pe_batched_result_mac_per_ns_per_core * spec.cores_per_card
    return more / rate < laid_out * _BYTES / CALIBRATED.hbm_gb_per_s


def _filled(columns: int) -> float:
    """The part of whole sticks that columns fill."""
    return columns / round_up(columns, _LANES)

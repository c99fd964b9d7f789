"""Pass `place-inputs`: marks inputs and results that lie on the card in torch-spyre's default layout.

```mlir
func.func @main(%x: tensor<128x64xf16> {aten.kind = "input", aten.layout = "default"})
    -> (tensor<64x128xf16> {aten.layout = "default"})
```
Programs on the card can hand such a tensor to each other; a kernel that reads it in another layout needs a copy. Every
other tensor has the layout that its readers read fastest: weights and constants, which are laid out once, and inputs
that are parameters of a model, as in graphs of ``torch.compile``; integers, which have layouts of their own; tensors
that the program writes, and the keys and values of a decoding step or in pages, which stay on the card from call to
call; and tensors beyond a core's reach.

Decision: docs/decisions/0171-inputs-lie-as-they-are-placed.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, ModuleOp
from xdsl.ir import Attribute, BlockArgument, SSAValue
from xdsl.passes import ModulePass

from spyre_mlir.choices import InputLayouts
from spyre_mlir.dialects.argument_notes import PREPARED_KINDS, WEIGHT, kind_of, new_values, note_of, note_placed
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.ir.module_control import called_by_control
from spyre_mlir.dialects.target import spec_of
from spyre_mlir.dialects.tensors import as_tensor_type, integer_bits, shape_of
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec
from spyre_mlir.hw.sticks import StickLayout
from spyre_mlir.ops.composed.nn.paged_attention import COMPUTE, COMPUTE_WITH_SINKS, STORE
from spyre_mlir.ops.table import Family

_ATTENTION = "scaled_dot_product_attention"
# Where an operator takes a cache in pages.
_PAGED = {STORE: slice(2, 4), COMPUTE: slice(1, 3), COMPUTE_WITH_SINKS: slice(1, 3)}
# Operators beside views that keep the elements of a tensor, at other places or several times.
_MOVES = ("cat", "clone", "repeat_interleave.self_int")


@dataclass(frozen=True)
class PlaceInputsPass(ModulePass):
    """Marks the inputs and results that have the default layout.

    Attributes:
        inputs: ``default`` for those of the program but weights and caches, ``free`` for none of them.
    """

    name = "place-inputs"

    inputs: InputLayouts = "default"

    @override
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Write the notes of every function that control flow does not call."""
        if self.inputs == "free":
            return
        spec = spec_of(ctx, op)
        by_control = called_by_control(op)
        placed = [f for f in functions(op) if f.sym_name.data not in by_control]
        calls = [o for f in placed for o in f.body.block.ops if isinstance(o, func.CallOp)]
        called = {call.callee.root_reference.data for call in calls}
        by_name = {f.sym_name.data: f for f in placed}
        free = _with_callers({a for f in placed for a in _staying(f)}, placed, calls)
        for function in placed:
            arguments = [a for a in function.body.block.args if a not in free and _may_be_placed(function, a, spec)]
            results: list[int] = []
            if function.sym_name.data not in called:
                written = {*new_values(function).values(), *_stored(function, by_name)}
                returned = enumerate(function.function_type.outputs)
                results = [number for number, type_ in returned if number not in written and _has_default(type_, spec)]
            note_placed(function, [a.index for a in arguments], results)


def _may_be_placed(function: func.FuncOp, argument: BlockArgument, spec: SpyreSpec) -> bool:
    """Return whether an argument is an input, of elements that have one form on the card."""
    kind = kind_of(function, argument.index)
    return kind is not None and kind not in PREPARED_KINDS and _has_default(argument.type, spec)


def _has_default(type_: Attribute, spec: SpyreSpec) -> bool:
    """Return whether a core reaches a whole tensor, and the card holds its elements as 16-bit floats.

    These are halves, float32 and truth values. How a larger tensor lies depends on what cores can divide.
    """
    tensor = as_tensor_type(type_)
    if tensor is None:
        return False
    element, shape, lanes = tensor.get_element_type(), tensor.get_shape(), DL16.elements_per_stick()
    known = isinstance(element, Float16Type | BFloat16Type | Float32Type) or integer_bits(element) == 1
    if not known or 0 in shape:
        return False
    held = StickLayout.default(shape, lanes).sticks(lanes) * STICK_BYTES
    return held <= spec.span_bytes


def _staying(function: func.FuncOp) -> set[BlockArgument]:
    """The arguments that stay on the card between calls: weights, what is written, and keys and values of one query."""
    found = {function.body.block.args[number] for number in new_values(function)}
    found |= {a for a in function.body.block.args if note_of(function, a.index, WEIGHT) is not None}
    for op in function.body.block.ops:
        if isinstance(op, AtenOp):
            found |= {a for value in op.operands[_caches(op)] for a in _moved_from(value)}
    return found


def _caches(op: AtenOp) -> slice:
    """Which operands of an operator are keys and values that stay."""
    one = op.overload == _ATTENTION and shape_of(op.operands[0])[-2] == 1
    return slice(1, 3) if one else _PAGED.get(op.overload, slice(0))


def _stored(function: func.FuncOp, by_name: Mapping[str, func.FuncOp]) -> list[int]:
    """The results that are new values of caches in pages, which the next call takes; through calls, too."""
    returned = function.get_return_op()
    values = () if returned is None else returned.operands
    return [n for n, v in enumerate(values) if _is_stored(v, by_name)]


def _is_stored(value: SSAValue, by_name: Mapping[str, func.FuncOp]) -> bool:
    call = value.owner
    if isinstance(call, func.CallOp) and (callee := by_name.get(call.callee.root_reference.data)) is not None:
        returned = callee.get_return_op()
        return returned is not None and _is_stored(returned.operands[call.results.index(value)], by_name)
    return isinstance(call, AtenOp) and call.overload == STORE


def _moved_from(value: SSAValue) -> set[BlockArgument]:
    """The arguments whose elements a tensor has, if operators have only moved them."""
    found, waiting, seen = set[BlockArgument](), [value], set[SSAValue]()
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        if isinstance(value, BlockArgument):
            found.add(value)
        elif isinstance(op := value.owner, AtenOp) and _moves(op):
            waiting += op.operands
    return found


def _moves(op: AtenOp) -> bool:
    return op.overload in _MOVES or (op.entry is not None and op.entry.family is Family.VIEW)


def _with_callers(
    free: set[BlockArgument], functions_: list[func.FuncOp], calls: list[func.CallOp]
) -> set[BlockArgument]:
    """Add the arguments that callers hand over for free ones, and those that functions take free ones for."""
    by_name = {function.sym_name.data: function for function in functions_}
    pairs: list[tuple[BlockArgument, BlockArgument]] = []
    for call in calls:
        callee = by_name[call.callee.root_reference.data]
        handed = zip(call.arguments, callee.body.block.args, strict=True)
        pairs += [(value, argument) for value, argument in handed if isinstance(value, BlockArgument)]
    before = -1
    while len(free) > before:
        before = len(free)
        for one, other in pairs:
            if one in free or other in free:
                free |= {one, other}
    return free

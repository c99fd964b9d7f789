"""Pass `convert-aten-to-spyre-loop`: every op becomes nests over named loops; views become index maps.

```mlir
%1 = aten.permute(%0) {dims = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
%2 = aten.exp(%1) : (tensor<8x4xf32>) -> tensor<8x4xf32>
```
becomes one nest that reads ``%0[d1, d0]``. A view that no index map can express is copied first.
A part of a tensor that nothing reads is not written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import Float8E4M3FNType, IntegerType, ModuleOp, TensorType, UnitAttr, f32, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.aten_arguments import PLACED
from spyre_mlir.dialects.ir.control import ControlOp, with_operands
from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.places import placed
from spyre_mlir.dialects.spyre.host import LoopHostOp
from spyre_mlir.dialects.spyre.loop import EmptyOp, LoopConstantOp, NestOp
from spyre_mlir.dialects.spyre.loop_blocks import BlockOp, NamedEntry
from spyre_mlir.dialects.target import spec_of
from spyre_mlir.dialects.tensors import element_of, integer_bits, shape_of
from spyre_mlir.errors import RegistrationError, UnsupportedError
from spyre_mlir.hw.formats import FP8_LARGEST
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.ops.call_info import called_for
from spyre_mlir.ops.helpers.reduction_dims import reduced_dims
from spyre_mlir.ops.index_views import IndexView, NotAView, common_cuts
from spyre_mlir.ops.native import entries, gathers, movement, pointwise
from spyre_mlir.ops.table import Family, OpEntry
from spyre_mlir.plugins import registry
from spyre_mlir.transforms.aten_to_loop.constant_tensors import known_value
from spyre_mlir.transforms.aten_to_loop.contractions import lower_product, lower_whole_product
from spyre_mlir.transforms.aten_to_loop.entries import lower_put_entry, lower_put_page
from spyre_mlir.transforms.aten_to_loop.gathers import beyond_reach, lower_pages, lower_rows
from spyre_mlir.transforms.aten_to_loop.legality import check_not_empty, check_supported
from spyre_mlir.transforms.aten_to_loop.loop_builder import LoopBuilder, stems
from spyre_mlir.transforms.aten_to_loop.nests import TensorView, make_nest, whole
from spyre_mlir.transforms.utils.host_support import is_marked, loop_step, mark
from spyre_mlir.transforms.utils.nests.unread_parts import drop_unread_parts
from spyre_mlir.transforms.utils.numerics.integer_ranges import is_integer
from spyre_mlir.transforms.utils.open_symbols import check_closed
from spyre_mlir.transforms.utils.rebuild import Emitter, rebuild


def lower_view(b: LoopBuilder, op: AtenOp, entry: OpEntry) -> TensorView:
    """Lower a view: only the map of its base changes."""
    arguments = op.arguments()
    tensor = next(p.name for p in entry.params if p.is_tensor)
    source = b.readings[cast(SSAValue, arguments.pop(tensor))]
    wanted = cast(TensorType[Attribute], op.results[0].type).get_shape()
    for shape in (None, source.shape, common_cuts(source.shape, wanted)):
        start = source.view if shape is None else IndexView.identity(shape)
        try:
            view = cast(IndexView, entry.meaning(start, **arguments))
        except NotAView:
            continue
        if view.nests:
            return TensorView((source if shape is None else b.copy(source, shape)).base, view)
    raise UnsupportedError(f"{op.name} of shape {source.shape} to {wanted}")


def lower_pointwise(b: LoopBuilder, op: AtenOp, entry: OpEntry) -> TensorView:
    """Lower an elementwise op to one nest."""
    arguments = op.arguments()
    result = cast(TensorType[Attribute], op.results[0].type)
    values = [arguments[p.name] for p in entry.params if p.is_tensor]
    readings = [b.readings[v] if isinstance(v, SSAValue) else v for v in values]
    known = [element_of(r.base) for r in readings if isinstance(r, TensorView)]
    element = _common(known) if entry.boolean else result.get_element_type()
    chosen = entry is pointwise.where
    operands = [
        r if isinstance(r, TensorView) else b.reading(r, i1 if chosen and not n else element)
        for n, r in enumerate(readings)
    ]
    operands = [r if chosen and not n else b.converted(r, element) for n, r in enumerate(operands)]
    numbers = {n: float(cast(float, arguments[n])) for n in entry.op_info if arguments[n] is not None}
    return b.pointwise(_on_truths(op, entry) if element == i1 else entry, operands, result, numbers=numbers)


def _common(elements: Sequence[Attribute]) -> Attribute:
    """Return the element type in which mixed operands are compared: floats before integers before booleans."""
    floats = [e for e in elements if not isinstance(e, IntegerType)]
    return floats[0] if floats else max(elements, key=integer_bits, default=f32)


# On truth values a sum is "or", and a product "and".
_TRUTHS = {pointwise.add.name: pointwise.maximum, pointwise.mul.name: pointwise.minimum}


def _on_truths(op: AtenOp, entry: OpEntry) -> OpEntry:
    """The entry that computes an op on truth values alone."""
    found = _TRUTHS.get(entry.name, entry)
    if found in (pointwise.maximum, pointwise.minimum, pointwise.where) or found.boolean:
        return found
    raise UnsupportedError(f"{op.name} on truth values alone", hint="convert them to numbers first")


def lower_reduction(b: LoopBuilder, op: AtenOp, entry: OpEntry) -> TensorView:
    """Lower a reduction to one nest per reduced loop, the innermost first."""
    arguments = op.arguments()
    source = b.readings[cast(SSAValue, arguments["self"])]
    rank, dims = len(source.shape), reduced_dims(len(source.shape), cast("tuple[int, ...] | None", arguments["dim"]))
    result = cast(TensorType[Attribute], op.results[0].type)
    source = b.converted(source, result.get_element_type())  # sums of short integers and truth values are longer
    for dim in reversed(dims):
        source = b.reduced(source, dim, entry)
    if not dims:
        source = b.copy(source)
    kept = source.view.squeeze(tuple(d for d in range(rank) if d in dims)) if not arguments["keepdim"] else source.view
    return TensorView(source.base, kept.reshape(result.get_shape()))


def lower_contraction(b: LoopBuilder, op: AtenOp, entry: OpEntry) -> TensorView:
    """Lower a matmul to one nest with a summed loop."""
    left, right = (b.readings[cast(SSAValue, v)] for v in list(op.arguments().values())[:2])
    if entry.name == "linear":
        right = TensorView(right.base, right.view.transpose(0, 1))
    result = cast(TensorType[Attribute], op.results[0].type)
    return (lower_whole_product if is_integer(result.get_element_type()) else lower_product)(b, left, right, result)


def lower_clone(b: LoopBuilder, op: AtenOp, _entry: OpEntry) -> TensorView:
    """Lower a copy of an immutable value to the value."""
    return b.readings[cast(SSAValue, op.arguments()["self"])]


def lower_cast(b: LoopBuilder, op: AtenOp, _entry: OpEntry) -> TensorView:
    """Lower a change of element type to a copy whose body converts."""
    source = b.readings[cast(SSAValue, op.arguments()["self"])]
    result = cast(TensorType[Attribute], op.results[0].type)
    new = result.get_element_type()
    if element_of(source.base) == new:
        return source
    old = element_of(source.base)
    if new == i1:
        return b.pointwise(pointwise.ne, [source, b.reading(0.0, old)], result)
    if is_integer(new) and not isinstance(old, IntegerType):
        return _towards_zero(b, source, new)
    if isinstance(new, Float8E4M3FNType) and not isinstance(old, Float8E4M3FNType):
        source = _limited(b, source)
    return b.converted(source, new)


def _limited(b: LoopBuilder, x: TensorView) -> TensorView:
    """Numbers between the limits of eight-bit floats: what becomes of others in a conversion is not public."""
    element, same = element_of(x.base), TensorType(element_of(x.base), x.shape)
    below = b.pointwise(pointwise.minimum, [x, b.reading(FP8_LARGEST, element)], same)
    return b.pointwise(pointwise.maximum, [below, b.reading(-FP8_LARGEST, element)], same)


def _towards_zero(b: LoopBuilder, x: TensorView, element: Attribute) -> TensorView:
    """Floats as integers of a type: without what is behind the point. The last nest converts, so that kernels know."""
    same, truth = TensorType(element_of(x.base), x.shape), TensorType(i1, x.shape)
    below = b.pointwise(pointwise.floor, [x], same)
    above = b.pointwise(
        pointwise.neg, [b.pointwise(pointwise.floor, [b.pointwise(pointwise.neg, [x], same)], same)], same
    )
    positive = b.pointwise(pointwise.ge, [x, b.reading(0.0, element_of(x.base))], truth)
    return b.pointwise(pointwise.where, [positive, below, above], TensorType(element, x.shape))


def lower_cat(b: LoopBuilder, op: AtenOp, _entry: OpEntry) -> TensorView:
    """Copy each part to its offset in one result."""
    arguments = op.arguments()
    result = cast(TensorType[Attribute], op.results[0].type)
    at = cast(int, arguments["dim"]) % len(result.get_shape())
    dest, offset = b.emitter.add(EmptyOp(result)).results[0], 0
    for part in cast(list[SSAValue], arguments["tensors"]):
        if 0 in shape_of(part):
            continue
        source = b.converted(b.readings[part], result.get_element_type())
        window = IndexView.identity(result.get_shape()).slice(at, offset, offset + source.shape[at])
        loops, out, (source,) = b.align([source], window, stems(len(source.shape)))
        nest = make_nest(loops, [source.base], out, result, None, dest=dest)
        dest = b.emitter.add(nest).results[0]
        offset += source.shape[at]
    return whole(dest)


def lower_embedding(b: LoopBuilder, op: AtenOp, _entry: OpEntry) -> TensorView:
    """Lower a selection of table rows."""
    arguments = op.arguments()
    table, indices = (b.readings[cast(SSAValue, arguments[n])] for n in ("weight", "indices"))
    return lower_rows(b, table, indices, cast(TensorType[Attribute], op.results[0].type))


def lower_index_select(b: LoopBuilder, op: AtenOp, _entry: OpEntry) -> TensorView:
    """Lower a selection along one dimension to a selection of rows, after making that dimension the first."""
    arguments = op.arguments()
    source, index = (b.readings[cast(SSAValue, arguments[n])] for n in ("self", "index"))
    if PLACED in op.attributes:
        block = BlockOp(source.base, cast(int, arguments["dim"]), index.base, 1, NamedEntry(from_end=True))
        return whole(b.emitter.add(block).results[0])
    asked = cast(TensorType[Attribute], op.results[0].type).get_shape()
    if not asked:
        source = TensorView(source.base, source.view.reshape((1,)))
    shape = asked or (1,)
    at = cast(int, arguments["dim"]) % len(shape)
    order = (at, *(d for d in range(len(shape)) if d != at))
    table = TensorView(source.base, source.view.permute(order))
    index = TensorView(index.base, index.view.reshape((shape[at],)))
    result = TensorType(element_of(op.results[0]), [shape[d] for d in order])
    rows = lower_rows(b, table, index, result, from_end=True)
    entries = rows.view.permute(tuple(order.index(d) for d in range(len(shape))))
    return TensorView(rows.base, entries if asked else entries.reshape(()))


def lower_take_pages(b: LoopBuilder, op: AtenOp, _entry: OpEntry) -> TensorView:
    """Lower a selection of pages whose places are joined."""
    arguments = op.arguments()
    pages, indices = (b.readings[cast(SSAValue, arguments[n])] for n in ("self", "indices"))
    return lower_pages(b, pages, indices, cast(TensorType[Attribute], op.results[0].type))


def lower_creation(b: LoopBuilder, op: AtenOp, entry: OpEntry) -> TensorView:
    """Lower constant tensors, which the host provides with the program."""
    result = cast(TensorType[Attribute], op.results[0].type)
    return whole(
        b.emitter.add(LoopConstantOp(known_value(entry, op.arguments(), result.element_type), result)).results[0]
    )


AtenLowering = Callable[[LoopBuilder, AtenOp, OpEntry], "TensorView | Sequence[TensorView]"]

BY_FAMILY: dict[Family, AtenLowering] = {
    Family.VIEW: lower_view,
    Family.POINTWISE: lower_pointwise,
    Family.REDUCTION: lower_reduction,
    Family.CONTRACTION: lower_contraction,
    Family.CREATION: lower_creation,
}
BY_ENTRY: dict[str, AtenLowering] = {
    movement.clone.name: lower_clone,
    movement._to_copy.name: lower_cast,  # pyright: ignore[reportPrivateUsage] # the op's own ATen name
    movement.cat.name: lower_cat,
    gathers.embedding.name: lower_embedding,
    gathers.index_select.name: lower_index_select,
    gathers.take_pages.name: lower_take_pages,
    entries.put_entry.name: lower_put_entry,
    entries.put_page.name: lower_put_page,
}


# Operands that are a table and the indices of its rows.
_TABLES = {
    gathers.embedding.name: ("weight", "indices"),
    gathers.index_select.name: ("self", "index"),
    gathers.take_pages.name: ("self", "indices"),
}


def lowering_of(op: Operation) -> tuple[AtenLowering, OpEntry | None] | None:
    """Return the lowering of an op, or None if it has none."""
    if not isinstance(op, AtenOp):
        return None
    for registered in registry.find(registry.HookKind.LOWERING, op.overload):
        return registered, op.entry
    if op.entry is None:
        return None
    lowering = BY_ENTRY.get(op.entry.name) or BY_FAMILY.get(op.entry.family)
    return None if lowering is None else (lowering, op.entry)


@dataclass(frozen=True)
class ConvertAtenToSpyreLoopPass(ModulePass):
    """Lowers aten ops to nests over named loops."""

    name = "convert-aten-to-spyre-loop"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Convert every function of the module."""
        check_closed(op)
        for function in functions(op):
            check_supported(function, lambda op: is_marked(op) or lowering_of(op) is not None)
            check_not_empty(function)
        spec = spec_of(ctx, op)
        for function in functions(op):
            emitter = Emitter()
            builder = LoopBuilder(emitter)
            builder.readings.update((a, whole(a)) for a in function.body.block.args)
            rebuild(
                function,
                lambda o, b=builder: _convert(o, b, spec),
                emitter,
                lambda o, b=builder: _stand_in(o, b),
            )
            drop_unread_parts(function)


def _given(b: LoopBuilder, value: SSAValue) -> SSAValue:
    """A tensor as the model has it, for a result or the host: whole numbers become integers again."""
    reading, element = b.readings[value], element_of(value)
    if element_of(reading.base) != element:
        reading = b.converted(reading if reading.is_base else b.copy(reading), element)
    return reading.base if reading.is_base else b.copy(reading).base


def _returned(b: LoopBuilder, value: SSAValue) -> SSAValue:
    """A result; the copy of a view has the place of the op that makes the view, as a return has none."""
    back = b.emitter.current
    if isinstance(value.owner, Operation):
        b.emitter.current = value.owner
    made = _given(b, value)
    b.emitter.current = back
    return made


def _stand_in(op: Operation, b: LoopBuilder) -> None:
    """Gives an op that has no lowering results that come from the host."""
    step = b.emitter.add(LoopHostOp(op.name, None, [], {}, [r.type for r in op.results]))
    b.readings.update((old, whole(new)) for old, new in zip(op.results, step.results, strict=True))


def _table_beyond_reach(op: AtenOp, b: LoopBuilder, spec: SpyreSpec) -> str | None:
    """Return why the host must select rows of a table; None for other ops, or if the device can."""
    names = _TABLES.get(op.entry.name) if op.entry is not None else None
    if names is None or PLACED in op.attributes:
        return None
    arguments = op.arguments()
    if arguments.get("dim", 0) != 0:
        return None  # columns are no rows of a table as the host has it
    table, indices = (b.readings[cast(SSAValue, arguments[n])] for n in names)
    return beyond_reach(table, indices, spec)


def _convert(op: Operation, b: LoopBuilder, spec: SpyreSpec) -> Sequence[SSAValue]:
    if isinstance(op, func.ReturnOp):
        b.emitter.add(func.ReturnOp(*[_returned(b, v) for v in op.operands]))
        return ()
    if isinstance(op, func.CallOp):
        call = func.CallOp(op.callee, [_given(b, v) for v in op.arguments], op.result_types)
        b.readings.update((old, whole(new)) for old, new in zip(op.results, b.emitter.add(call).results, strict=True))
        return ()
    if isinstance(op, ControlOp):
        calls = b.emitter.add(with_operands(op, [_given(b, v) for v in op.operands]))
        b.readings.update((old, whole(new)) for old, new in zip(op.results, calls.results, strict=True))
        return ()
    if isinstance(op, AtenOp) and not op.on_host and (reason := _table_beyond_reach(op, b, spec)) is not None:
        mark(op, reason)
    if isinstance(op, AtenOp) and op.on_host:
        step = b.emitter.add(loop_step(op, [_given(b, v) for v in op.operands]))
        b.readings.update((old, whole(new)) for old, new in zip(op.results, step.results, strict=True))
        return ()
    found = lowering_of(op)
    if found is None:
        raise UnsupportedError(f"{op.name} has no lowering")
    lowering, entry = found
    before = len(b.emitter.ops)
    with called_for(placed(op.name, op.location)):
        made: object = lowering(b, cast(AtenOp, op), cast(OpEntry, entry))
    several = cast("Sequence[object]", made if isinstance(made, (list, tuple)) else [made])
    readings = [r for r in several if isinstance(r, TensorView)]
    if not len(readings) == len(several) == len(op.results):
        raise RegistrationError(
            f"the lowering of {op.name} gives {made!r}, not a Reading for each of {len(op.results)} results",
            where=placed(op.name, op.location),
        )
    b.readings.update(zip(op.results, readings, strict=True))
    _widen(b, before, readings, is_wide=cast(AtenOp, op).is_wide)
    return ()


def _widen(b: LoopBuilder, first: int, results: Sequence[TensorView], *, is_wide: bool) -> None:
    """Marks the nests of an op that are not rounded: all of a wide one, and those that lead to its results."""
    kept = set[Operation]()
    for value in () if is_wide else (*(r.base for r in results), *b.conversions):
        owner = value.owner
        while isinstance(owner, NestOp) and owner not in kept:
            kept.add(owner)
            owner = owner if owner.dest is None else owner.dest.owner
    for op in b.emitter.ops[first:]:
        if isinstance(op, NestOp) and element_of(op.result) == f32 and op not in kept:
            op.wide = UnitAttr()

"""Pass `convert-aten-to-spyre-loop`: every op becomes nests over named loops; views become index maps.

```mlir
%1 = aten.permute(%0) {dims = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
%2 = aten.exp(%1) : (tensor<8x4xf32>) -> tensor<8x4xf32>
```
becomes one nest that reads ``%0[d1, d0]``. A view that no index map can express is copied first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import Float8E4M3FNType, FloatAttr, IntegerType, ModuleOp, TensorType, f32, f64, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from spyre_mlir import registry
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.spyre.loop import ConstantOp, EmptyOp, combining
from spyre_mlir.dialects.tensors import element_of, integer_bits, shape_of
from spyre_mlir.errors import RegistrationError, UnsupportedError
from spyre_mlir.hw.formats import FP8_LARGEST
from spyre_mlir.hw.sticks import IndexMap
from spyre_mlir.ops import indexing, movement, pointwise
from spyre_mlir.ops.index_view import IndexView, NotAView, common_cuts
from spyre_mlir.ops.reduction import reduced_dims
from spyre_mlir.ops.table import Family, OpEntry
from spyre_mlir.transforms.creations import known_value
from spyre_mlir.transforms.host_steps import is_marked, loop_step
from spyre_mlir.transforms.integers import is_integer
from spyre_mlir.transforms.lowerable import check_not_empty, check_supported
from spyre_mlir.transforms.many_loops import MOST_LOOPS, loop_count, merged, staged
from spyre_mlir.transforms.nests import Loops, Reading, absent, align, make_nest, whole
from spyre_mlir.transforms.products import lower_product, lower_whole_product
from spyre_mlir.transforms.rebuild import Emitter, functions, rebuild
from spyre_mlir.transforms.rows import lower_rows


def stems(rank: int) -> list[str]:
    """Names of the dimensions of a result."""
    return [f"d{i}" for i in range(rank)]


class LoopBuilder:
    """Makes nests for one function and remembers what each aten value reads."""

    def __init__(self, emitter: Emitter) -> None:
        """Starts with no values known."""
        self.emitter = emitter
        self.readings: dict[SSAValue, Reading] = {}
        self._converted: dict[tuple[SSAValue, Attribute], SSAValue] = {}

    def reading(self, value: object, element: Attribute) -> Reading:
        """The reading of an aten value; a number becomes a tensor of rank 0."""
        if isinstance(value, SSAValue):
            return self.readings[value]
        number = float(cast(float, value))
        op = self.emitter.add(ConstantOp(FloatAttr(number, f64), TensorType(element, [])))
        return whole(op.results[0])

    def converted(self, reading: Reading, element: Attribute) -> Reading:
        """The reading in another element type: a copy of the whole tensor, which the device may get for nothing."""
        base = reading.base
        if element_of(base) == element:
            return reading
        if (base, element) not in self._converted:
            made = self.pointwise(None, [whole(base)], TensorType(element, shape_of(base)))
            self._converted[base, element] = made.base
        return Reading(self._converted[base, element], reading.view)

    def copy(self, reading: Reading, shape: tuple[int, ...] | None = None) -> Reading:
        """A fresh tensor with the elements of a reading, optionally under another shape of the same order."""
        target = reading.shape if shape is None else shape
        fresh = TensorType(element_of(reading.base), target)
        return self.pointwise(None, [reading], fresh, cut=IndexView.identity(target))

    def pointwise(
        self,
        entry: OpEntry | None,
        readings: Sequence[Reading],
        result: TensorType[Attribute],
        cut: IndexView | None = None,
        numbers: Mapping[str, float] | None = None,
    ) -> Reading:
        """One nest that applies `entry` to readings broadcast to the result's shape.

        `cut`, for copies under another shape, is the view of the result in that shape.
        """
        shape = readings[0].shape if cut is not None else result.get_shape()
        target = IndexView.identity(result.get_shape()) if cut is None else cut.reshape(shape)
        readings = [Reading(r.base, r.view.expand(shape)) for r in readings]
        loops, out, readings = self.align(readings, target, stems(len(shape)))
        if loop_count(loops) > MOST_LOOPS:
            loops, out, readings = self._with_fewer_loops(loops, out, readings, target, shape)
        op = make_nest(loops, [r.base for r in readings], out, result, entry, numbers=numbers)
        return whole(self.emitter.add(op).results[0])

    def _with_fewer_loops(
        self, loops: Loops, out: IndexMap, readings: Sequence[Reading], target: IndexView, shape: tuple[int, ...]
    ) -> tuple[Loops, IndexMap, list[Reading]]:
        """A nest's loops joined; if that is not enough, operands that are mere changes of order are put in order."""
        loops, out = merged(loops, out)
        chosen = list(readings)
        for at, reading in enumerate(chosen):
            nearer = staged(self, reading) if loop_count(loops) > MOST_LOOPS else None
            if loop_count(loops) <= MOST_LOOPS or (nearer is None and len(chosen) == 1):
                break  # whether the kernel needs fewer labels in the end shows when it is written
            chosen[at] = self.copy(reading) if len(chosen) > 1 or nearer is None else nearer
            found, own, chosen = self.align(chosen, target, stems(len(shape)))
            loops, out = merged(found, own)
        return loops, out, chosen

    def reduced(self, reading: Reading, dim: int, entry: OpEntry) -> Reading:
        """One dimension folded by a reduction, and kept with extent 1."""
        return _reduce_one(self, reading, dim, entry)

    def align(
        self, readings: Sequence[Reading], target: IndexView, names: Sequence[str]
    ) -> tuple[Loops, IndexMap, list[Reading]]:
        """Loops for readings and a result, the result's map, and the readings: those that do not fit are copied."""
        chosen = list(readings)
        cut = [i for i, r in enumerate(chosen) if any(len(axes) > 1 for axes in r.view.dims)]
        while True:
            try:
                loops = align([*(r.view for r in chosen), target], names)
                return replace(loops, maps=loops.maps[:-1]), loops.maps[-1], chosen
            except NotAView as error:
                if not cut:
                    raise UnsupportedError(
                        f"no common loops for shapes {[r.shape for r in readings]}: {error}"
                    ) from error
                chosen[cut[0]] = self.copy(chosen[cut.pop(0)])


def lower_view(b: LoopBuilder, op: AtenOp, entry: OpEntry) -> Reading:
    """A view only changes how its base is read."""
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
        return Reading((source if shape is None else b.copy(source, shape)).base, view)
    raise UnsupportedError(f"{op.name} of shape {source.shape} to {wanted}")


def lower_pointwise(b: LoopBuilder, op: AtenOp, entry: OpEntry) -> Reading:
    """Element by element: one nest."""
    arguments = op.arguments()
    result = cast(TensorType[Attribute], op.results[0].type)
    values = [arguments[p.name] for p in entry.params if p.is_tensor]
    readings = [b.readings[v] if isinstance(v, SSAValue) else v for v in values]
    known = [element_of(r.base) for r in readings if isinstance(r, Reading)]
    element = _common(known) if entry.boolean else result.get_element_type()
    chosen = entry is pointwise.where
    operands = [
        r if isinstance(r, Reading) else b.reading(r, i1 if chosen and not n else element)
        for n, r in enumerate(readings)
    ]
    operands = [r if chosen and not n else b.converted(r, element) for n, r in enumerate(operands)]
    numbers = {n: float(cast(float, arguments[n])) for n in entry.op_info if arguments[n] is not None}
    return b.pointwise(_on_truths(op, entry) if element == i1 else entry, operands, result, numbers=numbers)


def _common(elements: Sequence[Attribute]) -> Attribute:
    """What operands of several element types are compared in: floats before integers before truth values."""
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


def lower_reduction(b: LoopBuilder, op: AtenOp, entry: OpEntry) -> Reading:
    """One nest per reduced loop, the innermost first."""
    arguments = op.arguments()
    source = b.readings[cast(SSAValue, arguments["self"])]
    rank, dims = len(source.shape), reduced_dims(len(source.shape), cast("tuple[int, ...] | None", arguments["dim"]))
    result = cast(TensorType[Attribute], op.results[0].type)
    source = b.converted(source, result.get_element_type())  # sums of short integers and truth values are longer
    for dim in reversed(dims):
        source = _reduce_one(b, source, dim, entry)
    if not dims:
        source = b.copy(source)
    kept = source.view.squeeze(tuple(d for d in range(rank) if d in dims)) if not arguments["keepdim"] else source.view
    return Reading(source.base, kept.reshape(result.get_shape()))


def _reduce_one(b: LoopBuilder, source: Reading, dim: int, entry: OpEntry) -> Reading:
    if source.shape[dim] == 1:
        return source
    source, wide = _once(source, dim), source.shape
    # A repeated element has to be there as often as it counts: no access folds what it does not walk.
    if len(source.view.dims[dim]) > 1 or source.view.repeats:
        source = b.copy(source)
    shape = tuple(1 if d == dim else e for d, e in enumerate(source.shape))
    names = ["r" if d == dim else s for d, s in enumerate(stems(len(shape)))]
    loops = align([source.view], names)
    out = tuple(e if d != dim else type(e)() for d, e in enumerate(loops.exprs()))
    result = TensorType(element_of(source.base), shape)
    combine = combining(entry, element_of(source.base))
    op = make_nest(loops, [source.base], out, result, None, combine=combine)
    folded = whole(b.emitter.add(op).results[0])
    return Reading(folded.base, folded.view.expand(tuple(1 if d == dim else e for d, e in enumerate(wide))))


def _once(source: Reading, dim: int) -> Reading:
    """The reading without the repetitions that a reduction of `dim` keeps: they are folded once and repeated then."""
    view = source.view
    for d in range(len(source.shape)):
        if d != dim and absent(view, d):
            view = view.slice(d, 0, 1)
    return Reading(source.base, view)


def lower_contraction(b: LoopBuilder, op: AtenOp, entry: OpEntry) -> Reading:
    """A matrix product: one nest with a summed loop."""
    left, right = (b.readings[cast(SSAValue, v)] for v in list(op.arguments().values())[:2])
    if entry.name == "linear":
        right = Reading(right.base, right.view.transpose(0, 1))
    result = cast(TensorType[Attribute], op.results[0].type)
    return (lower_whole_product if is_integer(result.get_element_type()) else lower_product)(b, left, right, result)


def lower_clone(b: LoopBuilder, op: AtenOp, entry: OpEntry) -> Reading:
    """A copy of a value that nothing can change is the value."""
    return b.readings[cast(SSAValue, op.arguments()["self"])]


def lower_cast(b: LoopBuilder, op: AtenOp, entry: OpEntry) -> Reading:
    """A change of element type: a copy whose body converts."""
    source = b.readings[cast(SSAValue, op.arguments()["self"])]
    result = cast(TensorType[Attribute], op.results[0].type)
    new = result.get_element_type()
    if element_of(source.base) == new:
        return source
    old = element_of(source.base)
    if new == i1:
        return b.pointwise(pointwise.ne, [source, b.reading(0.0, old)], result)
    if is_integer(new) and not isinstance(old, IntegerType):
        source = _towards_zero(b, source)
    if isinstance(new, Float8E4M3FNType) and not isinstance(old, Float8E4M3FNType):
        source = _limited(b, source)
    return b.converted(source, new)


def _limited(b: LoopBuilder, x: Reading) -> Reading:
    """Numbers between the limits of eight-bit floats: what becomes of others in a conversion is not public."""
    element, same = element_of(x.base), TensorType(element_of(x.base), x.shape)
    below = b.pointwise(pointwise.minimum, [x, b.reading(FP8_LARGEST, element)], same)
    return b.pointwise(pointwise.maximum, [below, b.reading(-FP8_LARGEST, element)], same)


def _towards_zero(b: LoopBuilder, x: Reading) -> Reading:
    """Floats without what is behind the point, as a conversion to integers leaves them."""
    same, truth = TensorType(element_of(x.base), x.shape), TensorType(i1, x.shape)
    below = b.pointwise(pointwise.floor, [x], same)
    above = b.pointwise(
        pointwise.neg, [b.pointwise(pointwise.floor, [b.pointwise(pointwise.neg, [x], same)], same)], same
    )
    positive = b.pointwise(pointwise.ge, [x, b.reading(0.0, element_of(x.base))], truth)
    return b.pointwise(pointwise.where, [positive, below, above], same)


def lower_cat(b: LoopBuilder, op: AtenOp, entry: OpEntry) -> Reading:
    """Each part is copied to its offset in one result."""
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


def lower_embedding(b: LoopBuilder, op: AtenOp, entry: OpEntry) -> Reading:
    """A choice of table rows."""
    arguments = op.arguments()
    table, indices = (b.readings[cast(SSAValue, arguments[n])] for n in ("weight", "indices"))
    return lower_rows(b, table, indices, cast(TensorType[Attribute], op.results[0].type))


def lower_index_select(b: LoopBuilder, op: AtenOp, entry: OpEntry) -> Reading:
    """A choice of entries of one dimension: of rows, once that dimension is the first."""
    arguments = op.arguments()
    source, index = (b.readings[cast(SSAValue, arguments[n])] for n in ("self", "index"))
    asked = cast(TensorType[Attribute], op.results[0].type).get_shape()
    if not asked:
        source = Reading(source.base, source.view.reshape((1,)))
    shape = asked or (1,)
    at = cast(int, arguments["dim"]) % len(shape)
    order = (at, *(d for d in range(len(shape)) if d != at))
    table = Reading(source.base, source.view.permute(order))
    index = Reading(index.base, index.view.reshape((shape[at],)))
    result = TensorType(element_of(op.results[0]), [shape[d] for d in order])
    rows = lower_rows(b, table, index, result, from_end=True)
    entries = rows.view.permute(tuple(order.index(d) for d in range(len(shape))))
    return Reading(rows.base, entries if asked else entries.reshape(()))


def lower_creation(b: LoopBuilder, op: AtenOp, entry: OpEntry) -> Reading:
    """Numbers the host provides with the program."""
    result = cast(TensorType[Attribute], op.results[0].type)
    return whole(b.emitter.add(ConstantOp(known_value(entry, op.arguments()), result)).results[0])


Lowering = Callable[[LoopBuilder, AtenOp, OpEntry], "Reading | Sequence[Reading]"]

BY_FAMILY: dict[Family, Lowering] = {
    Family.VIEW: lower_view,
    Family.POINTWISE: lower_pointwise,
    Family.REDUCTION: lower_reduction,
    Family.CONTRACTION: lower_contraction,
    Family.CREATION: lower_creation,
}
BY_ENTRY: dict[str, Lowering] = {
    movement.clone.name: lower_clone,
    movement._to_copy.name: lower_cast,  # pyright: ignore[reportPrivateUsage] # the op's own ATen name
    movement.cat.name: lower_cat,
    movement.embedding.name: lower_embedding,
    indexing.index_select.name: lower_index_select,
}


def lowering_of(op: Operation) -> tuple[Lowering, OpEntry | None] | None:
    """How an op is lowered, or None if it cannot be."""
    if not isinstance(op, AtenOp):
        return None
    for registered in registry.find(registry.Kind.LOWERING, op.overload):
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
        """Converts every function of the module."""
        for function in functions(op):
            check_supported(function, lambda op: is_marked(op) or lowering_of(op) is not None)
            check_not_empty(function)
        for function in functions(op):
            emitter = Emitter()
            builder = LoopBuilder(emitter)
            builder.readings.update((a, whole(a)) for a in function.body.block.args)
            rebuild(function, lambda o, b=builder: _convert(o, b), emitter)


def _given(b: LoopBuilder, value: SSAValue) -> SSAValue:
    """A tensor as the model has it, for a result or the host: whole numbers become integers again."""
    reading, element = b.readings[value], element_of(value)
    if element_of(reading.base) != element:
        reading = b.converted(reading if reading.is_base else b.copy(reading), element)
    return reading.base if reading.is_base else b.copy(reading).base


def _convert(op: Operation, b: LoopBuilder) -> Sequence[SSAValue]:
    if isinstance(op, func.ReturnOp):
        b.emitter.add(func.ReturnOp(*[_given(b, v) for v in op.operands]))
        return ()
    if isinstance(op, AtenOp) and op.on_host:
        step = b.emitter.add(loop_step(op, [_given(b, v) for v in op.operands]))
        b.readings.update((old, whole(new)) for old, new in zip(op.results, step.results, strict=True))
        return ()
    found = lowering_of(op)
    if found is None:
        raise UnsupportedError(f"{op.name} has no lowering")
    lowering, entry = found
    made: object = lowering(b, cast(AtenOp, op), cast(OpEntry, entry))
    several = cast("Sequence[object]", made if isinstance(made, (list, tuple)) else [made])
    readings = [r for r in several if isinstance(r, Reading)]
    if not len(readings) == len(several) == len(op.results):
        raise RegistrationError(
            f"the lowering of {op.name} gives {made!r}, not a Reading for each of {len(op.results)} results",
            where=str(op.location),
        )
    b.readings.update(zip(op.results, readings, strict=True))
    return ()

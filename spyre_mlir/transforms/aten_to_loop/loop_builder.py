"""Builder of loop-level nests: the view behind each aten value, and copies where views do not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import cast

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, TensorType, f64, i64
from xdsl.ir import Attribute, SSAValue

from spyre_mlir.dialects.spyre.loop import LoopConstantOp, combining
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw.sticks import IndexMap
from spyre_mlir.ops.index_views import IndexView, NotAView
from spyre_mlir.ops.table import OpEntry
from spyre_mlir.transforms.aten_to_loop.coalesced_loops import MOST_LOOPS, loop_count, merged, staged
from spyre_mlir.transforms.aten_to_loop.nests import NestLoops, TensorView, absent, align, make_nest, whole
from spyre_mlir.transforms.utils.rebuild import Emitter

# A copy of a view is small beside a nest that repeats it so many times.
_REPEATED = 64


def stems(rank: int) -> list[str]:
    """Return names of the dimensions of a result."""
    return [f"d{i}" for i in range(rank)]


class LoopBuilder:
    """Builds the nests of one function and remembers the view behind each aten value."""

    def __init__(self, emitter: Emitter) -> None:
        """Starts with no values known."""
        self.emitter = emitter
        self.readings: dict[SSAValue, TensorView] = {}
        self._converted: dict[tuple[SSAValue, Attribute], SSAValue] = {}
        self._copies: dict[tuple[SSAValue, IndexView, tuple[int, ...]], TensorView] = {}

    def reading(self, value: object, element: Attribute) -> TensorView:
        """Return the view of an aten value; a number becomes a tensor of rank 0."""
        if isinstance(value, SSAValue):
            return self.readings[value]
        number = float(cast(float, value))
        exact = not isinstance(value, int) or int(number) == value
        known = FloatAttr(number, f64) if exact else IntegerAttr(cast(int, value), i64)
        op = self.emitter.add(LoopConstantOp(known, TensorType(element, [])))
        return whole(op.results[0])

    def converted(self, reading: TensorView, element: Attribute) -> TensorView:
        """Return the view in another element type: a copy of the whole tensor, which may be free on the device."""
        base = reading.base
        if element_of(base) == element:
            return reading
        if (base, element) not in self._converted:
            made = self.pointwise(None, [whole(base)], TensorType(element, shape_of(base)))
            self._converted[base, element] = made.base
        return TensorView(self._converted[base, element], reading.view)

    @property
    def conversions(self) -> list[SSAValue]:
        """Return the tensors that are conversions of other tensors to another element type."""
        return list(self._converted.values())

    def copy(self, reading: TensorView, shape: tuple[int, ...] | None = None) -> TensorView:
        """Return a fresh tensor with the elements of a view, optionally under another shape of the same order."""
        target = reading.shape if shape is None else shape
        fresh = TensorType(element_of(reading.base), target)
        return self.pointwise(None, [reading], fresh, cut=IndexView.identity(target))

    def shared_copy(self, reading: TensorView, shape: tuple[int, ...]) -> TensorView:
        """Return a tensor with the elements of a view under another shape of the same order, one for all who ask."""
        key = reading.base, reading.view, shape
        if key not in self._copies:
            self._copies[key] = self.copy(reading, shape)
        return self._copies[key]

    def pointwise(
        self,
        entry: OpEntry | None,
        readings: Sequence[TensorView],
        result: TensorType[Attribute],
        cut: IndexView | None = None,
        numbers: Mapping[str, float] | None = None,
    ) -> TensorView:
        """Add one nest that applies `entry` to views broadcast to the result's shape.

        `cut`, for copies under another shape, is the view of the result in that shape.
        """
        shape = readings[0].shape if cut is not None else result.get_shape()
        target = IndexView.identity(result.get_shape()) if cut is None else cut.reshape(shape)
        readings = [self._joined(r, shape) for r in readings] if len(readings) > 1 else readings
        readings = [TensorView(r.base, r.view.expand(shape)) for r in readings]
        loops, out, readings = self.align(readings, target, stems(len(shape)))
        if loop_count(loops) > MOST_LOOPS:
            loops, out, readings = self._with_fewer_loops(loops, out, readings, target, shape)
        op = make_nest(loops, [r.base for r in readings], out, result, entry, numbers=numbers)
        return whole(self.emitter.add(op).results[0])

    def _joined(self, reading: TensorView, shape: tuple[int, ...]) -> TensorView:
        """A copy of a view that cuts a dimension of a nest in parts, where the nest repeats the view many times.

        The parts of a dimension may all be too short for the lanes, and then each element of the nest takes a stick.
        """
        cuts = any(len(axes) > 1 for axes in reading.view.dims)
        return self.copy(reading) if cuts and prod(reading.shape) * _REPEATED <= prod(shape) else reading

    def _with_fewer_loops(
        self, loops: NestLoops, out: IndexMap, readings: Sequence[TensorView], target: IndexView, shape: tuple[int, ...]
    ) -> tuple[NestLoops, IndexMap, list[TensorView]]:
        """A nest's loops joined; if that is not enough, operands that are mere changes of order are put in order."""
        loops, out = merged(loops, out)
        chosen = list(readings)
        for at, reading in enumerate(chosen):
            nearer = staged(self.copy, reading) if loop_count(loops) > MOST_LOOPS else None
            if loop_count(loops) <= MOST_LOOPS or (nearer is None and len(chosen) == 1):
                break  # whether the kernel needs fewer labels in the end shows when it is written
            chosen[at] = self.copy(reading) if len(chosen) > 1 or nearer is None else nearer
            found, own, chosen = self.align(chosen, target, stems(len(shape)))
            loops, out = merged(found, own)
        return loops, out, chosen

    def reduced(self, source: TensorView, dim: int, entry: OpEntry) -> TensorView:
        """Reduce one dimension, and keep it with extent 1."""
        if source.shape[dim] == 1:
            return source
        source, wide = _once(source, dim), source.shape
        # A repeated element has to be there as often as it counts: no access folds what it does not walk.
        if len(source.view.dims[dim]) > 1 or source.view.repeats:
            source = self.copy(source)
        shape = tuple(1 if d == dim else e for d, e in enumerate(source.shape))
        names = ["r" if d == dim else s for d, s in enumerate(stems(len(shape)))]
        loops = align([source.view], names)
        out = tuple(e if d != dim else type(e)() for d, e in enumerate(loops.exprs()))
        result = TensorType(element_of(source.base), shape)
        combine = combining(entry, element_of(source.base))
        op = make_nest(loops, [source.base], out, result, None, combine=combine)
        folded = whole(self.emitter.add(op).results[0])
        return TensorView(folded.base, folded.view.expand(tuple(1 if d == dim else e for d, e in enumerate(wide))))

    def align(
        self, readings: Sequence[TensorView], target: IndexView, names: Sequence[str]
    ) -> tuple[NestLoops, IndexMap, list[TensorView]]:
        """Return the loops of views and a result, the result's map, and the views: those that do not fit are copied.

        Raises:
            UnsupportedError: no loops walk all shapes.
        """
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
                at = cut.pop(0)
                chosen[at] = self.copy(chosen[at])


def _once(source: TensorView, dim: int) -> TensorView:
    """The reading without the repetitions that a reduction of `dim` keeps: they are folded once and repeated then."""
    view = source.view
    for d in range(len(source.shape)):
        if d != dim and absent(view, d):
            view = view.slice(d, 0, 1)
    return TensorView(source.base, view)

"""Rules for the loop level: a nest is evaluated on whole arrays, one axis per iteration dimension."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import cast

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.interpreter import (
    Interpreter,
    InterpreterFunctions,
    PythonValues,
    ReturnedValues,
    TerminatorValue,
    impl,
    impl_terminator,
    register_impls,
)
from xdsl.ir import Attribute, Operation

from spyre_mlir.dialects.spyre.attributes import IndexMapAttr
from spyre_mlir.dialects.spyre.loop import (
    EmptyOp,
    LoopConstantOp,
    LoopGatherOp,
    NestOp,
    YieldOp,
    body_function,
    combiner,
)
from spyre_mlir.dialects.spyre.named_values import FirstOnesAttr, IotaAttr, ResampleAttr
from spyre_mlir.dialects.spyre.scalars import ApplyOp, entry_of, numbers_of, scalar_classes
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw.moves import map_view
from spyre_mlir.machine.arrays import (
    Array,
    HostArray,
    as_numbers,
    check_known,
    contract,
    expression_grid,
    first_index,
    in_width,
    numpy_type,
    tensor_type,
    with_rules,
)
from spyre_mlir.machine.eager_rounding import as_eager
from spyre_mlir.machine.faults import FaultKind, fault, place_of
from spyre_mlir.ops.native.resample import resample_weights

_PRODUCT, _SUM = "arith.mulf", "arith.addf"


def known_numbers(value: Attribute, shape: Sequence[int], op: Operation) -> Array:
    """Return the elements of a constant: one number everywhere, a range, or leading ones along the last dimension.

    Raises:
        UnsupportedError: the value is of another kind.
    """
    match value:
        case FloatAttr() | IntegerAttr():
            return np.full(shape, value.value.data)
        case IotaAttr():
            row = value.start.value.data + value.step.value.data * np.arange(shape[-1])
            return np.broadcast_to(row, shape)
        case FirstOnesAttr():
            return np.broadcast_to(np.arange(shape[-1]) < value.count.value.data, shape)
        case ResampleAttr():
            size = (shape[0], shape[1])
            return resample_weights(size, value.mode.data, value.scale.value.data, value.offset.value.data)
        case _:
            raise UnsupportedError(
                f"a constant of value {value}",
                where=place_of(op),
                hint="a number, #spyre.iota, #spyre.first_ones and #spyre.resample are possible",
            )


def gather_rows(indices: Array, extent: int, op: Operation) -> Array:
    """Return indices as integers, each a row of the table.

    Raises:
        MachineFault: one is outside 0 .. extent - 1.
    """
    rows = indices.astype(np.int64)
    outside = (rows < 0) | (rows >= extent)
    if outside.any():
        at = first_index(outside)
        raise fault(
            FaultKind.INDEX_OUT_OF_RANGE,
            f"index {int(rows[tuple(at)])} at position {at} of the indices, the table has {extent} rows",
            op,
        )
    return rows


def _read(array: HostArray, index: IndexMapAttr, op: NestOp | LoopGatherOp, names: Sequence[str], tensor: str) -> Array:
    extents = op.space.extents
    try:
        if array.defined is not None:
            check_known(map_view(array.defined, index.data, extents, names), op, tensor)
        return map_view(array.values, index.data, extents, names)
    except IndexError as error:
        raise fault(FaultKind.OUT_OF_BOUNDS, f"{tensor}: {error}", op) from error


def _kept(op: NestOp) -> list[str]:
    return [d.name for d in op.space.data if d.name not in op.reduced]


def _product(op: NestOp, inputs: Sequence[HostArray]) -> Array | None:
    """A nest of products summed up, as one matrix product; None if it is no such nest."""
    entry = body_function(op.body.block)
    if entry is None or entry.scalar != _PRODUCT or op.combine is None or len(inputs) != 2:
        return None
    if combiner(op.combine.data).combine != _SUM:
        return None
    axes = [[d.name for d in op.space.data if d.name in index.names] for index in op.input_maps]
    views = [
        _read(x, m, op, a, f"input {n}") for n, (x, m, a) in enumerate(zip(inputs, op.input_maps, axes, strict=True))
    ]
    try:
        return contract(views[0], views[1], axes[0], axes[1], _kept(op))
    except ValueError:
        return None  # broadcast or one-sided sums: the general way


def _evaluate(interpreter: Interpreter, op: NestOp, inputs: Sequence[HostArray]) -> Array:
    """The value of every element written, one axis per dimension that is not reduced."""
    if (product := _product(op, inputs)) is not None:
        return product
    names = [d.name for d in op.space.data]
    views = [_read(x, m, op, names, f"input {n}") for n, (x, m) in enumerate(zip(inputs, op.input_maps, strict=True))]
    with np.errstate(all="ignore"):
        (values,) = interpreter.run_ssacfg_region(op.body, tuple(views), op.name)
    values = np.broadcast_to(cast(Array, values), tuple(op.space.extents.values()))
    if not op.reduced or op.combine is None:
        return values
    return np.asarray(combiner(op.combine.data).meaning(values, dim=tuple(names.index(n) for n in op.reduced)))


def _target(op: NestOp | LoopGatherOp, dest: HostArray | None) -> HostArray:
    type_ = tensor_type(op.result.type)
    if dest is None:
        return HostArray.undefined(type_.get_shape(), type_.get_element_type())
    return HostArray(dest.values.copy(), None if dest.defined is None else dest.defined.copy())


def _write(
    op: NestOp | LoopGatherOp, index: IndexMapAttr, values: Array, names: Sequence[str], target: HostArray
) -> HostArray:
    """`target`, which is ours to change, with `values` at the places the map names."""
    extents = op.space.extents
    try:
        map_view(target.values, index.data, extents, names)[...] = values
        if target.defined is not None:
            map_view(target.defined, index.data, extents, names)[...] = True
    except IndexError as error:
        raise fault(FaultKind.OUT_OF_BOUNDS, f"the result: {error}", op) from error
    return HostArray(target.values, None if target.defined is None or target.defined.all() else target.defined)


@register_impls
class LoopFunctions(InterpreterFunctions):
    """Rules of `spyre.loop`, without the scalar operations in bodies."""

    @impl(NestOp)
    def run_nest(self, interpreter: Interpreter, op: NestOp, args: PythonValues) -> PythonValues:
        """Evaluate the body on all points at once, combine, and write through the result's map."""
        inputs = cast(tuple[HostArray, ...], args[: len(op.inputs)])
        dest = cast(HostArray, args[-1]) if op.dest is not None else None
        element = tensor_type(op.result.type).get_element_type()
        values = _evaluate(interpreter, op, inputs)
        # Integers that become floats are rounded once, from what they are.
        values = as_numbers(values, element) if numpy_type(element) is np.int64 else in_width(values, element)
        values = values if op.wide is not None else as_eager(values, str(element))
        return (_write(op, op.output_map, values, _kept(op), _target(op, dest)),)

    @impl_terminator(YieldOp)
    def run_yield(
        self, _interpreter: Interpreter, _op: YieldOp, args: PythonValues
    ) -> tuple[TerminatorValue, PythonValues]:
        """Pass the values of all points to the nest."""
        return ReturnedValues(args), ()

    @impl(LoopGatherOp)
    def run_gather(self, _interpreter: Interpreter, op: LoopGatherOp, args: PythonValues) -> PythonValues:
        """Read the table at the rows that the indices name."""
        indices, table = cast(tuple[HostArray, HostArray], args)
        names, extents, axis = [d.name for d in op.space.data], op.space.extents, op.axis.value.data
        used = [n for n in names if n in op.maps.data[0].names]
        rows = _read(indices, op.maps.data[0], op, used, "the indices")
        if op.from_end is not None:
            rows = np.where(rows < 0, rows + table.values.shape[axis], rows)
        rows = gather_rows(rows, table.values.shape[axis], op)
        rows = rows.reshape([extents[n] if n in used else 1 for n in names])
        grids = [expression_grid(e, extents, names) for e in op.maps.data[1].data]
        grids[axis] = rows
        if table.defined is not None:
            check_known(table.defined[tuple(grids)], op, "the table")
        return (_write(op, op.maps.data[2], table.values[tuple(grids)], names, _target(op, None)),)

    @impl(EmptyOp)
    def run_empty(self, _interpreter: Interpreter, op: EmptyOp, _args: PythonValues) -> PythonValues:
        """Return an undefined tensor."""
        type_ = tensor_type(op.result.type)
        return (HostArray.undefined(type_.get_shape(), type_.get_element_type()),)

    @impl(LoopConstantOp)
    def run_constant(self, _interpreter: Interpreter, op: LoopConstantOp, _args: PythonValues) -> PythonValues:
        """Return a tensor of constant numbers."""
        type_ = tensor_type(op.result.type)
        return (HostArray.of(known_numbers(op.value, type_.get_shape(), op), type_.get_element_type()),)


def _run_scalar(
    _functions: InterpreterFunctions, _interpreter: Interpreter, op: Operation, args: PythonValues
) -> PythonValues:
    entry = entry_of(op)
    if entry is None:
        raise UnsupportedError(
            f"{op.name} in the body of a nest",
            where=place_of(op),
            hint="use an operation of the op table, or spyre.loop.apply",
        )
    if any(isinstance(a, HostArray) for a in args):
        raise UnsupportedError(
            f"{op.name} on whole tensors", where=place_of(op), hint="use the aten op, for example aten.add.Tensor"
        )
    values = np.asarray(entry.meaning(*args, **numbers_of(op)))
    return (as_numbers(values, op.results[0].type),)


class _ScalarFunctions(InterpreterFunctions):
    """One rule for every scalar operation."""


@cache
def _with_rules() -> type[_ScalarFunctions]:
    """The class with its rules, made once."""
    made = {f"run_{c.name}": impl(c)(_run_scalar) for c in (*scalar_classes(), ApplyOp)}
    return with_rules(_ScalarFunctions, made)


def scalar_rules() -> InterpreterFunctions:
    """Return rules for the scalar operations that table entries name, and for `spyre.loop.apply`; all work on arrays.

    xDSL's own rules for arith and math take Python numbers one by one.
    """
    return _with_rules()()


__all__ = ["LoopFunctions", "gather_rows", "known_numbers", "scalar_rules"]

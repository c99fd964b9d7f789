"""Rules for loops: `scf.for` at the kernel level and in bundles, and the tiles of its trips."""

from __future__ import annotations

from typing import cast

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
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

from spyre_mlir.dialects.spyre.attributes import DeviceTensor
from spyre_mlir.dialects.spyre.kernel_loop import TileOp
from spyre_mlir.dialects.spyre.kernel_op import device_tensor
from spyre_mlir.dialects.spyre.kernel_view import ViewOp
from spyre_mlir.dialects.target import spec_at
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw.spec import STICK_BYTES
from spyre_mlir.machine.faults import FaultKind, fault, place_of
from spyre_mlir.machine.levels.buffers import DeviceBuffer


@register_impls
class ForFunctions(InterpreterFunctions):
    """Semantics of `scf.for` on the device: the body repeats, and only memory carries values."""

    @impl(scf.ForOp)
    def run_for(self, interpreter: Interpreter, op: scf.ForOp, args: PythonValues) -> PythonValues:
        """Run the body once per value of the induction variable.

        Raises:
            UnsupportedError: the loop carries values from trip to trip.
            MachineFault: ``loop-step``, ``trip-count``.
        """
        if len(args) > 3:
            raise UnsupportedError(
                f"a loop that carries {len(args) - 3} values from trip to trip",
                where=place_of(op),
                hint="keep them in memory",
            )
        lower, upper, step = cast(tuple[int, int, int], args)
        if step < 1:
            raise fault(FaultKind.LOOP_STEP, f"a loop with step {step} has no end", op, hint="count upwards")
        trips = range(lower, upper, step)
        if len(trips) > (most := spec_at(op).loop_trips):
            raise fault(
                FaultKind.TRIP_COUNT,
                f"the loop makes {len(trips)} trips, the device counts to {most}",
                op,
                hint="use larger tiles, or two nested loops",
            )
        for value in trips:
            interpreter.run_ssacfg_region(op.body, (value,), "for_loop")
        return ()

    @impl_terminator(scf.YieldOp)
    def run_yield(
        self, _interpreter: Interpreter, _op: scf.YieldOp, args: PythonValues
    ) -> tuple[TerminatorValue, PythonValues]:
        """End a trip."""
        return ReturnedValues(args), ()


@register_impls
class TileFunctions(InterpreterFunctions):
    """Ops around kernel-level loops: bounds, and tiles and views of buffers."""

    @impl(arith.ConstantOp)
    def run_constant(self, _interpreter: Interpreter, op: arith.ConstantOp, _args: PythonValues) -> PythonValues:
        """Return a loop bound.

        Raises:
            UnsupportedError: it is no integer.
        """
        if not isinstance(op.value, IntegerAttr):
            raise UnsupportedError(
                f"expected an integer as a constant between kernels, got {op.value}",
                where=place_of(op),
                hint="only bounds and steps of loops stand there; write numbers of kernels as spyre.kernel.constant",
            )
        return (op.value.value.data,)

    @impl(TileOp)
    def run_tile(self, _interpreter: Interpreter, op: TileOp, args: PythonValues) -> PythonValues:
        """Return the same memory, from another stick on.

        Raises:
            MachineFault: ``use-after-free``, ``out-of-bounds``.
        """
        whole, index = cast(tuple[DeviceBuffer, int], args)
        start = (op.first_bytes + index * op.step_bytes) // STICK_BYTES
        if whole.dead:
            raise fault(FaultKind.USE_AFTER_FREE, "the tensor was freed", op)
        if not 0 <= start < len(whole.values):
            raise fault(FaultKind.OUT_OF_BOUNDS, f"the tile starts at stick {start} of {len(whole.values)}", op)
        return (tile_of(whole, device_tensor(op.result), start),)

    @impl(ViewOp)
    def run_view(self, _interpreter: Interpreter, op: ViewOp, args: PythonValues) -> PythonValues:
        """Return the same memory as another tensor.

        Raises:
            MachineFault: ``use-after-free``.
        """
        (whole,) = cast(tuple[DeviceBuffer], args)
        if whole.dead:
            raise fault(FaultKind.USE_AFTER_FREE, "the tensor was freed", op)
        return (tile_of(whole, device_tensor(op.result), 0),)


def tile_of(whole: DeviceBuffer, tensor: DeviceTensor, start: int) -> DeviceBuffer:
    """Return the part of a buffer from stick `start` on, as a tensor of its own that shares values and states."""
    return DeviceBuffer(tensor, whole.values[start:], whole.initialised[start:], whole=whole)


__all__ = ["ForFunctions", "TileFunctions", "tile_of"]

"""Runs a host program: transfers to device memory, launches of bundles, transfers back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.interpreter import Interpreter, InterpreterFunctions, PythonValues, impl, register_impls
from xdsl.interpreters.func import FuncFunctions

from spyre_mlir.dialects.spyre.attributes import DeviceTensor
from spyre_mlir.dialects.spyre.kernel import AllocOp, ConstantOp, FromDeviceOp, LaunchOp, ToDeviceOp, device_tensor
from spyre_mlir.errors import SpyreError
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.machine.arrays import Array, HostArray, Mask, as_numbers, first_index, tensor_type
from spyre_mlir.machine.bundle import Loader, run_bundle
from spyre_mlir.machine.device_memory import memory_for
from spyre_mlir.machine.faults import FaultKind, FaultLog, Place, fault
from spyre_mlir.machine.kernel import ZERO_PADDING, check_integers
from spyre_mlir.machine.levels import bind_inputs, find_function
from spyre_mlir.machine.loop import known_numbers
from spyre_mlir.machine.memory import Memory
from spyre_mlir.machine.options import MachineOptions
from spyre_mlir.machine.transfer import Resident, access_of, fetch, send


@dataclass(frozen=True)
class DeviceProgram:
    """A host program with the bundle it launches.

    Attributes:
        host: module with the host function `main`.
        bundle: module with the bundle function.
        load: gives the descriptor of a file the bundle names.
    """

    host: ModuleOp
    bundle: ModuleOp
    load: Loader


@dataclass
class _Placed:
    """A tensor in device memory."""

    tensor: DeviceTensor
    base: int


@register_impls
@dataclass
class HostFunctions(InterpreterFunctions):
    """Rules of the host program on one device memory."""

    program: DeviceProgram
    memory: Memory
    options: MachineOptions
    resident: Resident
    gaps: dict[int, Place] = field(default_factory=dict[int, Place])  # where undefined elements were read from
    _count: int = 0

    def _place(self, tensor: DeviceTensor) -> _Placed:
        region = self.memory.allocate(f"argument {self._count}", tensor.sticks * SPYRE.stick_bytes)
        self._count += 1
        return _Placed(tensor, region.base)

    def _send(self, tensor: DeviceTensor, values: Array, known: Mask | None, *, zero_padding: bool) -> _Placed:
        placed, key = self._place(tensor), (tensor, zero_padding, self.options)
        region = self.memory.locate(placed.base, placed.base + 1)
        if known is None and self.resident.restore(key, values, region):
            return placed
        send(self.memory, tensor, placed.base, values, known, zero_padding=zero_padding)
        if known is None:
            self.resident.remember(key, values, region)
        return placed

    @impl(ToDeviceOp)
    def run_to_device(self, interpreter: Interpreter, op: ToDeviceOp, args: PythonValues) -> PythonValues:
        """Writes a host tensor to memory in the layout of its type."""
        (host,) = cast(tuple[HostArray], args)
        tensor = device_tensor(op.result)
        check_integers(op, host.values, tensor)
        return (self._send(tensor, host.values, host.defined, zero_padding=ZERO_PADDING in op.attributes),)

    @impl(ConstantOp)
    def run_constant(self, interpreter: Interpreter, op: ConstantOp, args: PythonValues) -> PythonValues:
        """Writes known numbers to memory."""
        tensor = device_tensor(op.result)
        return (self._send(tensor, known_numbers(op.value, tensor.shape, op), None, zero_padding=True),)

    @impl(AllocOp)
    def run_alloc(self, interpreter: Interpreter, op: AllocOp, args: PythonValues) -> PythonValues:
        """Memory without contents."""
        return (self._place(device_tensor(op.result)),)

    @impl(LaunchOp)
    def run_launch(self, interpreter: Interpreter, op: LaunchOp, args: PythonValues) -> PythonValues:
        """Runs the bundle on the addresses of its arguments."""
        addresses = [placed.base for placed in cast(tuple[_Placed, ...], args)]
        run_bundle(self.program.bundle, self.memory, addresses, self.program.load)
        return ()

    @impl(FromDeviceOp)
    def run_from_device(self, interpreter: Interpreter, op: FromDeviceOp, args: PythonValues) -> PythonValues:
        """Reads the logical elements back."""
        (placed,) = cast(tuple[_Placed], args)
        host = fetch(self.memory, placed.tensor, placed.base)
        if host.defined is not None:
            self.gaps[id(host.defined)] = access_of(placed.tensor, placed.base).place_at(first_index(~host.defined))
        return (host,)


def run_program(
    program: DeviceProgram,
    inputs: Sequence[Array],
    options: MachineOptions | None = None,
    resident: Resident | None = None,
    log: FaultLog | None = None,
) -> list[Array]:
    """Runs a host program and the bundle it launches.

    Args:
        program: what to run.
        inputs: one array per argument of `main`.
        options: how to run; ``exact`` numerics if not given.
        resident: what earlier runs of this program sent.
        log: takes the faults, if the run does not stop at the first.

    Returns:
        One array per result; floats are float64, or float32 where device numerics compute in it.

    Raises:
        InputError: the arrays do not fit the arguments.
        MachineFault: the program misbehaved.
    """
    main = find_function(program.host, "main")
    settings = options or MachineOptions()
    arguments = bind_inputs(main, inputs, narrow=settings.numerics == "device")
    interpreter = Interpreter(program.host)
    memory = memory_for(settings)
    memory.log = log or memory.log
    rules = HostFunctions(program, memory, settings, resident or Resident())
    for functions in (FuncFunctions(), rules):
        interpreter.register_implementations(functions)
    try:
        results = cast(tuple[HostArray, ...], interpreter.call_op(main, tuple(arguments)))
    except SpyreError as error:
        # The interpreter attaches the whole module as a note at every level; the error says where by itself.
        error.__notes__ = []
        raise
    kinds = [tensor_type(t).get_element_type() for t in main.function_type.outputs]
    narrow = settings.numerics == "device"
    return [
        as_numbers(_result(r, n, rules), kind, narrow=narrow)
        for n, (r, kind) in enumerate(zip(results, kinds, strict=True))
    ]


def _result(result: HostArray, number: int, rules: HostFunctions) -> Array:
    """The elements of a result, all of which must have been written."""
    if result.defined is not None and not result.defined.all():
        place = replace(rules.gaps.get(id(result.defined), Place()), op="from_device", tensor=f"result {number}")
        missing = int((~result.defined).sum())
        message = f"{missing} elements were never written, the first at {first_index(~result.defined)}"
        rules.memory.log.meet(fault(FaultKind.UNWRITTEN_OUTPUT, message, place))
    return result.values

"""Runs a host program: transfers to device memory, launches of bundles, transfers back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import cast

import numpy as np
from xdsl.interpreter import Interpreter, InterpreterFunctions, PythonValues, impl, register_impls
from xdsl.ir import Operation, SSAValue

from spyre_mlir.dialects.argument_notes import argument_name
from spyre_mlir.dialects.places import source_of
from spyre_mlir.dialects.spyre.attributes import DeviceTensor
from spyre_mlir.dialects.spyre.kernel import (
    AllocOp,
    FromDeviceOp,
    KernelConstantOp,
    LaunchOp,
    ToDeviceOp,
    device_tensor,
    segment_of,
)
from spyre_mlir.dialects.spyre.kernel_loop import TileOp
from spyre_mlir.dialects.target import spec_at
from spyre_mlir.errors import InputError, SpyreError
from spyre_mlir.hw import image
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.moves import HostStep
from spyre_mlir.hw.number_formats import dl16, encoding
from spyre_mlir.hw.spec import STICK_BYTES, USER_SEGMENTS, segment_base
from spyre_mlir.machine.arrays import Array, HostArray, as_numbers, first_index, tensor_type
from spyre_mlir.machine.bundle.device_program import DeviceProgram, check_held, takes_none
from spyre_mlir.machine.bundle.host_code import driven
from spyre_mlir.machine.bundle.kept_tensors import (
    CardImage,
    CardResult,
    Form,
    KeptInput,
    KeptTensor,
    argument_of,
    numbers_of,
    staying,
)
from spyre_mlir.machine.bundle.launch_trace import LaunchSite
from spyre_mlir.machine.bundle.run import run_bundle
from spyre_mlir.machine.bundle.transfers import (
    ResidentTensors,
    access_of,
    fetch,
    fills,
    send,
    send_image,
    written_elements,
)
from spyre_mlir.machine.faults import FaultKind, FaultLog, Place, Standing, fault, place_of
from spyre_mlir.machine.levels.buffers import after_moves, sent_integers, source_name
from spyre_mlir.machine.levels.calls import FunctionRules
from spyre_mlir.machine.levels.control_flow import CardControlFunctions
from spyre_mlir.machine.levels.host_blocks import BlockFunctions, check_runs
from spyre_mlir.machine.levels.host_ops import HostStepFunctions
from spyre_mlir.machine.levels.loop import known_numbers
from spyre_mlir.machine.levels.named_places import check_places
from spyre_mlir.machine.levels.run import check_count, find_function
from spyre_mlir.machine.memory.choice import memory_for
from spyre_mlir.machine.memory.exact import Memory
from spyre_mlir.machine.options import MachineOptions

POOL = "pool"


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
    resident: ResidentTensors
    gaps: dict[int, Place] = field(default_factory=dict[int, Place])  # where undefined elements were read from
    kept: Mapping[SSAValue, Sequence[int]] = field(default_factory=dict[SSAValue, "Sequence[int]"])
    stayed: dict[int, CardResult] = field(default_factory=dict[int, CardResult])  # results that were not read back

    def _place(self, op: Operation, *, zeroed: bool = True) -> _Placed:
        """Room for a tensor: at the start of the segment its bundle expects it in, or anywhere."""
        tensor = device_tensor(op.results[0])
        name, size = f"argument {self.program.tensor_number(op)}", tensor.sticks * STICK_BYTES
        segment = segment_of(op.results[0])
        self.memory.arguments.add(name)
        if segment is None:
            return _Placed(tensor, self.memory.allocate(name, size, zeroed=zeroed, first_fit=True).base)
        base = self._segment_base(op, segment)
        return _Placed(tensor, self.memory.add_region(name, base, size, zeroed=zeroed).base)

    def _segment_base(self, op: Operation, segment: int) -> int:
        if not 0 <= segment < USER_SEGMENTS:
            raise InputError(f"segment {segment} is none of the {USER_SEGMENTS} for tensors", where=place_of(op))
        return segment_base(segment)

    def _send(self, op: Operation, host: HostArray, moves: tuple[HostStep, ...] = (), *, zero_padding: bool) -> _Placed:
        tensor, values = device_tensor(op.results[0]), host.values
        placed = self._place(op, zeroed=not (zero_padding or fills(tensor)))
        key, region = (tensor, zero_padding, self.options, moves), self.memory.locate(placed.base, placed.base + 1)
        if host.defined is None and self.resident.restore(key, values, region):
            return placed
        send(self.memory, tensor, placed.base, after_moves(moves, host), zero_padding=zero_padding)
        if host.defined is None:
            self.resident.remember(key, values, region)
        return placed

    def _send_codes(self, op: ToDeviceOp) -> _Placed:
        """Sends a weight the program came with, which is laid out already."""
        tensor, placed = device_tensor(op.result), self._place(op, zeroed=False)
        key, region = (op, tensor, self.options), self.memory.locate(placed.base, placed.base + 1)
        if self.resident.restore_file(key, region):
            return placed
        weight, shape = self.program.weight(op), (tensor.sticks, tensor.lanes)
        codes = np.zeros(0) if weight is None else weight()
        if codes.shape != shape or codes.dtype != encoding.STORED_TYPES[tensor.format]:
            raise InputError(
                f"the weight is {codes.dtype}{list(codes.shape)}, the program sends {tensor.format}{list(shape)}",
                where=place_of(op),
                hint="write the bundle again",
            )
        sent = None
        if op.zero_padding is None:
            whole = np.ones(tensor.shape, np.bool_)
            sent = image.arrange(whole, tensor.layout, tensor.lanes, tensor.arrangement)
        send_image(self.memory, tensor, placed.base, codes, None if sent is None or sent.all() else sent)
        self.resident.remember_file(key, region)
        return placed

    @impl(ToDeviceOp)
    def run_to_device(self, _interpreter: Interpreter, op: ToDeviceOp, args: PythonValues) -> PythonValues:
        """Write a host tensor to memory in the layout of its type."""
        (host,) = cast(tuple[HostArray | KeptInput | None], args)
        if host is None:
            return (self._send_codes(op),)
        return (self._send_kept(op, host) if isinstance(host, KeptInput) else self._send_host(op, host)[0],)

    def _send_kept(self, op: ToDeviceOp, given: KeptInput) -> _Placed:
        """Shares what an earlier run sent or left; sends it if there is nothing in this form."""
        tensor, kept = device_tensor(op.result), given.kept
        padded = op.zero_padding is not None
        form = Form.of(tensor, self.options, zero_padding=padded, moves=op.moves, elements=op.converts_to)
        image = kept.image(form)
        if image is None:
            stored = self.options.numerics == "device" and self.program.weight(op) is not None
            placed, beyond = (self._send_codes(op), None) if stored else self._send_host(op, given.bound())
            kept.sent(form, CardImage.of(self.memory.locate(placed.base, placed.base + 1), beyond))
            return placed
        placed = self._place(op, zeroed=False)
        self.memory.locate(placed.base, placed.base + 1).share(image.cells, image.states)
        if image.beyond is not None:
            self._overflow(op, *image.beyond)
        return placed

    def _send_host(self, op: ToDeviceOp, host: HostArray) -> tuple[_Placed, tuple[int, float] | None]:
        """Sends numbers of the host; says how many DLFloat16 does not reach, and the largest."""
        exact, before = self.options.numerics != "device", replace(self.memory.tally)
        values = sent_integers(op, host.values, device_tensor(op.result), source_name(op), exact=exact)
        placed = self._send(op, HostArray(values, host.defined), op.moves, zero_padding=op.zero_padding is not None)
        # What is there from an earlier run was rounded then.
        if not exact and (self.memory.tally != before or self.memory.locate(placed.base, placed.base + 1).shared):
            return placed, self._note_overflow(op, host)
        return placed, None

    def _note_overflow(self, op: ToDeviceOp, host: HostArray) -> tuple[int, float] | None:
        """Notes finite numbers of a tensor that DLFloat16 does not reach, unless they are what fills a mask."""
        values = host.values
        if device_tensor(op.result).format != DL16.name or values.dtype.kind != "f" or not values.size:
            return None
        if max(-float(values.min()), float(values.max())) < dl16.BEYOND_LARGEST:
            return None
        beyond = values[np.isfinite(values) & (np.abs(values) >= dl16.BEYOND_LARGEST)]
        fills = beyond.size > 0 and bool((beyond == beyond[0]).all()) and beyond[0] < 0
        if not beyond.size or fills:
            return None
        self._overflow(op, beyond.size, float(np.abs(beyond).max()))
        return beyond.size, float(np.abs(beyond).max())

    def _overflow(self, op: ToDeviceOp, count: int, largest: float) -> None:
        name = source_name(op).removesuffix(",")
        self.memory.log.overflow(f"to_device {name}", name, count, largest)

    @impl(KernelConstantOp)
    def run_constant(self, _interpreter: Interpreter, op: KernelConstantOp, _args: PythonValues) -> PythonValues:
        """Write constant numbers to memory."""
        values = self.resident.constant(op, lambda: known_numbers(op.value, device_tensor(op.result).shape, op))
        return (self._send(op, HostArray(values), zero_padding=True),)

    @impl(AllocOp)
    def run_alloc(self, _interpreter: Interpreter, op: AllocOp, _args: PythonValues) -> PythonValues:
        """Allocate memory without contents."""
        return (self._place(op),)

    @impl(TileOp)
    def run_tile(self, _interpreter: Interpreter, op: TileOp, args: PythonValues) -> PythonValues:
        """Name the memory of a block."""
        whole, number = cast(tuple[_Placed, int], args)
        return (_Placed(device_tensor(op.result), whole.base + number * op.step_bytes),)

    @impl(LaunchOp)
    def run_launch(self, _interpreter: Interpreter, op: LaunchOp, args: PythonValues) -> PythonValues:
        """Run the bundle on the addresses of its arguments; without arguments if its files hold them.

        Raises:
            InputError: the files hold addresses, and the host program does not say where its tensors are.
        """
        placed = cast(tuple[_Placed, ...], args)
        entry = op.bundle.root_reference.data
        fixed = takes_none(self.program.bundle, entry) and bool(placed)
        if fixed and any(segment_of(buffer) is None for buffer in op.buffers):
            raise InputError(
                "the bundle's files hold addresses, and the host program does not say in which segments they lie",
                hint="write the bundle again",
            )
        pool = op.fixed_pool_bytes
        if pool is not None:
            self.memory.add_region(POOL, self._segment_base(op, 0), pool)
        bases = [] if fixed else [p.base for p in placed]
        self.memory.integer_kernels, self.memory.elements = op.watched, op.element_names
        program, caller, plans = self.program, self._caller(op, placed), self.resident.plans
        run = partial(run_bundle, program.bundle, self.memory, bases, program.load, program.watch)
        run(entry=entry, plans=plans, caller=caller, before=program.before)
        self.memory.remove_region(POOL)
        return ()

    def _caller(self, op: LaunchOp, placed: Sequence[_Placed]) -> LaunchSite:
        names = [self.memory.locate(p.base, p.base + 1).name for p in placed]
        return LaunchSite(names, self.program.rebase(op), self.program.tensors)

    @impl(FromDeviceOp)
    def run_from_device(self, _interpreter: Interpreter, op: FromDeviceOp, args: PythonValues) -> PythonValues:
        """Read the logical elements back."""
        (placed,) = cast(tuple[_Placed], args)
        if self._stays(op, placed):
            return (HostArray(np.empty(0)),)
        host = fetch(self.memory, placed.tensor, placed.base)
        if host.defined is not None:
            place = access_of(placed.tensor, placed.base).place_at(first_index(~host.defined))
            source = source_of(op.location)
            self.gaps[id(host.defined)] = replace(place, line=str(source) if source else None)
        return (host,)

    def _stays(self, op: FromDeviceOp, placed: _Placed) -> bool:
        """Keep a result on the card, if it is to stay there and has been written."""
        if not (numbers := self.kept.get(op.result, ())):
            return False
        written = written_elements(self.memory, placed.tensor, placed.base)
        if written is not None and not written.all():
            return False
        region = self.memory.locate(placed.base, placed.base + 1)
        element, form = tensor_type(op.result.type).get_element_type(), Form.of(placed.tensor, self.options)
        self.stayed.update(dict.fromkeys(numbers, CardResult.of(form, region, self.memory.spec, element)))
        return True


def run_program(
    program: DeviceProgram,
    inputs: Sequence[Array | KeptTensor | None],
    options: MachineOptions | None = None,
    resident: ResidentTensors | None = None,
    log: FaultLog | None = None,
) -> list[Array]:
    """Run a host program and the bundle it launches.

    Args:
        program: what to run.
        inputs: one array per argument of `main`; None for a weight that the program came with.
        options: how to run; ``exact`` numerics if not given.
        resident: what earlier runs of this program sent.
        log: takes the faults, if the run does not stop at the first.

    Returns:
        One array per result; floats are float64, or float32 where device numerics compute in it.

    Raises:
        InputError: the arrays do not fit the arguments.
        MachineFault: the program misbehaved.
    """
    results = run_keeping(program, inputs, (), options, resident, log)
    return [r.read() if isinstance(r, CardResult) else r for r in results]


def run_keeping(
    program: DeviceProgram,
    inputs: Sequence[Array | KeptTensor | None],
    keep: Collection[int],
    options: MachineOptions | None = None,
    resident: ResidentTensors | None = None,
    log: FaultLog | None = None,
) -> list[Array | CardResult]:
    """Same as `run_program`; the results of these numbers stay on the card, unless a host step made them."""
    main = find_function(program.host, "main")
    settings = options or MachineOptions()
    check_count(main, len(inputs))
    for number, value in enumerate(inputs):
        if value is None:
            check_held(program, main.args[number], argument_name(main, number), settings)
    narrow = settings.numerics != "exact"
    arguments = [argument_of(main, n, x, narrow=narrow) for n, x in enumerate(inputs)]
    check_places(main, lambda number: numbers_of(arguments[number]))
    check_runs(main, arguments)
    interpreter = Interpreter(program.host)
    memory = memory_for(settings, spec_at(main))
    memory.log = log or memory.log
    kept = resident or ResidentTensors()
    memory.spare = kept.spare
    rules = HostFunctions(program, memory, settings, kept, kept=staying(main, keep))
    for functions in (
        FunctionRules(),
        CardControlFunctions(memory),
        BlockFunctions(),
        rules,
        HostStepFunctions(program.executor, narrow),
    ):
        interpreter.register_implementations(functions)
    try:
        run = interpreter.call_op if program.code is None else partial(driven, program.code, interpreter)
        results = cast(tuple[HostArray, ...], run(main, tuple(arguments)))
    except SpyreError as error:
        # The interpreter attaches the whole module as a note at every level; the error says where by itself.
        error.__notes__ = []
        raise
    memory.release_all()
    kinds = [tensor_type(t).get_element_type() for t in main.function_type.outputs]
    return [
        rules.stayed[n] if n in rules.stayed else as_numbers(_result(r, n, rules), kind, narrow=narrow)
        for n, (r, kind) in enumerate(zip(results, kinds, strict=True))
    ]


def _result(result: HostArray, number: int, rules: HostFunctions) -> Array:
    """The elements of a result, all of which must have been written."""
    if result.defined is not None and not result.defined.all():
        place = replace(rules.gaps.get(id(result.defined), Place()), op="from_device", tensor=f"result {number}")
        missing = int((~result.defined).sum())
        message = f"{missing} elements were never written, the first at {first_index(~result.defined)}"
        rules.memory.log.standing = Standing("the host program", "spyre.kernel", place.line)
        rules.memory.log.keep(fault(FaultKind.UNWRITTEN_OUTPUT, message, place, hint="write all of it"))
    return result.values

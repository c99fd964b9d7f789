"""Execution of a bundle: the SuperDSC files in the order of ``bundle.mlir``, with the addresses it computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.affine import ApplyOp
from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.interpreter import Interpreter, InterpreterFunctions, PythonValues, impl, register_impls

from spyre_mlir.dialects.ir.functions import functions_by_name
from spyre_mlir.dialects.sdscbundle import (
    BUNDLE_FUNCTION,
    ArgField,
    DeviceMemAllocateOp,
    InputArgExtractOp,
    InputArgType,
    SdscExecuteOp,
)
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor
from spyre_mlir.errors import InputError, SpyreError, UnsupportedError
from spyre_mlir.machine.bundle.addresses import address_rules
from spyre_mlir.machine.bundle.known_runs import RunRecorder
from spyre_mlir.machine.bundle.launch_trace import BoundLaunch, LaunchSite, PoolAllocation, Trace
from spyre_mlir.machine.bundle.program_plans import ProgramPlans
from spyre_mlir.machine.faults import place_of
from spyre_mlir.machine.levels.calls import FunctionRules
from spyre_mlir.machine.levels.for_loops import ForFunctions
from spyre_mlir.machine.memory.exact import Memory
from spyre_mlir.machine.superdsc.launch_plans import LaunchPlans
from spyre_mlir.machine.superdsc.stale_reads import History

_INDEX_BITS = 64

# What a bundle function may hold; bundle specification, certain. It refuses scf.if by name.
GRAMMAR = ("func.", "sdscbundle.", "arith.", "affine.apply", "scf.for", "scf.yield")

Loader = Callable[[str], Descriptor]
# Sees every launch before or after it runs: the launch, what its file says, the memory, and the values of its symbols.
LaunchWatch = Callable[[SdscExecuteOp, Descriptor, Memory, Mapping[int, int]], None]


@register_impls
class BundleFunctions(InterpreterFunctions):
    """Meaning of the sdscbundle ops on one memory.

    Args:
        memory: holds the arguments' regions.
        load: gives the descriptor of a file name, as bundle.mlir spells it.
        watch: sees every launch after it ran.
        run: what a launch does, if it is not to run.
        plans: those of earlier runs.
        caller: the launch in the host program.
        before: sees every launch before it runs.
    """

    def __init__(
        self,
        memory: Memory,
        load: Loader,
        watch: LaunchWatch | None = None,
        run: LaunchWatch | None = None,
        plans: LaunchPlans | None = None,
        caller: LaunchSite | None = None,
        before: LaunchWatch | None = None,
    ) -> None:
        self.memory = memory
        self.watch = watch
        self._before = before
        self._caller = caller or LaunchSite()
        self._instead = run
        self.pools: list[str] = []
        self.trace: Trace = []
        self._load = load
        self._loaded: dict[str, Descriptor] = {}
        self.history = History()
        self._plans = plans

    @impl(InputArgExtractOp)
    def run_extract(self, _interpreter: Interpreter, op: InputArgExtractOp, args: PythonValues) -> PythonValues:
        """Return the argument itself, or a limit that its type states."""
        kind = op.arg.type
        if not isinstance(kind, InputArgType) or op.field.data == ArgField.VALUE.value:
            return args
        limit = kind.granularity if op.field.data == ArgField.GRANULARITY.value else kind.max_value
        return (limit.data,) if isinstance(limit, IntAttr) else args

    @impl(DeviceMemAllocateOp)
    def run_allocate(self, _interpreter: Interpreter, op: DeviceMemAllocateOp, _args: PythonValues) -> PythonValues:
        """Allocate scratch memory with undefined contents."""
        return (self.allocate(PoolAllocation(op.size.value.data)),)

    def allocate(self, pool: PoolAllocation) -> int:
        """Allocate a pool, and return its address."""
        name = f"pool {len(self.pools)}"
        region = self.memory.allocate(name, pool.size)
        region.scratch = True
        self.pools.append(name)
        self.trace.append(pool)
        return region.base

    @impl(ApplyOp)
    def run_apply(self, _interpreter: Interpreter, op: ApplyOp, args: PythonValues) -> PythonValues:
        """Apply an affine map of dims and symbols; the stock interpreter (xDSL 0.74) accepts dims only."""
        return op.map.data.eval(args[: op.map.data.num_dims], args[op.map.data.num_dims :])

    @impl(SdscExecuteOp)
    def run_execute(self, _interpreter: Interpreter, op: SdscExecuteOp, args: PythonValues) -> PythonValues:
        """Run one file on all its cores."""
        filename = op.sdsc_filename.data
        if filename not in self._loaded:
            self._loaded[filename] = self._load(filename)
        symbols = dict(zip(op.ids, args, strict=True))
        self.launch(BoundLaunch(op, self._loaded[filename], symbols, self._caller))
        return ()

    def launch(self, bound: BoundLaunch) -> None:
        """Run a launch, and show it to the watcher."""
        self.trace.append(bound)
        if self._before is not None:
            self._before(bound.op, bound.view, self.memory, bound.symbols)
        if self._instead is not None:
            self._instead(bound.op, bound.view, self.memory, bound.symbols)
        else:
            bound.run(self.memory, self.history, self._plans)
        if self.watch is not None:
            self.watch(bound.op, bound.view, self.memory, bound.symbols)

    def release(self) -> None:
        """Give the pools back."""
        for name in self.pools:
            self.memory.remove_region(name)

    def begin_anew(self) -> None:
        """Forget all allocations."""
        self.release()
        self.pools, self.trace = [], []

    def replay(self, trace: Trace) -> None:
        """Repeat the steps of a trace."""
        for step in trace:
            if isinstance(step, PoolAllocation):
                self.allocate(step)
            else:
                self.launch(step)


def run_bundle(
    module: ModuleOp,
    memory: Memory,
    arguments: Sequence[int],
    load: Loader,
    watch: LaunchWatch | None = None,
    run: LaunchWatch | None = None,
    entry: str = BUNDLE_FUNCTION,
    plans: ProgramPlans | None = None,
    caller: LaunchSite | None = None,
    before: LaunchWatch | None = None,
) -> None:
    """Run a bundle from its first launch to its last.

    Scratchpads are undefined at entry, and scratch memory is gone afterwards.

    Args:
        module: a parsed ``bundle.mlir``.
        memory: has a region for every argument, and the numerics to run in; written in place.
        arguments: byte address (or size) of each argument, in order.
        load: gives the descriptor of a file name.
        watch: sees every launch after it ran.
        run: what a launch does, if it is not to run.
        entry: name of the bundle function.
        plans: those of earlier runs of the same module; takes this one's.
        caller: the launch in the host program.
        before: sees every launch before it runs.

    Raises:
        InputError: there is no bundle function, or it takes another number of arguments.
        MachineFault: the program misbehaved.
        UnsupportedError: the machine has no rule for something the bundle asks.
    """
    function = functions_by_name(module).get(entry)
    if function is None:
        raise InputError(f"a bundle has a func.func @{entry}, this module has none")
    expected = len(function.function_type.inputs)
    if expected != len(arguments):
        raise InputError(f"the bundle takes {expected} arguments, got {len(arguments)}")
    kept = ProgramPlans() if plans is None else plans
    memory.forget_scratchpads()
    functions = BundleFunctions(memory, load, watch, run, kept.launches, caller, before)
    # Whoever watches may look at states after every launch, and after a fault a run goes on in another way.
    plain = watch is None and before is None and run is None and memory.tracked and memory.log.on_fault == "raise"
    try:
        _run(module, function, arguments, functions, kept, plain=plain)
    finally:
        functions.release()


def _run(
    module: ModuleOp,
    function: FuncOp,
    arguments: Sequence[int],
    functions: BundleFunctions,
    kept: ProgramPlans,
    *,
    plain: bool,
) -> None:
    """Run a function, as briefly as earlier runs allow."""
    memory = functions.memory
    addresses = (*arguments, memory.free)
    for known in kept.known_runs(function, addresses, memory) if plain else ():
        if known.again(memory, functions.allocate):
            return
        functions.begin_anew()
    recorder, trace = RunRecorder(memory) if plain else None, kept.trace(function, addresses)
    if trace is not None:
        functions.replay(trace)
    else:
        _interpret(module, function, arguments, functions)
        kept.keep(function, addresses, functions.trace)
    if recorder is not None and (known := recorder.known(functions.trace, kept.launches, functions.history)):
        kept.keep_run(function, addresses, memory, known)


def _interpret(module: ModuleOp, function: FuncOp, arguments: Sequence[int], functions: BundleFunctions) -> None:
    for op in function.walk():
        if not op.name.startswith(GRAMMAR):
            message = f"{op.name} is no part of a bundle"
            raise UnsupportedError(message, where=place_of(op), hint="a bundle has loops with constant bounds, no more")
    interpreter = Interpreter(module, index_bitwidth=_INDEX_BITS)
    for known in (functions, FunctionRules(), address_rules(function), ForFunctions()):
        interpreter.register_implementations(known)
    try:
        interpreter.call_op(function, tuple(arguments))
    except SpyreError as error:
        # The interpreter attaches the whole module as a note at every level; the error says where by itself.
        error.__notes__ = []
        raise

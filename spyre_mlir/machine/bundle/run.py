"""Execution of a bundle: the SuperDSC files in the order of ``bundle.mlir``, with the addresses it computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.affine import ApplyOp
from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.interpreter import Interpreter, InterpreterFunctions, PythonValues, impl, register_impls
from xdsl.interpreters.func import FuncFunctions
from xdsl.traits import SymbolTable

from spyre_mlir.dialects.places import Rebase, source_of
from spyre_mlir.dialects.sdscbundle import (
    PARAMETER,
    ArgField,
    DeviceMemAllocateOp,
    InputArgExtractOp,
    InputArgType,
    SdscExecuteOp,
)
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor
from spyre_mlir.errors import InputError, MachineFault, SpyreError, UnsupportedError
from spyre_mlir.machine.bundle.addresses import AddressFunctions
from spyre_mlir.machine.faults import Standing, place_of
from spyre_mlir.machine.levels.for_loops import ForFunctions
from spyre_mlir.machine.memory.exact import Memory
from spyre_mlir.machine.superdsc.run import execute
from spyre_mlir.machine.superdsc.stale_reads import History

ENTRY = "sdsc_bundle"
_INDEX_BITS = 64

# What a bundle function may hold; bundle specification, certain. It refuses scf.if by name.
GRAMMAR = ("func.", "sdscbundle.", "arith.", "affine.apply", "scf.for", "scf.yield")

Loader = Callable[[str], Descriptor]
# Sees every launch after it ran: the launch, what its file says, the memory, and the values of its symbols.
LaunchWatch = Callable[[SdscExecuteOp, Descriptor, Memory, Mapping[int, int]], None]


@dataclass(frozen=True)
class Caller:
    """What the host program says about one launch of a bundle function.

    Attributes:
        arguments: names of the regions of memory that are its arguments.
        places: the places of its ops at this launch.
    """

    arguments: Sequence[str] = ()
    places: Rebase = field(default_factory=Rebase)

    def tensors(self, op: SdscExecuteOp) -> list[str | None]:
        """Which region of memory each operand of a file is, where that is known."""
        return [self._region(name) if name.startswith(PARAMETER) else name for name in op.tensors]

    def _region(self, parameter: str) -> str | None:
        number = int(parameter.removeprefix(PARAMETER))
        return self.arguments[number] if number < len(self.arguments) else None


def run_launch(
    op: SdscExecuteOp,
    view: Descriptor,
    memory: Memory,
    symbols: Mapping[int, int],
    history: History | None = None,
    caller: Caller | None = None,
) -> None:
    """Run one file's operation on all its cores; a fault names the file, and its origin in the model."""
    log, known = memory.log, caller or Caller()
    source = known.places.source(source_of(op.location))
    log.standing = Standing(op.sdsc_filename.data, "superdsc", str(source) if source else None)
    try:
        execute(view, memory, symbols, history, known.tensors(op))
    except MachineFault as fault:
        log.keep(fault)
    finally:
        log.standing = None


@register_impls
class BundleFunctions(InterpreterFunctions):
    """Meaning of the sdscbundle ops on one memory.

    Args:
        memory: holds the arguments' regions.
        load: gives the descriptor of a file name, as bundle.mlir spells it.
        watch: sees every launch after it ran.
        run: what a launch does, if it is not to run.
    """

    def __init__(
        self,
        memory: Memory,
        load: Loader,
        watch: LaunchWatch | None = None,
        run: LaunchWatch | None = None,
        caller: Caller | None = None,
    ) -> None:
        self.memory = memory
        self.watch = watch
        self._caller = caller
        self._instead = run
        self.pools: list[str] = []
        self._load = load
        self._loaded: dict[str, Descriptor] = {}
        self._history = History()

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
        name = f"pool {len(self.pools)}"
        region = self.memory.allocate(name, op.size.value.data)
        region.scratch = True
        self.pools.append(name)
        return (region.base,)

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
        if self._instead is not None:
            self._instead(op, self._loaded[filename], self.memory, symbols)
        else:
            run_launch(op, self._loaded[filename], self.memory, symbols, self._history, self._caller)
        if self.watch is not None:
            self.watch(op, self._loaded[filename], self.memory, symbols)
        return ()


def run_bundle(
    module: ModuleOp,
    memory: Memory,
    arguments: Sequence[int],
    load: Loader,
    watch: LaunchWatch | None = None,
    run: LaunchWatch | None = None,
    entry: str = ENTRY,
    caller: Caller | None = None,
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
        caller: the launch in the host program.

    Raises:
        InputError: there is no bundle function, or it takes another number of arguments.
        MachineFault: the program misbehaved.
        UnsupportedError: the machine has no rule for something the bundle asks.
    """
    function = SymbolTable.lookup_symbol(module, entry)
    if not isinstance(function, FuncOp):
        raise InputError(f"a bundle has a func.func @{entry}, this module has none")
    expected = len(function.function_type.inputs)
    if expected != len(arguments):
        raise InputError(f"the bundle takes {expected} arguments, got {len(arguments)}")
    for op in function.walk():
        if not op.name.startswith(GRAMMAR):
            message = f"{op.name} is no part of a bundle"
            raise UnsupportedError(message, where=place_of(op), hint="a bundle has loops with constant bounds, no more")
    functions = BundleFunctions(memory, load, watch, run, caller)
    interpreter = Interpreter(module, index_bitwidth=_INDEX_BITS)
    for known in (functions, FuncFunctions(), AddressFunctions(), ForFunctions()):
        interpreter.register_implementations(known)
    memory.forget_scratchpads()
    try:
        interpreter.call_op(function, tuple(arguments))
    except SpyreError as error:
        # The interpreter attaches the whole module as a note at every level; the error says where by itself.
        error.__notes__ = []
        raise
    finally:
        for name in functions.pools:
            memory.remove_region(name)

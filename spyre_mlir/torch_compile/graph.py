"""One graph of Dynamo: a program per size of its inputs, results that share memory, frozen buffers."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import InitVar, dataclass, field
from functools import partial
from typing import Any, TypeVar, cast
from weakref import WeakSet, ref

import torch
from torch import nn
from torch.fx import GraphModule, Interpreter, Node
from torch.fx.traceback import preserve_node_meta

from spyre_mlir import api
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import AbsentNamesError, UnsupportedError
from spyre_mlir.frontend import signature_of
from spyre_mlir.frontend.capture.indices.writes import IndexWrites
from spyre_mlir.frontend.capture.tracing.derivatives import takes_derivatives
from spyre_mlir.frontend.capture.tracing.torch_errors import NEEDS_VALUES, without_values
from spyre_mlir.frontend.graph_runs import CapturedCalls
from spyre_mlir.frontend.lowering.weight_facts import weight_facts
from spyre_mlir.frontend.program.result_memory import ResultMemories
from spyre_mlir.frontend.torch_private import storage_identity
from spyre_mlir.frontend.torch_tracing import tracing_alone
from spyre_mlir.parted.model import PartedModel
from spyre_mlir.runtime.residence import CARD
from spyre_mlir.torch_compile.captured.symbolic import SymbolicGraph, symbolic_shapes
from spyre_mlir.torch_compile.captured.value_checks import ChecksPassed
from spyre_mlir.torch_compile.dynamo_private import compile_id, recompile_reason, source_name
from spyre_mlir.torch_compile.history import Capture, Compilation, record
from spyre_mlir.torch_compile.kept_names import without_absent
from spyre_mlir.torch_compile.plan import log_plan
from spyre_mlir.torch_compile.text import log_text

# Rotary tables, masks and position numbers are smaller; a KV cache, which changes, is larger.
FROZEN_ELEMENTS = 1 << 16
IN_PARTS = "runs in parts: values decide sizes"
ON_HOST = "runs on the host: it writes to inputs that share memory with others"
_FACTS = "; weights of "  # in a key, behind the sizes
_BUFFER = re.compile(r"_buffers\[")
_T = TypeVar("_T")
_CACHE = re.compile(r"past_key_values.*\.layers\[\d+\]\.\w+$")


class _Program(torch.nn.Module):
    """The graph as a module of the inputs that are not frozen, for export."""

    def __init__(self, graph: GraphModule, frozen: Mapping[int, torch.Tensor]) -> None:
        super().__init__()
        self._calls = graph  # not `_graph`: a module that torch makes of an export has that name for its own graph
        self._frozen_names = {place: f"frozen_{place}" for place in frozen}
        for place, buffer in self._frozen_names.items():
            setattr(self, buffer, frozen[place].detach().clone())  # no buffer: its value may decide how it is imported

    def forward(self, *inputs: Any) -> Any:
        queue = iter(inputs)
        count = len(inputs) + len(self._frozen_names)
        every = [getattr(self, self._frozen_names[i]) if i in self._frozen_names else next(queue) for i in range(count)]
        return CapturedCalls(self._calls).run(*every)


@dataclass(frozen=True)
class _Made:
    """A program and what it takes for granted."""

    program: CompiledModel
    frozen: Mapping[int, torch.Tensor]

    def changed(self, inputs: Sequence[Any]) -> set[int]:
        """The frozen buffers whose values have changed."""
        return {place for place, value in self.frozen.items() if not _same(value, inputs[place])}


@dataclass
class CapturedGraph:
    """A graph captured by Dynamo, called with the inputs of its placeholders.

    Attributes:
        holds: whether caches of transformers that it writes are written on the card alone.
        capture: its names; None for those of the compilation that runs.
        trains: whether it is a pass of training, after which parameters that take gradients change.
    """

    graph: GraphModule
    options: Mapping[str, Any]
    holds: bool = False
    capture: InitVar[Capture | None] = None
    trains: bool = False
    _made: dict[str, _Made] = field(default_factory=dict[str, _Made])
    _told: set[str] = field(default_factory=set[str])
    _changing: set[int] = field(default_factory=set[int])  # buffers that have changed once, and are inputs since
    _last: str = ""
    _symbolic: SymbolicGraph | None = None
    _parted: dict[str, PartedModel] = field(default_factory=dict[str, PartedModel])
    _logged: WeakSet[CompiledModel] = field(default_factory=WeakSet[CompiledModel])

    def __post_init__(self, capture: Capture | None) -> None:
        # Dynamo forgets the sources once it has compiled.
        placeholders = [n for n in self.graph.graph.nodes if n.op == "placeholder"]
        self._buffers = [bool(_BUFFER.search(source_name(n))) for n in placeholders]
        self._caches = {place for place, n in enumerate(placeholders) if _CACHE.search(source_name(n))}
        self.named = capture or Capture.new(compile_id(), _function_of(self.graph))
        if updates_parameters(self.graph) and "keep_float32_in" not in self.options:
            # Squares of gradients, as an optimizer keeps them, are below the least DLFloat16.
            self.options = {"keep_float32": True, **self.options}
        self._differentiates = takes_derivatives(self.graph)
        self._memories = ResultMemories(self._run_without_values)

    def _run(self, *inputs: Any) -> Any:
        """The results of the graph itself, with derivatives where it takes some, though the call records none."""
        with torch.enable_grad() if self._differentiates else nullcontext():
            return Interpreter(self.graph).run(*inputs)

    def _run_without_values(self, *inputs: Any) -> Any:
        with IndexWrites(reads=True), ChecksPassed():
            return self._run(*inputs)

    @property
    def programs(self) -> tuple[CompiledModel, ...]:
        """The programs made so far, one per size of the inputs; of graphs that data divides, those of their parts."""
        parts = [program for model in self._parted.values() for program in model.programs]
        return (*(made.program for made in self._made.values()), *parts)

    def __call__(self, *inputs: Any) -> Any:
        """Return the results of the graph; mutated inputs are written."""
        for buffer in (x for x, is_buffer in zip(inputs, self._buffers, strict=True) if is_buffer and not _is_small(x)):
            CARD.expect(buffer)
        key = signature_of(inputs, {})
        if key in self._parted:
            return self._run_parts(self._parted[key], inputs)
        try:
            memory = self._memories(inputs)
        except NEEDS_VALUES as error:
            return self._in_parts(inputs, key, without_values(error))
        if memory.writes and _share_memory(inputs):
            return self._on_host(inputs, key)
        for place in self._caches & memory.writes if self.holds else ():
            if inputs[place].is_floating_point():  # counts are read by transformers
                CARD.hold(inputs[place])
        key += self._facts(inputs, memory.writes)
        made = self._made.get(key)
        changed = set[int]() if made is None else made.changed(inputs)
        if made is None or changed:
            self._changing |= changed
            made = self._compile(inputs, key, memory.writes)
            if made is None:
                return self._in_parts(inputs, key)
            self._made[key] = made
        given = [x for place, x in enumerate(inputs) if place not in made.frozen]
        return memory.applied(made.program(*given), inputs)

    def _in_parts(self, inputs: Sequence[Any], key: str, needed: UnsupportedError | None = None) -> Any:
        """Compile a graph in which data decides sizes, and run it.

        Args:
            inputs: those of a call.
            key: of their sizes.
            needed: what torch said against running it without values; None if only branches or bodies make sizes.

        Raises:
            UnsupportedError: it cannot be divided, or values decide more than sizes.
        """
        started = time.perf_counter()
        named = type(self.named.function, (_Program,), {})
        with preserve_node_meta():
            made = self._named(lambda: api.compile(named(self.graph, {}).eval(), tuple(inputs), **self.options))
        if not isinstance(made, PartedModel):
            assert needed is not None
            raise needed
        self._parted[key] = made
        kernels = sum(program.kernels for program in made.programs)
        record(
            Compilation(
                self.named.graph,
                self.named.function,
                IN_PARTS,
                _described(inputs),
                kernels,
                time.perf_counter() - started,
                made=ref(made),
                capture=self.named.number,
            )
        )
        return self._run_parts(made, inputs)

    def _run_parts(self, model: PartedModel, inputs: Sequence[Any]) -> Any:
        """Run a model in parts, and log the programs of parts that this call is the first to need."""
        results = model(*inputs)
        for program in model.programs:
            if program not in self._logged:
                self._logged.add(program)
                self._log(f"{self.named.graph}/{program.name}", program)
        return results

    @staticmethod
    def _log(name: str, program: CompiledModel) -> None:
        log_plan(name, program)
        log_text(name, program)

    def _on_host(self, inputs: Sequence[Any], key: str) -> Any:
        if self.options.get("host_fallback") == "error":
            raise UnsupportedError(
                f"the graph of {self.named.function} writes to inputs that share memory with others",
                hint="pass copies, or allow host steps",
            )
        for held in (x for x in inputs if isinstance(x, torch.Tensor) and CARD.is_held(x)):
            CARD.release(held)
        if key not in self._told:
            self._told.add(key)
            record(Compilation(self.named.graph, self.named.function, ON_HOST, _described(inputs), 0, 0.0))
        return self._run(*inputs)

    def _compile(self, inputs: Sequence[Any], key: str, written: Collection[int]) -> _Made | None:
        """Compile a graph for inputs of these sizes; None if it has to run in parts."""
        started = time.perf_counter()
        reason = self._reason(key)
        frozen = {
            place: value.detach().clone()
            for place, (buffer, value) in enumerate(zip(self._buffers, inputs, strict=True))
            if buffer and place not in self._changing and place not in written and _is_small(value)
        }
        with tracing_alone():
            program = self._program([self._shown(place, x, written) for place, x in enumerate(inputs)], frozen)
        if isinstance(program, PartedModel):
            return None
        seconds = time.perf_counter() - started
        described, kernels, made = _described(inputs), program.kernels, ref(program)
        record(
            Compilation(
                self.named.graph,
                self.named.function,
                reason,
                described,
                kernels,
                seconds,
                program.cached,
                made,
                self.named.number,
            )
        )
        self._log(self.named.graph, program)
        return _Made(program, frozen)

    def _facts(self, inputs: Sequence[Any], written: Collection[int]) -> str:
        """What the numbers of integer weights decide in the program of a call."""
        shown = (self._shown(place, x, written) for place, x in enumerate(inputs) if place not in written)
        facts = ",".join(weight_facts(x) for x in shown if isinstance(x, nn.Parameter))
        return _FACTS + facts if facts.strip(",") else ""

    def _shown(self, place: int, value: Any, written: Collection[int]) -> Any:
        """An example input; a large buffer that the graph only reads is a weight, as parameters are.

        Without a backward pass, nothing says that parameters change from call to call.
        """
        read = self._buffers[place] and place not in written and not _is_small(value)
        lasts = read or (type(value) is nn.Parameter and not self.trains)
        return nn.Parameter(value, requires_grad=False) if lasts and isinstance(value, torch.Tensor) else value

    def _program(self, inputs: Sequence[Any], frozen: Mapping[int, torch.Tensor]) -> CompiledModel | PartedModel:
        given = tuple(x for place, x in enumerate(inputs) if place not in frozen)
        named = type(self.named.function, (_Program,), {})  # the program takes its name from the class
        module = named(self.graph, frozen).eval()
        with preserve_node_meta():
            return self._named(
                lambda: (
                    self._symbolic_program(module, given, frozen)
                    or cast("CompiledModel | PartedModel", api.compile(module, given, **self._whole_options()))
                )
            )

    def _whole_options(self) -> dict[str, Any]:
        """The options without the bound of sizes that data decides, which another graph of the function may have."""
        return {name: value for name, value in self.options.items() if name != "max_size"}

    def _named(self, make: Callable[[], _T]) -> _T:
        """Compile; again without the names that this graph of several lacks, if there are some."""
        try:
            return make()
        except AbsentNamesError as absent:
            self.options = without_absent(self.options, absent, self.named.graph)
            self._symbolic = None
            return make()

    def _symbolic_program(
        self, module: torch.nn.Module, given: Sequence[Any], frozen: Mapping[int, torch.Tensor]
    ) -> CompiledModel | None:
        """The program for these sizes from an export with symbols, if Dynamo captured the graph with some."""
        shapes = symbolic_shapes(self.graph, frozen)
        if shapes is None or self._differentiates:  # a derivative has a program for each size
            return None
        if self._symbolic is None or not self._symbolic.fits(frozen):
            make = partial(api.compile, module, given, dynamic_shapes=(shapes,), **self._whole_options())
            self._symbolic = SymbolicGraph.of(make, frozen)
        return self._symbolic.program(given)

    def _reason(self, key: str) -> str:
        last, self._last = self._last, key
        if key in self._made:
            return "a buffer of the model has changed"
        if last and last.partition(_FACTS)[0] == key.partition(_FACTS)[0]:
            return "integers of a weight need other bits"
        return "inputs of another size" if last else recompile_reason(self.named.graph) or "captured"


def updates_parameters(graph: GraphModule) -> bool:
    """Return whether a graph writes to parameters that Dynamo gives it as its own, which are those of an optimizer."""
    own = {n for n in graph.graph.find_nodes(op="get_attr") if isinstance(getattr(graph, n.target, None), nn.Parameter)}

    def writes(node: Node) -> bool:
        name = str(node.target if node.op == "call_method" else getattr(node.target, "__name__", ""))
        return name.endswith("_") and not name.endswith("__") and not own.isdisjoint(node.all_input_nodes)

    return any(map(writes, graph.graph.nodes))


def _function_of(graph: GraphModule) -> str:
    """The function whose code the graph comes from, as an identifier; ``graph`` if torch does not say."""
    for node in graph.graph.nodes:
        if (trace := node.meta.get("stack_trace")) and (names := re.findall(r", in (\w+)", trace)):
            return str(names[-1])
    return "graph"


def _is_small(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.numel() <= FROZEN_ELEMENTS


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether two buffers hold the same, NaN counting as itself."""
    return bool(((a == b) | ((a != a) & (b != b))).all())


def _share_memory(inputs: Sequence[Any]) -> bool:
    tensors = [x for x in inputs if isinstance(x, torch.Tensor) and x.numel()]
    return len({storage_identity(x) for x in tensors}) < len(tensors)


def _described(inputs: Sequence[Any]) -> str:
    sizes = [str(tuple(x.shape)) if isinstance(x, torch.Tensor) else repr(x) for x in inputs]
    return ", ".join(sizes[:6]) + (f" and {len(sizes) - 6} more" if len(sizes) > 6 else "")

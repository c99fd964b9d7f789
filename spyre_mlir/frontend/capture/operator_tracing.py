"""Trace of single calls of operators into functional parts, with torch's private machinery for `run_decompositions`.

Used, all private: `export.exported_program` (how a table of decompositions is split), `FunctionalTensor` (writes as new
values), `proxy_tensor` (inputs of a trace that is under way, and the nodes of tensors), `_dispatch.python`, and the
dispatch key of functionalization. These, and the kernels of `composite_kernels`, are what
`ExportedProgram.run_decompositions` itself opens around a whole graph.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode
from torch.backends import mkldnn, nnpack
from torch.export import exported_program
from torch.fx import Graph, Node
from torch.fx.experimental import proxy_tensor

from spyre_mlir.frontend.arguments import walks
from spyre_mlir.frontend.capture.composite_kernels import CompositeKernels, Composites
from spyre_mlir.frontend.capture.value_memory import Unfollowed
from spyre_mlir.frontend.torch_private import FakeTensorMode, Operator, disable_modes, storage_identity, tree_map

_SUFFIX = re.compile(r"_\d+$")
_MOST_KEPT = 4096  # traced calls, from one program to the next
_OF_WHOLE_GRAPHS = ("_split_decomp_table_to_cia_and_python_decomp", "_override_composite_implicit_decomp")


@dataclass(frozen=True)
class TensorForm:
    """Facts of a tensor that a decomposition can see."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    device: str
    requires_grad: bool

    @classmethod
    def of(cls, tensor: torch.Tensor, *, offset: bool) -> TensorForm:
        """Return the form of a tensor, with or without its start in its memory."""
        start = int(tensor.storage_offset()) if offset else 0
        shape, stride = tuple(tensor.shape), tuple(tensor.stride())
        return cls(tensor.dtype, shape, stride, start, tensor.device.type, tensor.requires_grad)

    def made(self) -> torch.Tensor:
        """Return a new tensor of this form."""
        reach = 0 if 0 in self.shape else 1 + sum((e - 1) * s for e, s in zip(self.shape, self.stride, strict=True))
        memory = torch.empty(self.offset + reach, dtype=self.dtype, device=self.device)
        return memory.as_strided(self.shape, self.stride, self.offset).detach().requires_grad_(self.requires_grad)


@dataclass(frozen=True)
class TensorNumber:
    """The number of a tensor among those that a call reads."""

    number: int


@dataclass(frozen=True)
class TracedCall:
    """One call in functional form.

    Attributes:
        inputs: placeholders of the call's tensors.
        nodes: the calls it consists of, in order; some may have no use.
        results: the value of the call: nodes, in the structure of the result.
        written: the new values of the tensors that the call writes, by number.
        views: results to the input, or the earlier result, whose memory they lie in.
    """

    inputs: tuple[Node, ...]
    nodes: tuple[Node, ...]
    results: Any
    written: Mapping[int, Node]
    views: Mapping[Node, Node]

    @cached_property
    def walks(self) -> bool:
        """Return whether the operator goes through memory by strides."""
        return any(walks(node) for node in self.nodes)

    @cached_property
    def names(self) -> Mapping[Node, str]:
        """Names of the nodes before they are numbered."""
        return {node: _SUFFIX.sub("", node.name) for node in self.nodes}

    @cached_property
    def forms(self) -> Mapping[Node, TensorForm]:
        """Forms of the nodes that are tensors, as far as they start where the inputs were said to start."""
        values = {node: node.meta["val"] for node in self.nodes}
        return {node: TensorForm.of(v, offset=True) for node, v in values.items() if isinstance(v, torch.Tensor)}


Trace = Callable[[Operator, Any, Any, Sequence[TensorForm]], TracedCall]


class Tables:
    """A table of decompositions, in the two parts that torch applies in different ways, and what they gave so far."""

    def __init__(self, table: Mapping[Operator, Callable[..., Any]]) -> None:
        """Splits the table."""
        parts: Any = cast(Any, exported_program)._split_decomp_table_to_cia_and_python_decomp(dict(table))
        composites, self.others = cast("tuple[Composites, Composites]", parts)
        self.composites = CompositeKernels(composites)
        self.traced: dict[Hashable, TracedCall] = {}

    @contextmanager
    def given_to_torch(self) -> Generator[None]:
        """Torch, asked in the block to decompose a graph by the table, takes these parts and these kernels.

        It would split the table anew and make all kernels twice, which takes longer than to decompose a small graph.
        """
        private, composites = cast(Any, exported_program), dict(self.composites.table)
        split, override = (getattr(private, name) for name in _OF_WHOLE_GRAPHS)

        def parts(_table: object) -> tuple[Composites, Composites]:
            return composites, dict(self.others)

        def kept(operators: Composites) -> AbstractContextManager[None]:
            return self.composites.installed() if operators is composites else override(operators)

        private._split_decomp_table_to_cia_and_python_decomp = parts
        private._override_composite_implicit_decomp = kept
        try:
            yield
        finally:
            for name, function in zip(_OF_WHOLE_GRAPHS, (split, override), strict=True):
                setattr(private, name, function)

    def keep(self, key: Hashable, traced: TracedCall) -> None:
        """Keep a traced call."""
        if len(self.traced) >= _MOST_KEPT:
            self.traced.clear()
        self.traced[key] = traced


@contextmanager
def no_cpu_libraries() -> Generator[None]:
    """Decompositions leave out what is there for these libraries, as they do while torch decomposes."""
    libraries = (cast(Any, mkldnn), cast(Any, nnpack))
    before = [library.set_flags(False)[0] for library in libraries]
    try:
        yield
    finally:
        for library, enabled in zip(libraries, before, strict=True):
            library.set_flags(enabled)


def trace_calls(tables: Tables, run: Callable[[Trace], None]) -> None:
    """Run a function that traces calls of operators, one by one."""

    def traced() -> tuple[()]:
        # As torch does: C++ functionalization must not wrap what the Python one wraps already.
        native = cast(Any, torch)._C
        with native._ExcludeDispatchKeyGuard(native.DispatchKeySet(native.DispatchKey.Functionalize)):
            run(_Tracing(mode).call)
        return ()

    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with (
        mode,
        no_cpu_libraries(),
        torch.no_grad(),
        tables.composites.installed(),
        enable_python_dispatcher(),
        FunctionalTensorMode(export=True, _allow_token_discovery=True),
    ):
        proxy_tensor.make_fx(traced, decomposition_table=dict(tables.others))()


class _Tracing:
    """A trace under way."""

    def __init__(self, mode: FakeTensorMode) -> None:
        self._mode = mode
        self._tracer: Any = cast(Any, proxy_tensor.get_proxy_mode()).tracer
        self._inputs = 0

    def call(self, operator: Operator, args: Any, kwargs: Any, forms: Sequence[TensorForm]) -> TracedCall:
        """Trace a call; its arguments have a `TensorNumber` in the place of every tensor."""
        with disable_modes(), self._mode:
            fakes = [form.made() for form in forms]
        inputs = [self._input(fake) for fake in fakes]
        last = next(iter(reversed(self._tracer.graph.nodes)), None)
        wrapped: list[torch.Tensor] = [FunctionalTensor.to_functional(fake) for fake in fakes]

        def tensor(leaf: object) -> object:
            return wrapped[leaf.number] if isinstance(leaf, TensorNumber) else leaf

        out = operator(*tree_map(tensor, args), **tree_map(tensor, kwargs))
        results = tree_map(_unwrapped, out)
        after = [_unwrapped(leaf) for leaf in wrapped]
        kept = _Kept(inputs, self._made_since(last))
        memory = {storage_identity(fake): node for fake, node in zip(fakes, kept.inputs, strict=True)}
        views: dict[Node, Node] = {}

        def node_of(leaf: object) -> object:
            if not isinstance(leaf, torch.Tensor):
                return leaf
            node = kept.nodes[self._node(leaf)]
            of = memory.setdefault(storage_identity(leaf), node)
            if of is not node:
                views[node] = of
            return node

        written = {
            n: kept.nodes[self._node(new)]
            for n, (old, new) in enumerate(zip(fakes, after, strict=True))
            if old is not new
        }
        return TracedCall(tuple(kept.inputs), tuple(kept.calls), tree_map(node_of, results), written, views)

    def _input(self, fake: torch.Tensor) -> Node:
        self._inputs += 1
        proxy: Any = self._tracer.create_proxy("placeholder", f"input_of_{self._inputs}", (), {})
        cast(Any, proxy_tensor).track_tensor_tree(fake, proxy, constant=None, tracer=self._tracer)
        return proxy.node

    def _made_since(self, last: Node | None) -> list[Node]:
        """The nodes behind another one."""
        made: list[Node] = []
        for node in reversed(self._tracer.graph.nodes):
            if node is last:
                break
            made.append(node)
        return made[::-1]

    def _node(self, fake: torch.Tensor) -> Node:
        return cast(Any, proxy_tensor).get_proxy_slot(fake, self._tracer).proxy.node


class _Kept:
    """Nodes of a trace in a graph of their own, since torch drops what is left without use."""

    def __init__(self, inputs: Sequence[Node], calls: Sequence[Node]) -> None:
        graph = Graph()
        self.nodes: dict[Node, Node] = {}
        for node in (*inputs, *calls):
            if node.op not in ("placeholder", "call_function"):
                raise Unfollowed(f"{node.op} in a decomposition")
            self.nodes[node] = graph.node_copy(node, lambda read: self.nodes[read])
            self.nodes[node].meta = {"val": node.meta.get("val")}
        self.inputs = [self.nodes[node] for node in inputs]
        self.calls = [self.nodes[node] for node in calls]


def _unwrapped(leaf: Any) -> Any:
    """The value that a functional tensor has now; anything else is itself."""
    if not isinstance(leaf, FunctionalTensor):
        return leaf
    private = cast(Any, torch)
    private._sync(leaf)
    return private._from_functional_tensor(leaf.elem)

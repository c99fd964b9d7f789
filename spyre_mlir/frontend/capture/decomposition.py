"""From an exported program to a functional ATen graph, by torch's decompositions; composites of the op table stay.

A call is taken apart once for each form of its arguments, whatever the number of layers that have it. Torch decomposes
the graph as a whole where writes through views, or operations on graphs, have to be followed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, cast

import torch
from torch.export import ExportedProgram

from spyre_mlir.errors import ImportProgramError, RegistrationError, UnsupportedError
from spyre_mlir.frontend.arguments import bind, draws_on_host
from spyre_mlir.frontend.capture.composite_kernels import kept_whole
from spyre_mlir.frontend.capture.control_flow.kept import calls_graphs, nodes_within
from spyre_mlir.frontend.capture.functional_graph import FunctionalProgram, functional_program
from spyre_mlir.frontend.capture.operator_tracing import Tables
from spyre_mlir.frontend.capture.torch_warnings import torch_noise_hidden
from spyre_mlir.frontend.capture.tracing.collectives import one_by_one
from spyre_mlir.frontend.capture.tracing.torch_errors import NEEDS_VALUES, REFUSED, first_line, without_values
from spyre_mlir.frontend.capture.value_memory import Unfollowed
from spyre_mlir.frontend.locations import place_in, place_of
from spyre_mlir.frontend.symbolic.derived import derived_refusal
from spyre_mlir.frontend.torch_private import (
    Operator,
    composites_loaded,
    functorch_levels_kept,
    is_composite,
    schema_of,
)
from spyre_mlir.frontend.torch_tracing import graphs_as_written
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.draws import DRAWING, NAMESPACE
from spyre_mlir.ops.table import Family
from spyre_mlir.plugins import registry

log = logging.getLogger(__name__)

# What torch says of a size that is an expression, in a program from a file.
_NO_SYMBOL = "expected sympy.Symbol"

# The host runs these, or the import where they depend on no input; the op table has none of them.
_WITHOUT_ENTRY = frozenset(
    {
        # Taken apart, these make integers of what lies between float ends; torch makes integers of the ends first.
        "linspace.default",
        "linspace.Scalar_Tensor",
        "linspace.Tensor_Scalar",
        "linspace.Tensor_Tensor",
        # Taken apart, these check for errors by an op with side effects, which becomes a higher-order one.
        "linalg_inv.default",
        "linalg_solve.default",
        "linalg_cholesky.default",
        "linalg_lu_factor.default",
        "linalg_ldl_factor.default",
    }
)


def _left_whole(exported: ExportedProgram) -> frozenset[str]:
    """Return overloads exempt from torch's decompositions in a program, except writes missing from the schema."""
    secret = {"instance_norm.default"} if any(map(_updates_statistics, exported.graph.nodes)) else set[str]()
    return whole_overloads() - secret


def _updates_statistics(node: torch.fx.Node) -> bool:
    """Return whether a node is an instance norm that writes its running statistics; only its parts show the writing."""
    if node.target is not torch.ops.aten.instance_norm.default:
        return False
    bound = bind(node)
    return bound["running_mean"].value is not None and bool(bound["use_input_stats"].value)


def whole_overloads() -> frozenset[str]:
    """Return overloads exempt from torch's decompositions, as `add.Tensor`: those of the op table that make tensors.

    Views are torch's to take apart, as is what may give its input back: torch follows which memory is whose.
    """
    table = _overloads(o for e in ATEN if e.family is not Family.VIEW for o in e.overloads)
    asked = _overloads(registry.kept_whole())
    drawing = _overloads(DRAWING)
    return frozenset(o for o in table if not _gives_back(o)) | asked | _WITHOUT_ENTRY | drawing


def _overloads(names: Iterable[str]) -> frozenset[str]:
    """Those of torch's own operators, with the name of the overload."""
    return frozenset(name if "." in name else f"{name}.default" for name in names if "::" not in name)


@cache
def _gives_back(name: str) -> bool:
    """Return whether a result of an overload may be its input, as the schema says; torch may have no such overload."""
    operator = _operator(name)
    return operator is not None and any(r.alias_info is not None for r in schema_of(operator).returns)


def _operator(name: str) -> Any:
    """The overload of torch's own operators; None if torch has none of this name."""
    packet, overload = name.rsplit(".", 1)
    return getattr(getattr(torch.ops.aten, packet, None), overload, None)


@lru_cache(maxsize=2)
def _table(whole: frozenset[str]) -> Any:
    """Torch's decompositions without those of ops that stay whole, and those of coalesced collectives; takes 0.05 s."""
    with composites_loaded():
        table = dict(cast("dict[Any, Any]", torch.export.default_decompositions())) | one_by_one()
    for name in whole:
        operator = _operator(name)
        if operator is None:
            raise RegistrationError(
                f"torch has no operator aten.{name} that could be kept whole", hint="name an overload, as 'max.dim'"
            )
        table.pop(operator, None)
    return table


@lru_cache(maxsize=2)
def _tables(whole: frozenset[str]) -> Tables:
    """The same in two parts, with the calls that were taken apart by it."""
    with composites_loaded():
        return Tables(_table(whole))


def decompose(exported: ExportedProgram) -> FunctionalProgram:
    """Bring an exported program to functional form; operators of the op table stay whole.

    Raises:
        UnsupportedError: an operator has a shape or a Python value as its result that depends on the data.
        ImportProgramError: torch cannot write without side effects what the model does to memory.
        InputError: the program was read from a file, and a size is an expression.
    """
    made = _decomposed(exported)
    for node in made.graph.find_nodes(op="call_function", target=torch.ops.aten._to_copy.default):
        if not isinstance(node.args[0], torch.fx.Node):  # a number of Python, which maps in maps convert
            node.target, node.kwargs = torch.ops.aten.scalar_tensor.default, {"dtype": node.meta["val"].dtype}
    return made


def _decomposed(exported: ExportedProgram) -> FunctionalProgram:
    whole = _left_whole(exported)
    with torch_noise_hidden():  # one thread at a time: functions of torch are replaced while tables are made and used
        table, tables = _table(whole), _tables(whole)

        @cache
        def stays(operator: Operator) -> bool:
            return _stays(operator, table, whole)

        with kept_whole(filter(None, map(_operator, whole))):
            try:
                with torch.no_grad():
                    return functional_program(exported, tables, stays)
            except (Unfollowed, *NEEDS_VALUES, *REFUSED) as error:
                log.debug("torch decomposes the graph as a whole: %s: %s", type(error).__name__, first_line(error))
                with tables.given_to_torch():
                    return _decomposed_by_torch(exported, table)


def _decomposed_by_torch(exported: ExportedProgram, table: Any) -> FunctionalProgram:
    """The program as torch decomposes it as a whole, with torch's own refusals."""
    try:
        with torch.no_grad(), functorch_levels_kept(), graphs_as_written():
            made = FunctionalProgram.of(cast(Any, exported).run_decompositions(table))
    except NEEDS_VALUES as error:
        raise without_values(error) from error
    except REFUSED as error:
        if _NO_SYMBOL in str(error) and (refused := derived_refusal(exported)) is not None:
            raise refused from error
        # Torch runs a graph here, in which no line is the model's own: its place is in the text, if anywhere.
        raise ImportProgramError(
            f"torch.export cannot write the model without side effects: {first_line(error)}",
            where=place_in(str(error)),
            hint="write to clones of views, and do not resize tensors or set their memory",
        ) from error
    _check_draws(exported, made)
    return made


def _check_draws(exported: ExportedProgram, made: FunctionalProgram) -> None:
    """Raises UnsupportedError if torch has dropped draws that nobody reads: later ones would be others than eager's."""
    graphs = [m.graph for m in exported.graph_module.modules() if isinstance(m, torch.fx.GraphModule)]
    before = [node for graph in graphs for node in graph.nodes if draws_on_host(node)]
    after = [node for node in _with_graphs(made.graph.nodes) if draws_on_host(node)]
    if len(before) != len(after):
        unread = next((n for n in before if not n.users), before[0])
        name = str(unread.target).removesuffix(".default")
        raise UnsupportedError(
            f"{name} draws random numbers that nothing reads, and torch drops them",
            where=place_of(unread),
            hint="leave the call out, or use its result",
        )


def _with_graphs(nodes: Iterable[torch.fx.Node]) -> Iterator[torch.fx.Node]:
    """The nodes of a graph, and those of the graphs that its control flow calls."""
    for node in nodes:
        yield node
        if calls_graphs(node):
            yield from _with_graphs(nodes_within(node))


def _stays(operator: Operator, table: Mapping[Operator, Any], whole: frozenset[str]) -> bool:
    """Return whether an operator is left as it is: it is to stay whole, or is a view that torch has no parts for."""
    schema = schema_of(operator)
    if operator in table or schema.is_mutable:
        return False
    if str(operator).removeprefix("aten.") in whole or operator.namespace == NAMESPACE:
        return True
    return any(result.alias_info is not None for result in schema.returns) and not is_composite(operator)

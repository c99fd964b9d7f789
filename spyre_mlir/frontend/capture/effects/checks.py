"""Assertions about the values of tensors, a model's and those of operators, as steps of the host that run at each call.

Torch orders the checks of operators, as `torch.linalg.inv` has, by tokens, which are dropped.

Decision: docs/decisions/0167-functions-that-look-at-numbers-are-host-steps.md
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import GraphModule, Node

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.capture.call_writer import CallWriter
from spyre_mlir.frontend.capture.effects.prints import PRINTS, write_print
from spyre_mlir.frontend.capture.effects.windows import check_window, inverses
from spyre_mlir.frontend.capture.functional_graph import FunctionalProgram
from spyre_mlir.frontend.capture.graph_passes import with_own_graph
from spyre_mlir.frontend.capture.nested_graphs import graphs_of
from spyre_mlir.frontend.capture.unsupported import DATA
from spyre_mlir.frontend.host_operators import HOST
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.torch_private import Operator, OpOverload, free_unbacked_symbols, schema_of

_ATEN = torch.ops.aten
_WITH_EFFECTS = torch.ops.higher_order.with_effects
_SOLVED = _ATEN._linalg_check_errors.default
ASSERTIONS = frozenset({_ATEN._assert_async.default, _ATEN._assert_async.msg, _SOLVED})
_FAILED = "an assertion of the model does not hold"


def explicit_checks(exported: ExportedProgram) -> ExportedProgram:
    """Return a program that checks what the model and its operators assert; the program given stays as it is.

    Torch's own calls have no result, by which they would count as unread.
    """
    if next(_assertions(exported.graph_module), None) is None and not inverses(exported.graph_module):
        return exported
    changed = with_own_graph(exported)
    for node in inverses(changed.graph_module):
        check_window(node, changed)
    for node in list(_assertions(changed.graph_module)):
        write_check(CallWriter(node), node.target, node.args, node.kwargs)
        node.graph.erase_node(node)
    for module in graphs_of(changed.graph_module):
        module.recompile()
    return changed


def write_check(write: CallWriter, asserting: object, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Write the check that an assertion stands for.

    Args:
        write: where.
        asserting: the operator, one of `ASSERTIONS`.
        args: what it is given by place: a condition and, if it is said, what is wrong where it does not hold; or what
            LAPACK says of each matrix, and which operator asked.
        kwargs: what it is given by name.
    """
    if asserting is _SOLVED:
        info, operator = args
        write(HOST.linalg_succeeded.default, info, operator, kwargs["is_matrix"])
        return
    condition, *message = args
    write(HOST.holds.default, condition, str(message[0]) if message else _FAILED)


def check_no_number(exported: ExportedProgram) -> None:
    """Check that the model asserts nothing about a number that it reads from a tensor, as `torch._check(n.item() > 0)`.

    Raises:
        UnsupportedError: it does; the host can check such numbers between the parts of a divided program.
    """
    for node in exported.graph.find_nodes(op="call_function", target=_ATEN._assert_scalar.default):
        value = node.args[0].meta.get("val") if isinstance(node.args[0], Node) else None
        if isinstance(value, torch.SymBool) and free_unbacked_symbols(value):
            message = (
                "a part of this model cannot be expressed\n  1 x aten._assert_scalar: it checks a number of the data"
            )
            raise UnsupportedError(message, where=place_of(node), hint=DATA)


def _assertions(root: GraphModule) -> Iterator[Node]:
    """The assertions of a graph and of those in it."""
    for module in graphs_of(root):
        for node in module.graph.nodes:
            if cast(object, node.target) in ASSERTIONS:
                yield node


def drop_checks(program: FunctionalProgram) -> None:
    """Replace in place calls that only assert or print, as `torch.linalg.inv` has, by steps, and drop unread tokens."""
    for node in list(program.graph.nodes):
        if _only_asserts(node):
            token = cast(Node, node.args[0])
            if node.args[1] in ASSERTIONS:
                write_check(CallWriter(node), node.args[1], node.args[2:], node.kwargs)
            elif node.args[1] in PRINTS:
                write_print(CallWriter(node), node.args[1], node.args[2:], node.kwargs)
            for user in list(node.users):
                if user.target is operator.getitem:  # the token behind the check is the one before it
                    user.replace_all_uses_with(token)
                    program.graph.erase_node(user)
            program.graph.erase_node(node)
    _drop_tokens(program)


def _only_asserts(node: Node) -> bool:
    """Whether a call only asserts or prints; an operator of somebody else may do anything."""
    if node.target is not _WITH_EFFECTS or not all(user.args[1] == 0 for user in node.users):
        return False
    called = cast(object, node.args[1])
    if called in PRINTS:
        return True
    return (
        isinstance(called, OpOverload) and called.namespace == "aten" and not schema_of(cast(Operator, called)).returns
    )


def _drop_tokens(program: FunctionalProgram) -> None:
    signature = program.graph_signature
    nodes = {node.name: node for node in program.graph.nodes}
    output = next(iter(program.graph.find_nodes(op="output")))
    tokens = {s.arg.name for s in signature.input_specs if s.kind is InputKind.TOKEN}
    kept = {name for name in tokens if any(user is not output for user in nodes[name].users)}
    if kept or not tokens:
        return
    pairs = list(zip(cast("tuple[Any, ...]", output.args[0]), signature.output_specs, strict=True))
    output.args = (tuple(value for value, spec in pairs if spec.kind is not OutputKind.TOKEN),)
    signature.output_specs[:] = [spec for _, spec in pairs if spec.kind is not OutputKind.TOKEN]
    signature.input_specs[:] = [s for s in signature.input_specs if s.kind is not InputKind.TOKEN]
    for name in tokens:
        program.graph.erase_node(nodes[name])


__all__ = ["ASSERTIONS", "check_no_number", "drop_checks", "explicit_checks", "write_check"]

"""Checks that torch orders by tokens: assertions of the model become host steps; those of operators are dropped."""

from __future__ import annotations

import operator
from typing import Any, cast

import torch
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node

from spyre_mlir.frontend.capture.call_writer import CallWriter
from spyre_mlir.frontend.capture.checks import ASSERTIONS, write_check
from spyre_mlir.frontend.capture.functional_graph import FunctionalProgram
from spyre_mlir.frontend.torch_private import OpOverload

_WITH_EFFECTS = torch.ops.higher_order.with_effects


def drop_checks(program: FunctionalProgram) -> None:
    """Remove in place calls that only assert, as `torch.linalg.inv` has, and tokens that nothing else needs."""
    for node in list(program.graph.nodes):
        if _only_asserts(node):
            token = cast(Node, node.args[0])
            if node.args[1] in ASSERTIONS:
                write_check(CallWriter(node), node.args[2:])
            for user in list(node.users):
                if user.target is operator.getitem:  # the token behind the check is the one before it
                    user.replace_all_uses_with(token)
                    program.graph.erase_node(user)
            program.graph.erase_node(node)
    _drop_tokens(program)


def _only_asserts(node: Node) -> bool:
    if node.target is not _WITH_EFFECTS or not isinstance(node.args[1], OpOverload):
        return False
    return not cast(Any, node.args[1])._schema.returns and all(user.args[1] == 0 for user in node.users)


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

"""Random numbers of an exported program: every draw as a call that says the size and the strides of what it fills.

Only the program as exported has eager's strides, on which the numbers depend. So `x.uniform_()` becomes
``x.copy_(random::uniform(size, stride, …))`` before the program is taken apart, and dropout becomes what torch makes of
it on the CPU: a product with a drawn mask.

Decision: docs/decisions/0136-random-numbers-are-eagers.md
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.arguments import is_random
from spyre_mlir.frontend.capture.call_writer import replace_node, replace_results, value_of
from spyre_mlir.frontend.capture.graph_passes import with_own_graph
from spyre_mlir.frontend.capture.random_draws.rewrites import rewrite_of
from spyre_mlir.frontend.capture.random_draws.writer import ORDER, DrawWriter, in_row_major_order
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.torch_private import Operator, OpOverload, schema_of

_ATEN = torch.ops.aten
# These read their operand, and draw in the order of its memory.
_IN_ORDER_OF_OPERAND = (_ATEN.multinomial.default, _ATEN.rrelu.default, _ATEN.rrelu_with_noise.default)


def explicit_draws(exported: ExportedProgram) -> ExportedProgram:
    """Return a program in which every draw says what it fills; the program given stays as it is.

    Raises:
        UnsupportedError: numbers are drawn from a generator of the model's own, or in an order of memory that a program
            cannot say.
    """
    nodes = list(_drawing(exported.graph_module))
    for node in nodes:
        _check(node)
    if not any(map(rewrite_of, nodes)):
        return exported
    changed = with_own_graph(exported)
    for node in list(_drawing(changed.graph_module)):
        _rewrite(node)
    for module in changed.graph_module.modules():
        if isinstance(module, GraphModule):
            module.recompile()
    return changed


def _rewrite(node: Node) -> None:
    rewrite = rewrite_of(node)
    if rewrite is None:
        return
    made = rewrite(node, DrawWriter(node))
    if isinstance(made, Node):
        replace_node(node, made)
    else:
        replace_results(node, made)


def _drawing(module: GraphModule) -> Iterator[Node]:
    """The nodes that draw, of a graph and of those in it."""
    for part in module.modules():
        for node in part.graph.nodes if isinstance(part, GraphModule) else ():
            if node.op == "call_function" and isinstance(node.target, OpOverload) and is_random(node):
                yield node


def _check(node: Node) -> None:
    names = [argument.name for argument in schema_of(cast(Operator, node.target)).arguments]
    given = node.kwargs | dict(zip(names, node.args, strict=False))
    if given.get("generator") is not None:
        raise _refusal(
            node,
            "it draws from a generator of its own",
            "leave generator out, and seed torch's own by torch.manual_seed",
        )
    if node.target in _IN_ORDER_OF_OPERAND and not in_row_major_order(value_of(cast(Node, node.args[0]))):
        raise _refusal(node, "it draws in the order of a memory that is not row-major", ORDER)


def _refusal(node: Node, reason: str, hint: str) -> UnsupportedError:
    message = f"a part of this model cannot be expressed\n  1 x {str(node.target).removesuffix('.default')}: {reason}"
    return UnsupportedError(message, where=place_of(node), hint=hint)

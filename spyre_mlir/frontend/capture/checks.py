"""Assertions of a model about the values of tensors, as calls of `host::holds`, which runs at each call of the program.

Decision: docs/decisions/0167-functions-that-look-at-numbers-are-host-steps.md
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.capture.call_writer import CallWriter
from spyre_mlir.frontend.capture.graph_passes import with_own_graph
from spyre_mlir.frontend.capture.unsupported import DATA
from spyre_mlir.frontend.host_operators import HOST
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.torch_private import free_unbacked_symbols

_ATEN = torch.ops.aten
ASSERTIONS = frozenset({_ATEN._assert_async.default, _ATEN._assert_async.msg})
_FAILED = "an assertion of the model does not hold"


def explicit_checks(exported: ExportedProgram) -> ExportedProgram:
    """Return a program that checks what the model asserts; the program given stays as it is.

    Torch's own calls have no result, by which they would count as unread.
    """
    if not any(True for _ in _assertions(exported.graph_module)):
        return exported
    changed = with_own_graph(exported)
    for node in list(_assertions(changed.graph_module)):
        write_check(CallWriter(node), node.args)
        node.graph.erase_node(node)
    for module in changed.graph_module.modules():
        if isinstance(module, GraphModule):
            module.recompile()
    return changed


def write_check(write: CallWriter, given: Sequence[Any]) -> None:
    """Write the check that an assertion stands for.

    Args:
        write: where.
        given: the condition and, if it is said, what is wrong where it does not hold.
    """
    condition, *message = given
    write(HOST.holds.default, condition, str(message[0]) if message else _FAILED)


def check_no_number(exported: ExportedProgram) -> None:
    """Check that the model asserts nothing about a number that it reads from a tensor, as `torch._check(n.item() > 0)`.

    Raises:
        UnsupportedError: it does; the host can check such numbers between the parts of a divided program.
    """
    for node in exported.graph.find_nodes(op="call_function", target=_ATEN._assert_scalar.default):
        value = node.args[0].meta.get("val") if isinstance(node.args[0], Node) else None
        if isinstance(value, torch.SymBool) and free_unbacked_symbols(value):
            what = "a part of this model cannot be expressed\n  1 x aten._assert_scalar: it checks a number of the data"
            raise UnsupportedError(what, where=place_of(node), hint=DATA)


def _assertions(root: GraphModule) -> Iterator[Node]:
    """The assertions of a graph and of those in it."""
    for module in root.modules():
        for node in module.graph.nodes if isinstance(module, GraphModule) else ():
            if cast(object, node.target) in ASSERTIONS:
                yield node


__all__ = ["ASSERTIONS", "check_no_number", "explicit_checks", "write_check"]

"""Prints that torch traces, `aten._print` and `torch._higher_order_ops.print`: steps of the host.

Torch's own calls have no result, by which they would count as unread. Python's `print` prints while torch traces.

Decision: docs/decisions/0167-functions-that-look-at-numbers-are-host-steps.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.capture.call_writer import CallWriter
from spyre_mlir.frontend.capture.graph_passes import with_own_graph
from spyre_mlir.frontend.capture.nested_graphs import graphs_of
from spyre_mlir.frontend.host_operators import HOST
from spyre_mlir.frontend.locations import place_of

_TEXT: Any = torch.ops.aten._print.default
_FORMAT: Any = getattr(torch.ops.higher_order, "print", None)  # not in every torch
_KNOWN = (bool, int, float, str, type(None))
PRINTS = frozenset(target for target in (_TEXT, _FORMAT) if target is not None)


def explicit_prints(exported: ExportedProgram) -> ExportedProgram:
    """Return a program whose prints are calls that nothing drops; the program given stays as it is.

    Raises:
        UnsupportedError: one prints something else than tensors and numbers that the program knows.
    """
    if not any(n.target in PRINTS for module in graphs_of(exported.graph_module) for n in module.graph.nodes):
        return exported
    changed = with_own_graph(exported)
    for module in graphs_of(changed.graph_module):
        for node in [n for n in module.graph.nodes if n.target in PRINTS]:
            write_print(CallWriter(node), node.target, node.args, node.kwargs)
            module.graph.erase_node(node)
        module.recompile()
    return changed


def write_print(write: CallWriter, printing: object, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Write the step that a print stands for.

    Args:
        write: where.
        printing: the operator, one of `PRINTS`.
        args: a text; or a format and the values at its places.
        kwargs: the values of the format that have names.

    Raises:
        UnsupportedError: a value is neither a tensor nor a number that the program knows.
    """
    text, *values = args
    if printing is _TEXT:
        write(HOST.printed.default, [], [], "{}", repr({"0": str(text)}))
        return
    given = {**{str(place): value for place, value in enumerate(values)}, **kwargs}
    tensors = {name: value for name, value in given.items() if isinstance(value, Node)}
    known = {name: value for name, value in given.items() if name not in tensors}
    numbers = [value for value in tensors.values() if not isinstance(value.meta.get("val"), torch.Tensor)]
    if numbers or not all(isinstance(value, _KNOWN) for value in known.values()):
        raise UnsupportedError(
            f"a print of {numbers[0] if numbers else known}, which is neither a tensor nor known",
            where=place_of(write.node),
            hint="print a tensor",
        )
    write(HOST.printed.default, list(tensors.values()), list(tensors), str(text), repr(known))


__all__ = ["PRINTS", "explicit_prints", "write_print"]

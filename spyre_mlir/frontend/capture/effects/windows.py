"""The check of `torch.istft` that its windows leave no sample without weight: torch makes it where it runs alone.

A window that the import knows is checked there; of another one, a step of the host asks torch at each call.

Decision: docs/decisions/0167-functions-that-look-at-numbers-are-host-steps.md
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from spyre_mlir.errors import ImportProgramError
from spyre_mlir.frontend.arguments import bind
from spyre_mlir.frontend.capture.call_writer import CallWriter, value_of
from spyre_mlir.frontend.capture.nested_graphs import graphs_of
from spyre_mlir.frontend.host_operators import HOST
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.torch_private import is_fake

_ATEN = torch.ops.aten
_ISTFT = _ATEN.istft.default
_SETTINGS = ("n_fft", "hop_length", "win_length", "center", "onesided", "length")


def inverses(root: GraphModule) -> list[Node]:
    """Return the calls of `istft` in a graph and in those within it."""
    return [node for module in graphs_of(root) for node in module.graph.nodes if node.target is _ISTFT]


def check_window(node: Node, exported: ExportedProgram) -> None:
    """Check the windows of a call of `istft`, or write the step that does.

    Raises:
        ImportProgramError: a known window leaves a sample without weight.
    """
    given = {name: argument.value for name, argument in bind(node).items()}
    spectrum, window = cast(Node, given["self"]), given["window"]
    settings, frames = [given[name] for name in _SETTINGS], value_of(spectrum).shape[-1]
    known = _known(window, exported)
    if known is not None and isinstance(frames, int) and not any(isinstance(n, Node) for n in settings):
        try:
            HOST.windows_cover.default(known, frames, *settings)
        except RuntimeError as error:
            hint = "choose a shorter hop_length, another window, or center=True"
            raise ImportProgramError(str(error), where=place_of(node), hint=hint) from error
        return
    write = CallWriter(node)
    count = frames if isinstance(frames, int) else write(_ATEN.sym_size.int, spectrum, value_of(spectrum).dim() - 1)
    asked = write(_ATEN.ones.default, [settings[0]]) if window is None else window
    write(HOST.windows_cover.default, asked, count, *settings)


def _known(window: object, exported: ExportedProgram) -> torch.Tensor | None:
    """The numbers of a window: without one all are 1; those of a constant, and of a function of known numbers."""
    if window is None:
        return torch.ones(0)
    if not isinstance(window, Node):
        return None
    if window.op == "call_function":
        made: Any = None if window.all_input_nodes else cast(Any, window.target)(*window.args, **window.kwargs)
        return made if isinstance(made, torch.Tensor) else None
    signature = exported.graph_signature
    name = {**signature.inputs_to_buffers, **signature.inputs_to_lifted_tensor_constants}.get(window.name)
    if name is None or name in signature.buffers_to_mutate.values() or window.graph is not exported.graph:
        return None
    value = exported.state_dict.get(name, exported.constants.get(name))
    return value if isinstance(value, torch.Tensor) and not is_fake(value) and value.device.type == "cpu" else None


__all__ = ["check_window", "inverses"]

"""Calls of sizes that a trace leaves out, as those without elements: run whole, by torch's operators.

Decision: docs/decisions/0231-the-host-runs-calls-of-sizes-that-a-trace-left-out.md
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Interpreter, Node
from typing_extensions import override

from spyre_mlir.errors import InputError
from spyre_mlir.frontend.capture.tracing.assumed import without_assumed
from spyre_mlir.frontend.capture.tracing.torch_errors import REFUSED, first_line
from spyre_mlir.frontend.capture.unsupported import op_name
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.program.dataclass_trees import flat_dataclasses
from spyre_mlir.frontend.torch_private import tree_flatten


class _Followed(Interpreter):
    """Runs a graph, and knows at which call it is."""

    at: Node | None = None

    @override
    def run_node(self, n: Node) -> Any:
        """Run a call."""
        self.at = n
        return super().run_node(n)


def results_of_torch(exported: ExportedProgram, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Return what a program gives if torch's operators run it, without what its trace takes for granted.

    Args:
        exported: the program, whose inputs and buffers a call may write to.
        args: positional inputs.
        kwargs: keyword inputs, in the order of the example.

    Raises:
        InputError: an operator, or a check of the model, refuses the values.
    """
    spec = exported.call_spec
    with flat_dataclasses(args, kwargs, spec.in_spec, spec.out_spec):
        run = _Followed(without_assumed(exported).module())
        run.extra_traceback = False  # torch would add the call to the message
        try:
            with torch.no_grad():
                return run.run(*tree_flatten((args, dict(kwargs)))[0])
        except REFUSED as error:
            assert run.at is not None
            raise InputError(
                f"{op_name(run.at)} refuses the sizes of this call: {first_line(error)}",
                where=place_of(run.at),
                hint="eager torch refuses them, too",
            ) from error


__all__ = ["results_of_torch"]

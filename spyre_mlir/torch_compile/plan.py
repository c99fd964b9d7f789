"""`TORCH_LOGS="+spyre_mlir.torch_compile.plan"`: the report of every program that torch.compile gets.

torch reads the variable when it is imported, before a package can register artifacts of its own. A name of a module it
takes without registration, so every kind of output has a module, and the module's logger.
"""

from __future__ import annotations

import logging

from spyre_mlir.compiled import CompiledModel

log = logging.getLogger(__name__)


def log_plan(graph: str, program: CompiledModel) -> None:
    """Log the kernels, the host steps and the predicted time of a program.

    Args:
        graph: Dynamo's name of the graph, e.g. ``0/1``, and that of the part of a graph in parts.
        program: its program.
    """
    if log.isEnabledFor(logging.DEBUG):
        log.debug("graph %s\n%s", graph, program.report())

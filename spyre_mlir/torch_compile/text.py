"""`TORCH_LOGS="+spyre_mlir.torch_compile.text"`: the text of every level of every program that torch.compile gets.

With ``TORCH_TRACE`` the texts are artifacts of the trace, which tlparse shows beside Dynamo's.
"""

from __future__ import annotations

import logging

from spyre_mlir.compiled import CompiledModel
from spyre_mlir.pipeline import LEVELS
from spyre_mlir.torch_compile.dynamo_private import trace_artifact

log = logging.getLogger(__name__)


def log_text(graph: str, program: CompiledModel) -> None:
    """Log the text of a program at each level.

    Args:
        graph: Dynamo's name of the graph, e.g. ``0/1``, and that of the part of a graph in parts.
        program: its program.
    """
    for level in LEVELS:
        if log.isEnabledFor(logging.DEBUG):
            log.debug("graph %s, level %s\n%s", graph, level, program.mlir(level))
        trace_artifact(f"spyre_mlir_{graph.replace('/', '_')}_{level}", lambda level=level: program.mlir(level))

"""Regions of autocast in graphs that Dynamo captured, which are calls there, of `_enter_autocast` and `_exit_autocast`.

`torch.export` writes these calls down and runs neither: it takes them for those of `with torch.autocast(…)`, which
has begun the region by itself. So `x.float()` behind a product was checked to read a tensor of another type.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import torch
from torch.fx import GraphModule
from typing_extensions import override

from spyre_mlir.frontend.graph_runs import KnownNumbers
from spyre_mlir.torch_compile.dynamo_private import ENTER_AUTOCAST, EXIT_AUTOCAST


class CapturedCalls(KnownNumbers):
    """Runs a graph of Dynamo with its regions of autocast, none of which outlasts the run.

    Args:
        graph: the graph.
    """

    def __init__(self, graph: GraphModule) -> None:
        super().__init__(graph)
        self._regions = list[ExitStack]()

    @override
    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run one call; the ends of regions come in the order of Python's `with`."""
        if target is ENTER_AUTOCAST:
            device, dtype, enabled, cached = args
            region = ExitStack()
            region.enter_context(torch.autocast(device, dtype, enabled, cached))
            self._regions.append(region)
            return region
        if target is EXIT_AUTOCAST:
            self._regions.pop().close()
            return None
        return super().call_function(target, args, kwargs)

    @override
    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run all calls."""
        try:
            return super().run(*args, **kwargs)
        finally:
            while self._regions:
                self._regions.pop().close()


__all__ = ["CapturedCalls"]

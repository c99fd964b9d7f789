"""Entry point that exposes our dialects and passes to xDSL tools (`xdsl.universe`), and our own tools' context."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Dialect
from xdsl.universe import Universe

from spyre_mlir.dialects import get_all_dialects
from spyre_mlir.dialects.context import SpyreContext
from spyre_mlir.hw.spec import SPYRE, SpyreSpec
from spyre_mlir.plugins.registry import load_plugins
from spyre_mlir.transforms import get_all_passes

UPSTREAM_DIALECTS = ("builtin", "func", "arith", "math", "affine", "scf", "linalg", "tensor", "memref")

# Values are factories: nothing but their names is made here, so importing this costs no dialect.
SPYRE_UNIVERSE = Universe(all_dialects=get_all_dialects(), all_passes=get_all_passes())


def make_context(spec: SpyreSpec = SPYRE) -> SpyreContext:
    """Make a context with our dialects and the upstream dialects of our levels, each loaded at first use.

    Plugins are loaded first: what they add belongs to the levels.
    """
    load_plugins()
    context = SpyreContext(spec)
    for name, factory in (_upstream() | SPYRE_UNIVERSE.all_dialects).items():
        context.register_dialect(name, factory)
    return context


def _upstream() -> dict[str, Callable[[], Dialect]]:
    from xdsl.universe import XDSL_UNIVERSE

    return {name: XDSL_UNIVERSE.all_dialects[name] for name in UPSTREAM_DIALECTS}

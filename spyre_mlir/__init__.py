"""spyre-mlir: PyTorch models to IBM Spyre through readable MLIR levels."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spyre_mlir.api import check, compile, info, load
    from spyre_mlir.cache.contents import cache_info, clear_cache
    from spyre_mlir.compiled import CompiledModel
    from spyre_mlir.dynamic.model import DynamicModel
    from spyre_mlir.errors import SpyreError
    from spyre_mlir.frontend import import_program
    from spyre_mlir.frontend.extraction import export_model, extract_ir
    from spyre_mlir.frontend.hints import hint
    from spyre_mlir.generation import Generation
    from spyre_mlir.hw.spec import SpyreSpec
    from spyre_mlir.lazy import LazyModel
    from spyre_mlir.ops.call_info import OpNode, TensorMeta
    from spyre_mlir.ranks.cards import cards
    from spyre_mlir.ranks.folder import save_ranks
    from spyre_mlir.ranks.model import load_ranks

_HOMES = {
    "CompiledModel": "spyre_mlir.compiled",
    "DynamicModel": "spyre_mlir.dynamic.model",
    "LazyModel": "spyre_mlir.lazy",
    "Generation": "spyre_mlir.generation",
    "OpNode": "spyre_mlir.ops.call_info",
    "SpyreError": "spyre_mlir.errors",
    "SpyreSpec": "spyre_mlir.hw.spec",
    "TensorMeta": "spyre_mlir.ops.call_info",
    "cache_info": "spyre_mlir.cache.contents",
    "cards": "spyre_mlir.ranks.cards",
    "check": "spyre_mlir.api",
    "clear_cache": "spyre_mlir.cache.contents",
    "compile": "spyre_mlir.api",
    "export_model": "spyre_mlir.frontend.extraction",
    "extract_ir": "spyre_mlir.frontend.extraction",
    "hint": "spyre_mlir.frontend.hints",
    "info": "spyre_mlir.api",
    "import_program": "spyre_mlir.frontend",
    "load": "spyre_mlir.api",
    "load_ranks": "spyre_mlir.ranks.model",
    "save_ranks": "spyre_mlir.ranks.folder",
}

__all__ = [
    "CompiledModel",
    "DynamicModel",
    "Generation",
    "LazyModel",
    "OpNode",
    "SpyreError",
    "SpyreSpec",
    "TensorMeta",
    "cache_info",
    "cards",
    "check",
    "clear_cache",
    "compile",
    "export_model",
    "extract_ir",
    "hint",
    "import_program",
    "info",
    "load",
    "load_ranks",
    "save_ranks",
]


def __getattr__(name: str) -> Any:
    """Loads a public name when it is first used: the text tools never load torch."""
    if name == "__version__":
        return import_module("importlib.metadata").version("spyre-mlir")
    if name not in _HOMES:
        raise AttributeError(f"module 'spyre_mlir' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """Names the public functions and classes for completion and `help`."""
    return sorted({*__all__, "__version__", *(name for name in globals() if name.startswith("__"))})

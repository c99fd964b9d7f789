"""Caches of transformers among arguments and results, which torch cannot take apart until transformers says how.

transformers has functions that say it, for its own export, and calls them neither at its import nor in a forward pass.

Decision: docs/decisions/0258-caches-of-transformers-are-arguments-and-results.md
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from spyre_mlir.frontend.torch_private import tree_flatten

# Modules of transformers, the newest first, and the function that takes a class; older ones say it of `DynamicCache`.
_ANY_CACHE = ("transformers.exporters.exporter_dynamo", "register_pytree_node")
_DYNAMIC_CACHE = ("transformers.integrations.executorch", "register_dynamic_cache_export_support")


def is_cache(value: object) -> bool:
    """Return whether a value is a cache of transformers, or of a class that is made of one."""
    return any(k.__module__.startswith("transformers.") and k.__name__.endswith("Cache") for k in type(value).__mro__)


def taken_apart(values: Iterable[object]) -> bool:
    """Tell torch how to take caches apart, for the rest of the process.

    Args:
        values: leaves of the arguments or of the results of a model.

    Returns:
        Whether one of them is no leaf from now on.
    """
    found = [_said(value) for value in values if is_cache(value)]
    return any(found)


def _said(cache: object) -> bool:
    """Whether the package has said it of the class of a cache."""
    kind = type(cache)
    if "<locals>" in kind.__qualname__:
        return False  # transformers finds classes by their path
    for (module, name), arguments in ((_ANY_CACHE, [kind]), (_DYNAMIC_CACHE, [])):
        try:
            say = getattr(import_module(module), name)
        except (ImportError, AttributeError):
            continue  # of another version
        say(*arguments)
        if not any(leaf is cache for leaf in tree_flatten(cache)[0]):
            return True
    return False


__all__ = ["is_cache", "taken_apart"]

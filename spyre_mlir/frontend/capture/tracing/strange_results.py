"""Results of a model that no program has, such as `x.dtype`: torch names their class, and not the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from spyre_mlir.errors import SpyreError, UnsupportedError
from spyre_mlir.frontend.capture.tracing.package_classes import is_cache
from spyre_mlir.frontend.torch_private import tree_flatten_with_path

_KNOWN = (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool, bool, int, float, str, type(None))
_SAID = "in output, which is not a known type"


def strange_results(error: SpyreError, returned: Sequence[object]) -> dict[str, object]:
    """Return the results that torch could not trace, each by its place, if that is what an error says.

    Args:
        error: of a trace.
        returned: what the model has returned in it, the last one last.
    """
    if _SAID not in str(error) or not returned:
        return {}
    leaves = tree_flatten_with_path(returned[-1])[0]
    return {f"result{''.join(map(str, path))}": leaf for path, leaf in leaves if not isinstance(leaf, _KNOWN)}


def without_results(strange: Mapping[str, object]) -> UnsupportedError:
    """The error for results that no program has, by their places."""
    named = ", ".join(f"{_class_of(leaf)} at {at}" for at, leaf in strange.items())
    cached = "give use_cache=False; or " if any(map(is_cache, strange.values())) else ""
    return UnsupportedError(
        f"the model returns what no program has: {named}",
        hint=f"{cached}return tensors, numbers, text, None, and tuples, lists, dicts and dataclasses of these, and "
        'make the rest outside of the model; or torch.compile(model, backend="spyre"), which leaves it to Python',
    )


def _class_of(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


__all__ = ["strange_results", "without_results"]

"""Results of a model that no program has, such as `x.dtype`: torch names their class, and not the result."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from spyre_mlir.errors import SpyreError, UnsupportedError
from spyre_mlir.frontend.torch_private import tree_flatten_with_path

_KNOWN = (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool, bool, int, float, str, type(None))
_SAID = "in output, which is not a known type"


def check_results(error: SpyreError, returned: Sequence[object]) -> None:
    """Name the results that torch could not trace, if that is what an error says.

    Args:
        error: of a trace.
        returned: what the model has returned in it, the last one last.

    Raises:
        UnsupportedError: results are neither tensors nor numbers nor text.
    """
    if _SAID not in str(error) or not returned:
        return
    leaves = tree_flatten_with_path(returned[-1])[0]
    strange = [(path, leaf) for path, leaf in leaves if not isinstance(leaf, _KNOWN)]
    if not strange:
        return
    named = [f"{_class_of(leaf)} at result{''.join(map(str, path))}" for path, leaf in strange]
    raise UnsupportedError(
        f"the model returns what no program has: {', '.join(named)}",
        hint="return tensors, numbers, text, None, and tuples, lists, dicts and dataclasses of these, and make the "
        'rest outside of the model; or torch.compile(model, backend="spyre"), which leaves it to Python',
    ) from error


def _class_of(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


__all__ = ["check_results"]

"""Kinds of example arguments that torch.export does not take, or takes and no call could give again."""

from __future__ import annotations

from enum import Enum
from functools import partial
from types import BuiltinFunctionType, EllipsisType, FunctionType, MethodType
from typing import cast

import numpy as np
import torch

from spyre_mlir.errors import InputError
from spyre_mlir.frontend.torch_private import tree_flatten_with_path

_FIX = "call the model from the forward of a module that has the value: self.model(x, {})"
_SETTINGS = (torch.dtype, torch.device, torch.layout, torch.memory_format, slice, EllipsisType, complex)
_CALLED = (torch.nn.Module, FunctionType, BuiltinFunctionType, MethodType, partial)


def check_kinds(**examples: object) -> None:
    """Refuse arguments that are neither tensors, numbers, texts nor None.

    Raises:
        InputError: there is one, and a remedy for its kind.
    """
    for name, given in examples.items():
        for path, leaf in tree_flatten_with_path(given)[0]:
            if (hint := _remedy(leaf)) is not None:
                raise InputError(
                    f"{_kind(leaf)} among the example arguments; expected tensors, numbers, text, None, and nestings "
                    "of these",
                    where=name + "".join(map(str, path)),
                    hint=hint,
                )


def _remedy(leaf: object) -> str | None:
    """What to give in the place of a leaf; None if it may be given, or torch says what is wrong with it."""
    if isinstance(leaf, np.ndarray):
        return "torch.from_numpy makes a tensor of it"
    if isinstance(leaf, np.generic) and not isinstance(leaf, float):  # float64 is a float of Python
        return f"give {leaf.item()!r}, a number of Python, or a tensor of it"
    if isinstance(leaf, Enum):
        return f"give its value {leaf.value!r}; or {_FIX.format(leaf)}"
    if isinstance(leaf, _SETTINGS):
        return _FIX.format(cast(object, leaf))
    if torch.masked.is_masked_tensor(leaf):
        return "give its data and its mask apart: x.get_data(), x.get_mask()"
    if isinstance(leaf, _CALLED):
        return _FIX.format("…")
    return None


def _kind(leaf: object) -> str:
    kind = type(leaf)
    return f"{kind.__module__}.{kind.__name__}" if kind.__module__ not in ("builtins", "types") else kind.__name__


__all__ = ["check_kinds"]

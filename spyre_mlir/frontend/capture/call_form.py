"""The form of a call: all that a decomposition can see of it, without the tensors themselves."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, cast

import torch
from torch.fx import Node

from spyre_mlir.frontend.capture.operator_tracing import TensorForm, TensorNumber
from spyre_mlir.frontend.capture.value_memory import Unfollowed
from spyre_mlir.frontend.torch_private import Operator

_PLAIN = (bool, int, str, type(None), torch.dtype, torch.layout, torch.device, torch.memory_format)


class OffsetsMatter(Exception):  # no error: the graph is taken again
    """A call walks memory by strides, so the starts of tensors in their memory have to be right."""


class CallForm:
    """A call's operator and arguments, a number in the place of every tensor.

    Attributes:
        args: positional arguments.
        kwargs: keyword arguments.
        tensors: the tensors by number; one that is read twice has one number.
        forms: their forms.
        key: equal for calls that are taken apart in the same way.
    """

    def __init__(self, called: Operator, args: Any, kwargs: Any, forms: Mapping[Node, TensorForm]) -> None:
        """Numbers the tensors among the arguments."""
        self._numbers: dict[Node, TensorNumber] = {}
        self.args, args_key = self._spelled(args)
        self.kwargs, kwargs_key = self._spelled(dict(kwargs))
        self.tensors = list(self._numbers)
        if any(tensor not in forms for tensor in self.tensors):
            raise Unfollowed("an input that is no tensor")
        self.forms = tuple(forms[tensor] for tensor in self.tensors)
        settings = (torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled())
        self.key: Hashable = (called, args_key, kwargs_key, self.forms, settings)

    def _spelled(self, value: Any) -> tuple[Any, Hashable]:
        """Return an argument with numbers for tensors, and a key that differs between 1, 1.0 and True, 0.0 and -0.0."""
        if isinstance(value, Node):
            number = self._numbers.setdefault(value, TensorNumber(len(self._numbers)))
            return number, number
        if isinstance(value, (list, tuple)):
            pairs = [self._spelled(item) for item in cast("list[Any]", value)]
            return [made for made, _ in pairs], ("list", *(key for _, key in pairs))
        if isinstance(value, dict):
            named = {name: self._spelled(item) for name, item in cast("dict[str, Any]", value).items()}
            return {n: made for n, (made, _) in named.items()}, tuple((n, key) for n, (_, key) in named.items())
        if isinstance(value, (float, complex)):
            return value, (type(value), repr(value))
        if isinstance(value, _PLAIN):
            return value, (type(value), value)
        raise Unfollowed(f"an argument {type(value).__name__}")

"""Places that a tensor says, as in ``c[:, position] = x``: traced as a view, and a write through it.

Torch asks the tensor for its number, which a trace without values does not have. For reads,
`torch.export` does the same.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch.overrides import TorchFunctionMode

_SPLITS = cast(Any, (torch.tensor_split, torch.Tensor.tensor_split))  # in C++, they read the tensor without asking
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8)


class IndexWrites(TorchFunctionMode):
    """Trace ``tensor[index] = value``, where a tensor of one integer is an index, by a view and a copy.

    Args:
        reads: trace ``tensor[index]`` as a view, too, where torch does not, and ``tensor_split`` by a tensor.
    """

    def __init__(self, *, reads: bool = False) -> None:
        super().__init__()
        self._reads = reads

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Calls a function of torch, or writes through the view that an index names."""
        if func is torch.Tensor.__setitem__ and (view := _view(args[0], args[1])) is not None:
            value = args[2]
            view.copy_(_as_wide(value, view.dim()) if isinstance(value, torch.Tensor) else torch.as_tensor(value))
            return None
        if self._reads and func is torch.Tensor.__getitem__ and (view := _view(args[0], args[1])) is not None:
            return view
        if self._reads and func in _SPLITS and len(args) > 1 and isinstance(args[1], torch.Tensor):
            places: Any = [place.item() for place in args[1].unbind()] if args[1].dim() else args[1].item()
            args = (args[0], places, *args[2:])
        return func(*args, **(kwargs or {}))


def _view(tensor: Any, index: Any) -> torch.Tensor | None:
    """The view that an index names; None if no tensor of one integer is in it, or something that makes no view."""
    items = list(cast("tuple[Any, ...]", index)) if isinstance(index, tuple) else [index]
    if not any(map(_is_place, items)):
        return None
    given = sum(item is not None and item is not Ellipsis for item in items)
    if not all(_makes_view(item) for item in items) or given > tensor.dim():
        return None
    view, dim = tensor, 0
    for item in items:
        if item is None:
            view = view.unsqueeze(dim)
            dim += 1
        elif item is Ellipsis:
            dim += tensor.dim() - given
        elif isinstance(item, slice):
            start, stop, step = _ends(item)
            view = torch.ops.aten.slice.Tensor(view, dim, start, stop, 1 if step is None else step)
            dim += 1
        else:
            view = torch.select(view, dim, cast(int, item.item() if isinstance(item, torch.Tensor) else item))
    return view


def _is_place(item: Any) -> bool:
    return isinstance(item, torch.Tensor) and item.dim() == 0 and item.dtype in _INTEGERS


def _makes_view(item: Any) -> bool:
    if isinstance(item, slice):
        return not any(isinstance(end, torch.Tensor) for end in _ends(item))
    number = isinstance(item, (int, torch.SymInt)) and not isinstance(item, bool)
    return item is None or item is Ellipsis or number or _is_place(item)


def _ends(item: Any) -> tuple[Any, Any, Any]:
    """Start, stop and step of a slice, of which Python does not say what they are."""
    return item.start, item.stop, item.step


def _as_wide(value: torch.Tensor, dims: int) -> torch.Tensor:
    """A value without the dimensions of one element that it has before those of the place, as torch takes it."""
    while value.dim() > dims and value.shape[0] == 1:
        value = value.squeeze(0)
    return value

"""Values that Python reads from tensors, as in a run on the example inputs: of a branch, a number of turns, a size.

A trace has no values. Eager runs first, and what Python reads there is noted by the place that reads it. The trace
gives the same answers, and writes an assertion beside each: a call in which Python would read something else is
refused. Floats that `item` reads stay tensors, as in every trace: hardly any other call would read the same.

Decision: docs/decisions/0204-values-of-the-examples.md
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch.overrides import TorchFunctionMode

from spyre_mlir.errors import InputError
from spyre_mlir.frontend.capture.tracing.python import assertions
from spyre_mlir.frontend.capture.tracing.python.state import python_state_kept
from spyre_mlir.frontend.locations import calls_of_model
from spyre_mlir.frontend.torch_private import is_fake, is_functional, is_wrapped, tree_flatten, tree_map
from spyre_mlir.ops.checks import REMEDY

Place = tuple[str, tuple[str, ...]]
Noted = dict[Place, deque[Any]]

_ABOUT = "Python reads {} of a tensor at {}, and the program was compiled for {}" + REMEDY + "{}"
_AGAIN = "compile again with inputs like these"
_AS_TENSOR = "compute with the tensor, whose value changes from call to call"
_NUMBERS = frozenset({"item", "__int__", "__float__", "__index__"})
_LIST = "tolist"  # of a tensor in a trace torch reads each number
# Calls that take sizes, which may be tensors: Python does not read these, torch does. Some have a tensor before.
_SIZED = frozenset({"zeros", "ones", "empty", "full", "arange"})
_RESIZED = frozenset({"pad", "view", "reshape", "expand", "repeat"})


def _is_true(input: torch.Tensor) -> torch.Tensor:
    return input.reshape(()).ne(0)


def _are_equal(input: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return input.eq(other).all() if input.shape == other.shape else torch.tensor(False)


def _are_close(input: torch.Tensor, other: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    return torch.isclose(input, other, *args, **kwargs).all()


def _contains(input: torch.Tensor, element: Any) -> torch.Tensor:
    return input.eq(element).any()


# Functions that give a truth, and the truth as a tensor.
_TRUTHS: Mapping[str, Callable[..., torch.Tensor]] = {
    "__bool__": _is_true,
    "is_nonzero": _is_true,
    "equal": _are_equal,
    "allclose": _are_close,
    "__contains__": _contains,
}


class _Reading(TorchFunctionMode):
    """Sees what Python reads from tensors; calls that take sizes as tensors read them by `item`."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Calls a function of torch, or gives what Python reads."""
        name, kwargs = str(getattr(func, "__name__", "")), cast("dict[str, Any]", kwargs or {})
        if name in _SIZED:
            args, kwargs = tree_map(self._number, (args, kwargs))
        elif name in _RESIZED:
            args, kwargs = (*args[:1], *tree_map(self._number, args[1:])), tree_map(self._number, kwargs)
        elif name == "__getitem__":
            args = (args[0], tree_map(self._bounds, args[1]))
        elif name == _LIST and _counts(args[0]):
            return self.list(args[0], ("item", calls_of_model()))
        elif name in _TRUTHS or (name in _NUMBERS and (name != "item" or _counts(args[0]))):
            return self.read((name, calls_of_model()), func, args, kwargs)
        return func(*args, **kwargs)

    def read(self, place: Place, func: Any, args: Any, kwargs: Any) -> Any:
        """Return what Python reads at a place."""
        raise NotImplementedError

    def list(self, tensor: torch.Tensor, place: Place) -> Any:
        """Return the numbers of a tensor at a place where each is read."""
        raise NotImplementedError

    def _number(self, given: Any) -> Any:
        if not isinstance(given, torch.Tensor) or given.ndim or not _counts(given):
            return given
        return self.read(("item", calls_of_model()), torch.Tensor.item, (given,), {})

    def _bounds(self, index: Any) -> Any:
        if not isinstance(index, slice):
            return index
        bounds = cast(Any, index)
        return slice(self._number(bounds.start), self._number(bounds.stop), self._number(bounds.step))


class _Noting(_Reading):
    """Notes what a run of eager reads."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: Noted = {}

    def read(self, place: Place, func: Any, args: Any, kwargs: Any) -> Any:
        value = func(*args, **kwargs)
        self.noted.setdefault(place, deque()).append(value)
        return value

    def list(self, tensor: torch.Tensor, place: Place) -> Any:
        self.noted.setdefault(place, deque()).extend(cast(Any, tensor).reshape(-1).tolist())
        return cast(Any, tensor).tolist()


class _Answering(_Reading):
    """Gives a trace what the run of eager has read at the same place, and writes the assertion."""

    def __init__(self, noted: Noted) -> None:
        super().__init__()
        self._left = {place: deque(values) for place, values in noted.items()}

    def read(self, place: Place, func: Any, args: Any, kwargs: Any) -> Any:
        left = self._left.get(place)
        if not left or any(map(is_wrapped, _tensors(args))):
            return func(*args, **kwargs)
        value = left.popleft()
        if not any(is_fake(x) or is_functional(x) for x in _tensors(args)):
            return func(*args, **kwargs)
        if place[0] == "__bool__" and (asserted := assertions.truth(args[0])) is not None:
            return asserted
        where = place[1][-1] if place[1] else "a line of the model"
        instead = _AS_TENSOR if isinstance(value, float) else _AGAIN
        text = _ABOUT.format(place[0].strip("_"), where, repr(value), instead)
        cast(Any, torch)._assert_async(_holds(place[0], args, kwargs, value), text)
        return value

    def list(self, tensor: torch.Tensor, place: Place) -> Any:
        for _ in range(min(tensor.numel(), len(self._left.get(place, ())))):
            self._left[place].popleft()
        return cast(Any, tensor).tolist()


def _counts(tensor: torch.Tensor) -> bool:
    """Return whether a tensor has integers or truths."""
    return not (tensor.is_floating_point() or tensor.is_complex())


def _tensors(args: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_flatten(args)[0] if isinstance(leaf, torch.Tensor)]


def _holds(name: str, args: Any, kwargs: Any, value: Any) -> torch.Tensor:
    """Whether Python would read the same again, as a tensor."""
    if (truth := _TRUTHS.get(name)) is not None:
        found = truth(*args, **kwargs)
        return found if value else found.logical_not()
    tensor: torch.Tensor = args[0]
    if name == "__int__" or name == "__index__":
        tensor = tensor.to(torch.int64)
    expected = torch.tensor(value, dtype=tensor.dtype if name == "item" else None)
    same = tensor.eq(expected)
    if tensor.is_floating_point():
        same = same.logical_or(tensor.ne(tensor).logical_and(expected.ne(expected)))
    return same.all()


def values_of(model: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Noted:
    """Run a model once as eager does, and return what Python reads from tensors; the model stays as it was.

    Args:
        model: the module.
        args: copies of positional example inputs, which it may write to.
        kwargs: copies of keyword inputs.

    Raises:
        InputError: the model has no values.
    """
    tensors = [*model.parameters(), *model.buffers(), *_tensors((args, dict(kwargs)))]
    if any(is_fake(t) or t.device.type == "meta" for t in tensors):
        raise InputError(
            "specialize_values runs the model once, and it has tensors without values",
            hint="load the weights, or compile without specialize_values",
        )
    kept = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    with python_state_kept(model, always=True), cast(Any, torch).random.fork_rng(devices=[]), torch.no_grad():
        try:
            with _Noting() as noting:
                model(*args, **kwargs)
        finally:
            for buffer, values in kept:
                buffer.copy_(values)
    return noting.noted


@contextmanager
def specialized(noted: Noted | None) -> Generator[None]:
    """Give a trace in the block the values that were noted; None gives it none."""
    if noted is None:
        yield
        return
    with _Answering(noted):
        yield


__all__ = ["Noted", "specialized", "values_of"]

"""Constants missing from a trace without values: tensors that a model makes from numbers alone are kept beside it.

A mask such as ``torch.tensor([True, False, True])`` says how many elements `x[mask]` has, and counts say how long the
result of `repeat_interleave` is. Both are known, so such calls are traced as what they come to, a selection by
positions. `torch.cov` looks at a value to see whether it should warn; it is traced by its parts.

Decision: docs/decisions/0103-known-values-at-import.md
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import comb
from typing import Any, cast

import torch
from torch.overrides import TorchFunctionMode

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.capture.tracing import host_calls
from spyre_mlir.frontend.capture.tracing.python import assertions
from spyre_mlir.frontend.capture.tracing.python.truths import allclose, equal, is_nonzero
from spyre_mlir.frontend.capture.unsupported import OTHER_MEMORY, WRITE
from spyre_mlir.frontend.host_operators import HOST
from spyre_mlir.frontend.locations import line_that_runs
from spyre_mlir.frontend.symbolic.sizes import SYMBOLIC
from spyre_mlir.frontend.torch_private import disable_modes, is_fake, is_functional, tree_flatten, tree_map

_MOST = 1 << 16  # elements of a value that is worth keeping: masks and counts, not tables of a model
_MAKERS = frozenset({"tensor", "as_tensor", "arange", "ones", "zeros", "full", "eye", "linspace"})
# Of these, the ones whose sizes may be given as tensors.
_SIZED = frozenset({"arange", "ones", "zeros"})
_PURE = frozenset(
    {"tril", "triu", "logical_and", "logical_or", "logical_not", "logical_xor", "cat", "stack", "flip", "roll"}
    | {"eq", "ne", "lt", "le", "gt", "ge", "add", "sub", "mul", "div", "remainder", "floor_divide", "isin", "clone"}
    | {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__and__", "__or__", "__xor__", "__invert__"}
    | {"__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__mod__", "__floordiv__", "__getitem__"}
    | {"to", "bool", "long", "int", "view", "reshape", "expand", "repeat", "unsqueeze", "squeeze", "flatten", "t"}
    | {"bitwise_and", "bitwise_or", "bitwise_not", "sum", "cumsum", "any", "all", "detach", "diff", "transpose"}
    | {"amax", "amin", "max", "min", "maximum", "minimum", "clamp"}
)
# Calls whose results, if all they read is known, are known too, and have shapes that only values say.
_BY_VALUE = frozenset({"nonzero", "argwhere", "unique", "unique_consecutive", "bincount"})
_DATA, _SETS_DATA = cast(Any, torch.Tensor.data).__get__, cast(Any, torch.Tensor.data).__set__
_TRUTH = (torch.bool, torch.uint8)


class ConstantValues(TorchFunctionMode):
    """Track values through a trace, and trace selections by known values as selections by position."""

    def __init__(self) -> None:
        """Starts with nothing known."""
        super().__init__()
        # Tensors are kept, so that no other gets the identity of one that is gone.
        self._known: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Calls a function of torch, or what it comes to."""
        name, kwargs = str(getattr(func, "__name__", "")), cast("dict[str, Any]", kwargs or {})
        if name in _MAKERS and str(kwargs.get("device")) == "meta":
            kwargs = {
                **kwargs,
                "device": "cpu",
            }  # where the weights of a model on meta are said to be while it is traced
        if name in _SIZED:
            args = tree_map(self._number, args)
        if func == _DATA:
            # Torch makes `x.data` outside of the trace. It has the memory of `x`, as this has.
            return args[0].detach()
        if func == _SETS_DATA:
            raise UnsupportedError(OTHER_MEMORY, hint=WRITE)
        if _writes(name, kwargs):
            self._known.clear()
            return func(*args, **kwargs)
        if (instead := _INSTEAD.get(name)) is not None and (out := instead(self, *args, **kwargs)) is not None:
            return out
        if name in _BY_VALUE and (value := self.computed(func, args, kwargs)) is not None:
            return tree_map(self.constant, value)
        out = func(*args, **kwargs)
        if isinstance(out, torch.Tensor) and name in _MAKERS | _PURE and _is_small(out):
            value = self.computed(func, args, kwargs)
            if isinstance(value, torch.Tensor) and value.shape == out.shape and value.dtype == out.dtype:
                self._known[id(out)] = (out, value)
        return out

    def value(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Return the value of a tensor; None if it depends on call inputs or on weights."""
        if id(tensor) in self._known:
            return self._known[id(tensor)][1]
        traced = is_fake(tensor) or is_functional(tensor) or isinstance(tensor, torch.nn.Parameter)
        return None if traced or tensor.device.type == "meta" else tensor

    def _number(self, given: object) -> object:
        """The number of a known tensor without dimensions; torch would ask for it, as for a size that data decides."""
        value = self.value(given) if isinstance(given, torch.Tensor) and given.ndim == 0 else None
        return given if value is None else self.run(value.item)

    def constant(self, value: Any) -> Any:
        """Return a known value as a tensor of the trace, created as a model would create it."""
        if not isinstance(value, torch.Tensor):
            return value
        with disable_modes():
            numbers, shape = cast(Any, value).tolist(), tuple(value.shape)
        made = torch.tensor(numbers, dtype=value.dtype).reshape(shape)
        self._known[id(made)] = (made, value)
        return made

    def run(self, function: Callable[..., Any], *values: Any, **options: Any) -> Any:
        """Compute with values, outside the trace."""
        with disable_modes(), torch.no_grad():
            return function(*values, **options)

    def computed(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Return a call's result if all its inputs are known, and torch takes them; None otherwise."""
        leaves, tree = tree_flatten((args, kwargs))
        values = [self.value(x) if isinstance(x, torch.Tensor) else x for x in leaves]
        if any(v is None and isinstance(x, torch.Tensor) for v, x in zip(values, leaves, strict=True)):
            return None
        if any(isinstance(x, SYMBOLIC) for x in leaves):
            return None
        positional, named = tree.unflatten(values)
        if "device" in named:
            named = {**named, "device": "cpu"}
        try:
            return self.run(func, *positional, **named)
        except (RuntimeError, IndexError, ValueError):  # the call itself says so
            return None


def _is_small(tensor: torch.Tensor) -> bool:
    """Return whether a value is worth keeping; one of symbolic size has none yet, and asking for it would fix it."""
    count: int | torch.SymInt = tensor.numel()
    return not isinstance(count, torch.SymInt) and count <= _MOST


def _writes(name: str, kwargs: Iterable[str]) -> bool:
    """Return whether a function writes to a tensor: nothing is known for sure after it."""
    in_place = name.endswith("_") and not name.endswith("__")
    return in_place or name == "__setitem__" or (name.startswith("__i") and name != "__invert__") or "out" in kwargs


def _kept(mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return mask.to(torch.bool).nonzero(as_tuple=True)


def _none_below_zero(weights: torch.Tensor) -> bool:
    return bool((weights >= 0).all())


def _places(values: ConstantValues, mask: torch.Tensor) -> list[torch.Tensor] | None:
    """The positions that a known mask keeps, a tensor per dimension."""
    known = values.value(mask)
    if known is None:
        return None
    return [values.constant(p) for p in values.run(_kept, known)]


def _getitem(values: ConstantValues, self: torch.Tensor, index: Any) -> Any:
    """`self[index]` with positions in the places of known masks; None if there are none, or one is not known."""
    several = cast("tuple[Any, ...]", index) if isinstance(index, tuple) else (index,)
    positions = [_positions(values, item) for item in several]
    known = [part for part in positions if part is not None]
    if len(known) < len(several) or all(len(p) == 1 and p[0] is i for p, i in zip(known, several, strict=True)):
        return None
    return self[tuple(item for part in known for item in part)]


def _positions(values: ConstantValues, item: Any) -> list[Any] | None:
    """Return the replacement of an index: positions for a known mask, None for an unknown one, else itself."""
    if isinstance(item, list) and item and all(isinstance(i, bool) for i in cast("list[object]", item)):
        return _places(values, values.constant(values.run(torch.tensor, item)))
    mask = isinstance(item, torch.Tensor) and item.dtype in _TRUTH and item.ndim > 0
    return _places(values, cast(torch.Tensor, item)) if mask else [item]


def _masked_select(values: ConstantValues, input: torch.Tensor, mask: torch.Tensor) -> Any:
    known = values.value(mask)
    shape = cast("tuple[int, ...]", cast(Any, torch).broadcast_shapes(input.shape, mask.shape))
    if known is None:
        # In a trace torch takes for granted that no more elements are selected than the input has before it broadcasts.
        return None if input.shape == shape else input.expand(shape).masked_select(mask)

    def kept(mask: torch.Tensor) -> torch.Tensor:
        return mask.expand(shape).reshape(-1).nonzero().reshape(-1)

    wide = values.constant(values.run(kept, known))
    return input.expand(shape).reshape(-1)[wide]


def _one_hot(_: ConstantValues, input: torch.Tensor, num_classes: int = -1) -> Any:
    """`one_hot` whose largest number says how many classes there are; None for others."""
    if num_classes != -1 or input.numel() == 0:
        return None
    cast(Any, torch)._check(input.min().item() >= 0, lambda: "one_hot takes classes of 0 and above")
    classes = torch.arange(cast(int, input.max().item() + 1))
    return input.unsqueeze(-1).eq(classes).to(torch.int64)


def _repeat_interleave(
    values: ConstantValues, input: torch.Tensor, repeats: Any = None, dim: int | None = None, **options: Any
) -> Any:
    if repeats is None or not isinstance(repeats, torch.Tensor):
        return None
    known = values.value(repeats)
    if known is None:
        return None
    source = input.reshape(-1) if dim is None else input
    at = 0 if dim is None else dim
    count = source.shape[at]

    def repeated(counts: torch.Tensor) -> torch.Tensor:
        return torch.arange(count).repeat_interleave(counts, **options)

    places = values.run(repeated, known)
    return source.index_select(at, values.constant(places))


def _covariances(
    values: ConstantValues,
    input: torch.Tensor,
    *,
    correction: int = 1,
    fweights: torch.Tensor | None = None,
    aweights: torch.Tensor | None = None,
) -> Any:
    """`torch.cov` by its parts, since whole it looks at a value; None where torch would refuse its arguments."""
    refused = input.ndim > 2 or not input.numel() or input.dtype is torch.bool
    rows = input if input.ndim == 2 else input.reshape(1, -1)
    refused |= fweights is not None and not (_is_integral(fweights) and _may_weigh(values, fweights, rows))
    refused |= aweights is not None and not (aweights.is_floating_point() and _may_weigh(values, aweights, rows))
    if refused:
        return None
    rows = rows.to(torch.get_default_dtype()) if _is_integral(rows) else rows
    fweights, aweights = (None if w is None else _weights(values, w) for w in (fweights, aweights))
    given = [w for w in (fweights, aweights) if w is not None]
    if not given:
        left = right = rows - rows.mean(1, keepdim=True)
        return (left @ right.mH / max(0, rows.shape[1] - correction)).squeeze()
    weights = given[0] if len(given) == 1 else given[0] * given[1]
    total = weights.sum()
    left = rows - (rows * weights).sum(1, keepdim=True) / total
    less = correction if aweights is None else correction * (weights * aweights).sum() / total
    return (left @ (left * weights).mH / (total - less).clamp(min=0)).squeeze()


def _combinations(values: ConstantValues, input: torch.Tensor, r: int = 2, with_replacement: bool = False) -> Any:
    """`torch.combinations` by positions, which its number of elements says; whole it selects by a mask."""
    count: int | torch.SymInt = input.numel()
    if input.ndim != 1 or isinstance(count, torch.SymInt) or r < 0:
        return None
    if comb(count + (r - 1 if with_replacement and count else 0), r) * r > _MOST:
        return None
    places = values.run(lambda: torch.combinations(torch.arange(count), r, with_replacement))
    return input[values.constant(places)]


def _is_integral(tensor: torch.Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype is torch.bool)


def _may_weigh(values: ConstantValues, weights: torch.Tensor, rows: torch.Tensor) -> bool:
    """Return whether there is a weight for each column, and none is known to be below 0."""
    known = values.value(weights)
    return weights.shape == rows.shape[1:] and (known is None or bool(values.run(_none_below_zero, known)))


def _weights(values: ConstantValues, weights: torch.Tensor) -> torch.Tensor:
    """Weights, of which the host checks that none is below 0 unless that is known."""
    return HOST.none_below_zero(weights, "weights") if values.value(weights) is None else weights


def _correlations(values: ConstantValues, input: torch.Tensor) -> Any:
    """`torch.corrcoef` by its parts; see `_covariances`."""
    covariances = _covariances(values, input)
    if covariances is None or not covariances.ndim:
        return None if covariances is None else covariances / covariances
    variances = covariances.diagonal()
    deviations = (variances.real if variances.is_complex() else variances).sqrt()
    made = covariances / deviations[:, None] / deviations[None, :]
    return torch.complex(made.real.clamp(-1, 1), made.imag.clamp(-1, 1)) if made.is_complex() else made.clamp(-1, 1)


def _truth(function: Callable[..., Any]) -> Callable[..., Any]:
    """A truth value of Python: known, if all tensors are."""

    def instead(values: ConstantValues, *args: Any, **kwargs: Any) -> Any:
        known = values.computed(function, args, kwargs)
        return function(*args, **kwargs) if known is None else known

    return instead


def _array(function: Callable[..., Any]) -> Callable[..., Any]:
    """An array of NumPy: a copy of what is known; what calls decide cannot leave the program."""

    def instead(values: ConstantValues, *args: Any, **kwargs: Any) -> Any:
        known = values.computed(function, args, kwargs)
        if known is None:
            raise UnsupportedError(
                "the model gives NumPy a tensor that calls decide, and torch traces no arrays",
                where=line_that_runs(),
                hint="use functions of torch; item() and tolist() read numbers; make what only NumPy has an operator "
                "by torch.library.custom_op",
            )
        return known.copy()

    return instead


def _truth_of(values: ConstantValues, input: torch.Tensor) -> bool | None:
    """The truth of a tensor, if it is known or asserted; None for others."""
    known = values.value(input)
    if known is None:
        return assertions.truth(input)
    return values.run(bool, known) if known.numel() == 1 else None


def _is_all_true(values: ConstantValues, input: torch.Tensor) -> torch.Tensor:
    """What `torch.distributions` asks: `all` by another name."""
    known = values.value(input)
    return input.all() if known is None else values.constant(values.run(torch.all, known))


def _copy(_: ConstantValues, self: torch.Tensor, memo: dict[int, Any]) -> torch.Tensor:
    """A deep copy, which torch would make of the memory that a traced tensor has not."""
    return memo.setdefault(id(self), self.detach().clone())


def _on_host(function: Callable[..., Any]) -> Callable[..., Any]:
    """A step of the host, whatever is known."""

    def instead(_: ConstantValues, *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return instead


_INSTEAD: dict[str, Callable[..., Any]] = {
    **{function.__name__: _truth(function) for function in (allclose, equal, is_nonzero)},
    **{name: _on_host(getattr(host_calls, name)) for name in host_calls.__all__},
    "combinations": _combinations,
    "corrcoef": _correlations,
    "cov": _covariances,
    "__bool__": _truth_of,
    "__deepcopy__": _copy,
    "__array__": _array(cast(Any, torch.Tensor).__array__),
    "__getitem__": _getitem,
    "_is_all_true": _is_all_true,
    "masked_select": _masked_select,
    "numpy": _array(torch.Tensor.numpy),
    "one_hot": _one_hot,
    "repeat_interleave": _repeat_interleave,
}

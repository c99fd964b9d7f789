"""Execution of one operator as a program of its own; programs are cached by operator and arguments."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import torch

from spyre_mlir import api
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import ImportProgramError, LoweringError, UnsupportedError
from spyre_mlir.frontend import signature_of
from spyre_mlir.frontend.torch_private import schema_of, tree_flatten, tree_map
from spyre_mlir.frontend.torch_tracing import is_tracing
from spyre_mlir.torch_device.module import DeviceModule
from spyre_mlir.torch_device.updates import in_an_update
from spyre_mlir.transforms.utils.host_fallback import HostStepWarning

# Memory is the host's: allocation, copies, filling and what brings single numbers to Python are not programs.
_MEMORY = frozenset(
    {"clone", "copy_", "_to_copy", "detach", "alias", "lift_fresh", "set_", "resize_", "_pin_memory", "zero_", "fill_"}
    | {"_local_scalar_dense", "is_nonzero", "equal"}
)
_MAKERS = ("new_", "ones_like", "zeros_like", "full_like", "empty_like", "rand", "uniform", "normal", "bernoulli")


class _OneOperator(torch.nn.Module):
    """A call of an operator as a module of its tensors."""

    def __init__(self, operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        super().__init__()
        self._operator = operator
        leaves, self._tree = tree_flatten((tuple(args), dict(kwargs)))
        self._leaves = [None if isinstance(x, torch.Tensor) else (x,) for x in leaves]

    def forward(self, *tensors: torch.Tensor) -> Any:
        queue = iter(tensors)
        args, kwargs = self._tree.unflatten([next(queue) if x is None else x[0] for x in self._leaves])
        return self._operator(*args, **kwargs)


_programs: dict[str, CompiledModel | None] = {}


def run_operator(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return an operator's results on host tensors, mutated as its schema says; the hardware model computes."""
    if _moves_memory(operator):
        return operator(*args, **kwargs)
    _give_sizes(operator, args, kwargs)
    args, kwargs = _reads_apart(operator, args, kwargs)
    tensors = [x for x in tree_flatten((tuple(args), dict(kwargs)))[0] if isinstance(x, torch.Tensor)]
    if not tensors:
        return operator(*args, **kwargs)
    if is_tracing():  # a program would be traced in a thread of its own, which would wait for this one
        _module().host_steps[str(operator)] += 1
        return operator(*args, **kwargs)
    options = _options()
    key = f"{operator}|{options}|{signature_of(args, kwargs)}"
    if key not in _programs:
        _programs[key] = _program(operator, args, kwargs, tensors, options)
    program = _programs[key]
    if program is None:
        _module().host_steps[str(operator)] += 1
        return operator(*args, **kwargs)
    result = program(*tensors)
    return args[0] if _writes_first(operator) else result


def _writes_first(operator: Any) -> bool:
    """Return whether an operator writes to its first argument, which is its result then."""
    arguments = schema_of(operator).arguments
    return bool(arguments) and _is_written(arguments[0])


def _is_written(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


def _give_sizes(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Gives tensors without elements the size of the results that are written there: programs write to given sizes."""
    results = {a.name for a in schema_of(operator).arguments if cast(Any, a).is_out}
    empty = {name: x for name, x in kwargs.items() if name in results and x.numel() == 0}
    if not empty:
        return

    def form(value: Any) -> Any:
        return value.to("meta") if isinstance(value, torch.Tensor) else value

    by_place, by_name = tree_map(form, (tuple(args), dict(kwargs)))
    operator(*by_place, **by_name)
    for name, x in empty.items():
        x.resize_(by_name[name].shape)


def _reads_apart(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments, with copies of those that are only read and are written too: `x.mul_(x)`, `mul(x, y, out=x)`."""
    arguments = schema_of(operator).arguments
    written_names = {a.name for a in arguments if _is_written(a)}
    given = dict(zip((a.name for a in arguments), args, strict=False)) | dict(kwargs)
    written = tree_flatten([given[name] for name in written_names if name in given])[0]

    def copied(value: Any) -> Any:
        return _apart(value, written)

    def apart(name: str, value: Any) -> Any:
        return value if name in written_names else tree_map(copied, value)

    by_place = [apart(a.name, value) for a, value in zip(arguments, args, strict=False)]
    return by_place, {name: apart(name, value) for name, value in kwargs.items()}


def _apart(value: Any, written: Sequence[Any]) -> Any:
    """A copy of a tensor that is one of the written ones; other values unchanged."""
    if not isinstance(value, torch.Tensor):
        return value
    return value.clone() if any(_is_same(value, x) for x in written if isinstance(x, torch.Tensor)) else value


def _is_same(value: torch.Tensor, written: torch.Tensor) -> bool:
    same = value.data_ptr() == written.data_ptr() and value.shape == written.shape
    return same and value.stride() == written.stride() and value.dtype == written.dtype


def _module() -> DeviceModule:
    return cast(DeviceModule, cast(Any, torch).spyre)


def _options() -> dict[str, Any]:
    """How an operation is compiled that is called now."""
    options: dict[str, Any] = {"numerics": _module().numerics, "on_overflow": _module().on_overflow}
    # Squares of gradients, as an optimizer keeps them, are below the least DLFloat16.
    return options | ({"keep_float32": True} if in_an_update() else {})


def _moves_memory(operator: Any) -> bool:
    schema = schema_of(operator)
    view = any(a.alias_info is not None and not a.alias_info.is_write for a in schema.arguments)
    name = schema.name.partition("::")[2]
    reads = any("Tensor" in str(a.type) and not cast(Any, a).is_out for a in schema.arguments)
    return view or _is_view_in_place(operator) or not reads or name in _MEMORY or name.startswith(_MAKERS)


def _is_view_in_place(operator: Any) -> bool:
    """Return whether an operator changes only how a tensor looks at its memory, as `t_` does."""
    return torch.Tag.inplace_view in operator.tags


def _program(
    operator: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    tensors: Sequence[torch.Tensor],
    options: Mapping[str, Any],
) -> CompiledModel | None:
    """The program of a call; None if the host has to do it."""
    module = _OneOperator(operator, args, kwargs).eval()
    try:
        # In a thread of its own: the dispatch keys that are off during dispatch would be off in tracing too.
        with ThreadPoolExecutor(1) as thread:
            made = thread.submit(api.compile, module, tuple(tensors), host_fallback="allow", **options)
            program = cast(CompiledModel, made.result())
            if not program.host_steps:
                return program if program.kernels else None  # nothing to compute: the host's memory is the device's
            reason = program.host_steps[0].reason
    except (UnsupportedError, ImportProgramError, LoweringError) as error:
        reason = error.message
    warnings.warn(f"{operator} runs on the host: {reason}", HostStepWarning, stacklevel=6)
    return None

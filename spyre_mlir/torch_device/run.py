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
from spyre_mlir.frontend.torch_private import schema_of, tree_flatten
from spyre_mlir.torch_device.module import DeviceModule
from spyre_mlir.transforms.utils.host_fallback import HostStepWarning

aten = torch.ops.aten
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
    if writes := _writes_first(operator):
        args = [args[0], *(_apart(x, args[0]) for x in args[1:])]
    tensors = [x for x in tree_flatten((tuple(args), dict(kwargs)))[0] if isinstance(x, torch.Tensor)]
    if not tensors:
        return operator(*args, **kwargs)
    key = f"{operator}|{_module().numerics}|{_module().on_overflow}|{signature_of(args, kwargs)}"
    if key not in _programs:
        _programs[key] = _program(operator, args, kwargs, tensors)
    program = _programs[key]
    if program is None:
        _module().host_steps[str(operator)] += 1
        return operator(*args, **kwargs)
    result = program(*tensors)
    return args[0] if writes else result


def _writes_first(operator: Any) -> bool:
    """Return whether an operator writes to its first argument, which is its result then."""
    arguments = schema_of(operator).arguments
    return bool(arguments) and arguments[0].alias_info is not None and arguments[0].alias_info.is_write


def _apart(value: Any, written: Any) -> Any:
    """A copy of a tensor that is the written one too, as in ``x.mul_(x)``: it is read as it was before."""
    if not isinstance(value, torch.Tensor) or not isinstance(written, torch.Tensor):
        return value
    same = value.data_ptr() == written.data_ptr() and value.shape == written.shape
    return value.clone() if same and value.stride() == written.stride() and value.dtype == written.dtype else value


def _module() -> DeviceModule:
    return cast(DeviceModule, cast(Any, torch).spyre)


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
    operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any], tensors: Sequence[torch.Tensor]
) -> CompiledModel | None:
    """The program of a call; None if the host has to do it."""
    module = _OneOperator(operator, args, kwargs).eval()
    try:
        # In a thread of its own: the dispatch keys that are off during dispatch would be off in tracing too.
        with ThreadPoolExecutor(1) as thread:
            options: dict[str, Any] = {"numerics": _module().numerics, "on_overflow": _module().on_overflow}
            made = thread.submit(api.compile, module, tuple(tensors), host_fallback="allow", **options)
            program = cast(CompiledModel, made.result())
            if not program.host_steps:
                return program if program.kernels else None  # nothing to compute: the host's memory is the device's
            reason = program.host_steps[0].reason
    except (UnsupportedError, ImportProgramError, LoweringError) as error:
        reason = error.message
    warnings.warn(f"{operator} runs on the host: {reason}", HostStepWarning, stacklevel=6)
    return None

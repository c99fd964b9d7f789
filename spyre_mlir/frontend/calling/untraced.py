"""Calls of compiled models from functions that torch traces.

`torch.compile` would follow such a call into the hardware model, which is numpy; it leaves the call to Python, and goes
on behind. Traces of real tensors (`make_fx`, `torch.jit.trace`) would keep the results as constants, and are refused.

Decision: docs/decisions/0252-calls-of-compiled-models-are-not-traced.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import torch
from torch.fx.experimental.proxy_tensor import get_proxy_mode

from spyre_mlir.errors import InputError
from spyre_mlir.frontend.program.tensors_of_traces import OUTER_HINT


def _call(run: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    if get_proxy_mode() is not None or cast(Any, torch).jit.is_tracing():
        raise InputError("a compiled model is called while torch traces another one", hint=OUTER_HINT)
    return run(*args, **kwargs)


_untraced: Callable[..., Any] = cast(Any, torch).compiler.disable(_call, reason="a model that spyre_mlir has compiled")


def untraced(run: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Call a function that `torch.compile` does not follow.

    Args:
        run: the function.
        args: its positional arguments.
        kwargs: its keyword arguments.

    Raises:
        InputError: another trace records the call.
    """
    # Else no function of torch stands between the caller and ours, which warnings count.
    traced = bool(cast(Any, torch).compiler.is_dynamo_compiling())
    return (_untraced if traced else _call)(run, args, kwargs)


__all__ = ["untraced"]

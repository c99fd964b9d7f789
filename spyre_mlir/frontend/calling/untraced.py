"""Calls of compiled models from functions that `torch.compile` traces.

It would follow such a call into the hardware model, which is numpy; it leaves the call to Python, and goes on behind.

Decision: docs/decisions/0252-calls-of-compiled-models-are-not-traced.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import torch


def _call(run: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    return run(*args, **kwargs)


_untraced: Callable[..., Any] = cast(Any, torch).compiler.disable(_call, reason="a model that spyre_mlir has compiled")


def untraced(run: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Call a function that `torch.compile` does not follow.

    Args:
        run: the function.
        args: its positional arguments.
        kwargs: its keyword arguments.
    """
    # Else no function of torch stands between the caller and ours, which warnings count.
    traced = bool(cast(Any, torch).compiler.is_dynamo_compiling())
    return _untraced(run, args, kwargs) if traced else run(*args, **kwargs)


__all__ = ["untraced"]

"""Training is not supported: the forward pass runs, and the backward pass raises an explanation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from typing_extensions import override

from spyre_mlir.errors import UnsupportedError


def needs_backward(inputs: Sequence[Any]) -> bool:
    """Return whether autograd would record a call with these inputs."""
    return torch.is_grad_enabled() and any(isinstance(i, torch.Tensor) and i.requires_grad for i in inputs)


class _Forward(torch.autograd.Function):
    @staticmethod
    @override
    def forward(ctx: Any, run: Callable[..., Any], *inputs: Any) -> Any:
        with torch.no_grad():
            return tuple(run(*inputs))

    @staticmethod
    @override
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise UnsupportedError(
            "the backward pass of a graph that was compiled for Spyre",
            hint="run the model under torch.no_grad() or torch.inference_mode(); train it elsewhere",
        )


def run_without_backward(run: Callable[..., Any], inputs: Sequence[Any]) -> Any:
    """Return the results of a call; `backward` of any of them raises UnsupportedError."""
    return cast(Any, _Forward).apply(run, *inputs)

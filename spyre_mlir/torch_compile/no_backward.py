"""Without training the forward pass runs, and the backward pass raises an explanation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from typing_extensions import override

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.torch_private import storage_identity

_ASK = 'train with torch.compile(model, backend="spyre", options={"training": True}), or run under torch.no_grad()'
_ON_HOST = "train with parameters and inputs on the host, x.cpu(); tensors of the device have no backward pass"


def needs_backward(inputs: Sequence[Any]) -> bool:
    """Return whether autograd would record a call with these inputs."""
    return torch.is_grad_enabled() and any(isinstance(i, torch.Tensor) and i.requires_grad for i in inputs)


def _state(results: Sequence[Any], inputs: Sequence[Any]) -> list[torch.Tensor]:
    """The results in the memory of inputs that take no gradient, such as counts that the model keeps in its buffers."""
    memory = {storage_identity(x) for x in inputs if isinstance(x, torch.Tensor) and not x.requires_grad}
    return [r for r in results if isinstance(r, torch.Tensor) and storage_identity(r) in memory]


class _Forward(torch.autograd.Function):
    @staticmethod
    @override
    def forward(ctx: Any, run: Callable[..., Any], hint: str, *inputs: Any) -> Any:
        ctx.hint = hint
        with torch.no_grad():
            results = tuple(run(*inputs))
        ctx.mark_non_differentiable(*_state(results, inputs))
        return results

    @staticmethod
    @override
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise UnsupportedError("the backward pass of a graph that was compiled for Spyre", hint=ctx.hint)


def run_without_backward(run: Callable[..., Any], inputs: Sequence[Any], *, training: bool = False) -> Any:
    """Return the results of a call; `backward` of any of them raises UnsupportedError.

    Args:
        run: computes them.
        inputs: of the call.
        training: whether training was asked for.
    """
    return cast(Any, _Forward).apply(run, _ON_HOST if training else _ASK, *inputs)

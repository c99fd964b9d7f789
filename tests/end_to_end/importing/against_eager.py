"""What programs are compared with: eager's results after the same seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

import spyre_mlir
from tests.functions import FunctionModel

Programs = dict[str, tuple[Any, tuple[Tensor, ...]]]


def model_of(programs: Programs, name: str) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """A program by its name as a model, with its inputs."""
    program, inputs = programs[name]
    return program if isinstance(program, nn.Module) else FunctionModel(program), inputs


def results(model: Callable[..., Any], args: Sequence[Tensor]) -> list[Tensor]:
    """All results of a call, in order."""
    torch.manual_seed(3)
    with torch.no_grad():
        return torch.utils._pytree.tree_leaves(model(*args))


def eager(model: Callable[..., Any], args: tuple[Tensor, ...]) -> list[Tensor]:
    """Results of a model whose control flow runs as torch's own operators have it, without Dynamo."""
    with torch.compiler.set_stance("force_eager"):
        return results(model, args)


def check_levels(program: Callable[..., Any], calls: Sequence[tuple[Tensor, ...]], **options: Any) -> None:
    """A program compiled for the first call gives eager's results at each call, at every level."""
    model = FunctionModel(program)
    compiled = spyre_mlir.compile(model, calls[0], **options)
    for args in calls:
        close(results(compiled, args), eager(model, args))
        torch._dynamo.reset()
        verification = compiled.verify(*args)
        assert verification, str(verification)


def check_torch_compile(program: Callable[..., Any], calls: Sequence[tuple[Tensor, ...]], **options: Any) -> None:
    """A program in `torch.compile` gives eager's results at each call; it is one graph."""
    model = FunctionModel(program)
    compiled = torch.compile(model, backend="spyre", options=options, fullgraph=True)
    for args in calls:
        got = results(compiled, args)
        close(got, eager(model, args))


def close(got: list[Tensor], wanted: list[Tensor]) -> None:
    """Types are equal, and numbers those of float32."""
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        assert a.dtype is b.dtype
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)

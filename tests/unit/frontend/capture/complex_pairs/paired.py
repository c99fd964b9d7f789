"""A function of complex tensors, run as the graph on pairs that stands for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import GraphModule

from spyre_mlir.frontend.capture.complex_pairs.rewriting import in_pairs
from spyre_mlir.frontend.capture.decomposition import decompose
from spyre_mlir.frontend.capture.functional_graph import FunctionalProgram
from spyre_mlir.frontend.capture.liveness import live_nodes
from spyre_mlir.frontend.capture.unsupported import UnsupportedNode
from tests.functions import FunctionModel

EDGES = (0.0, -0.0, 1.0, -2.5, float("inf"), -float("inf"), float("nan"), 1e-30)


def edges() -> torch.Tensor:
    """Every pair of parts that is zero, infinite, no number, or none of that."""
    return torch.tensor([complex(a, b) for a in EDGES for b in EDGES])


def finite(count: int = 24) -> torch.Tensor:
    """Numbers of all quadrants and both axes, of magnitudes from 0.05 to 3."""
    angles = torch.arange(count) * (2 * torch.pi / 12)
    return torch.polar(torch.linspace(0.05, 3, count), angles)


def rewritten(function: Callable[..., Any], *args: torch.Tensor) -> tuple[FunctionalProgram, list[UnsupportedNode]]:
    """The program on pairs of a function, and what has no form."""
    program = decompose(torch.export.export(FunctionModel(function), args))
    return in_pairs(program, live_nodes(list(program.graph.nodes)))


def targets(function: Callable[..., Any], *args: torch.Tensor) -> list[str]:
    """The calls of the graph on pairs that its results need."""
    program, refused = rewritten(function, *args)
    assert not refused
    return [str(node.target) for node in live_nodes(list(program.graph.nodes)) if node.op == "call_function"]


def paired(function: Callable[..., Any], *args: torch.Tensor) -> Any:
    """The results of a function of tensors, computed on pairs."""
    program, refused = rewritten(function, *args)
    assert not refused, refused
    for node in program.graph.nodes:
        assert not (isinstance(value := node.meta.get("val"), torch.Tensor) and value.is_complex()), node
    given = iter(args)
    inputs = [
        next(given) if spec.target is None else program.constants[spec.target]
        for spec in program.graph_signature.input_specs
    ]
    run = GraphModule(torch.nn.Module(), program.graph)
    results = run(*(torch.view_as_real(x.resolve_conj()) if x.is_complex() else x for x in inputs))
    made = [
        torch.view_as_complex(result.contiguous()) if number in program.complex_outputs else result
        for number, result in enumerate(results)
    ]
    return made[0] if len(made) == 1 else made


def agrees(function: Callable[..., Any], *args: torch.Tensor, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Compare pairs with eager torch, infinities and NaN included."""
    got, wanted = paired(function, *args), function(*args)
    pairs = zip(got, wanted, strict=True) if isinstance(wanted, (tuple, list)) else [(got, wanted)]
    for ours, theirs in pairs:
        assert ours.dtype is theirs.dtype
        assert ours.shape == theirs.shape
        a, b = (torch.view_as_real(t.resolve_conj()) if t.is_complex() else t for t in (ours, theirs))
        torch.testing.assert_close(a, b.resolve_neg(), rtol=rtol, atol=atol, equal_nan=True)

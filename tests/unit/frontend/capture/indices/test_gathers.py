"""Selections by the number of a tensor in a functional graph: which become ones by the tensor itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from spyre_mlir.frontend.capture.decomposition import decompose
from spyre_mlir.frontend.capture.export import export_model
from spyre_mlir.frontend.capture.indices.gathers import with_tensor_indices
from tests.functions import FunctionModel

C, P = torch.zeros(4, 8), torch.tensor(2)


def calls(function: Callable[..., Any], *args: Tensor) -> list[str]:
    program = with_tensor_indices(decompose(export_model(FunctionModel(function), args, {})))
    return [str(node.target).removeprefix("aten.") for node in program.graph.nodes if node.op == "call_function"]


def written(c: Tensor, p: Tensor) -> Tensor:
    c = c.clone()
    c[:, p] = 1
    return c


def test_reads_and_writes_are_by_the_tensor() -> None:
    assert calls(lambda c, p: c[:, p] * 2, C, P) == ["index.Tensor", "mul.Tensor"]
    made = calls(written, C, P)
    assert "index_put.default" in made
    assert not {"_local_scalar_dense.default", "select_scatter.default"} & {*made}


def test_a_number_that_is_a_size_too_is_still_read() -> None:
    made = calls(lambda c, p: c[p] + torch.arange(p.item()).sum(), C, P)
    assert "index.Tensor" in made
    assert "_local_scalar_dense.default" in made


def test_a_number_of_a_tensor_with_dimensions_stays() -> None:
    assert "select.int" in calls(lambda c, p: torch.select(c, 0, p.item()) * 2, C, P[None])

"""Checks that torch orders by tokens are steps of the host, as are those of derivatives."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import spyre_mlir
from spyre_mlir.errors import MachineFault
from tests.functions import FunctionModel


class Inverse(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.inv(x) @ x


X = torch.eye(8) + 0.1 * torch.ones(8, 8)


@pytest.mark.parametrize("decomposed", [False, True])
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_inverse(decomposed: bool) -> None:
    exported = torch.export.export(Inverse(), (X,))
    if decomposed:
        exported = exported.run_decompositions()
        assert any("with_effects" in str(node.target) for node in exported.graph.nodes)
    compiled = spyre_mlir.compile(exported, host_fallback="allow", numerics="exact")
    steps = ["aten.linalg_inv_ex", "host::linalg_succeeded"] if decomposed else ["aten.linalg_inv"]
    assert [s.op for s in compiled.host_steps] == steps
    assert compiled.verify(X)
    torch.testing.assert_close(compiled(X), torch.eye(8), atol=1e-5, rtol=0)


def gradient(x: Tensor) -> Tensor:
    return torch.func.grad(lambda x: torch.linalg.inv(x).sum())(x)


ASKING: dict[str, Callable[[Tensor], Tensor]] = {
    "inv": torch.linalg.inv,
    "solve": lambda x: torch.linalg.solve(x, torch.ones(8, 1)),
    "cholesky": torch.linalg.cholesky,
    "lu_factor": lambda x: torch.linalg.lu_factor(x)[0],
    "tensorinv": lambda x: torch.linalg.tensorinv(x.reshape(8, 8, 1), 1),
    "gradient": gradient,
}


@pytest.mark.parametrize("decomposed", [False, True])
@pytest.mark.parametrize("name", ASKING)
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
def test_a_matrix_that_eager_refuses_is_refused_at_the_call(name: str, decomposed: bool) -> None:
    function = ASKING[name]
    with pytest.raises(RuntimeError) as refused:
        function(torch.zeros(8, 8))
    model = FunctionModel(function)
    exported = torch.export.export(model, (X,)).run_decompositions() if decomposed and name != "gradient" else None
    compiled = spyre_mlir.compile(model, (X,)) if exported is None else spyre_mlir.compile(exported)
    torch.testing.assert_close(compiled(X), function(X), atol=2e-2, rtol=2e-2)
    with pytest.raises(MachineFault) as caught:
        compiled(torch.zeros(8, 8))
    assert str(refused.value).partition("\n")[0].partition(": ")[2] in str(caught.value)

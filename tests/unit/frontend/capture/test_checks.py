"""Checks that torch orders by tokens fall away; what they check is a host step."""

import pytest
import torch

import spyre_mlir


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
    assert [s.op for s in compiled.host_steps] == ["aten.linalg_inv_ex" if decomposed else "aten.linalg_inv"]
    assert compiled.verify(X)
    torch.testing.assert_close(compiled(X), torch.eye(8), atol=1e-5, rtol=0)

"""The operators of the namespace `random` against torch's own ways of filling a tensor."""

import pytest
import torch

from spyre_mlir.frontend.capture.random_draws.fillings import filling
from spyre_mlir.ops.draws import FILLINGS

NUMBERS = {
    "uniform": (1.0, 3.0),
    "normal": (2.0, 0.5),
    "bernoulli": (0.3,),
    "exponential": (2.0,),
    "geometric": (0.4,),
    "cauchy": (1.0, 2.0),
    "log_normal": (0.5, 0.25),
    "integers": (2, 9),
}


def after(seed: int, fill: object) -> torch.Tensor:
    torch.manual_seed(seed)
    return fill()  # type: ignore[operator, no-any-return]


@pytest.mark.parametrize("stride", [(), (1, 5), (16, 2)])
@pytest.mark.parametrize("name", FILLINGS)
def test_torch_fills_the_same(name: str, stride: tuple[int, ...]) -> None:
    method = "random_" if name == "integers" else f"{name}_"

    def eager() -> torch.Tensor:
        empty = torch.empty_strided((5, 8), stride or (8, 1))
        return getattr(empty, method)(*NUMBERS[name])

    wanted = after(4, eager)
    got = after(4, lambda: filling(name)([5, 8], list(stride), torch.float32, *NUMBERS[name]))
    assert torch.equal(got, wanted)
    assert got.stride() == wanted.stride()

"""Numbers that a model reads from a tensor, as sizes, bounds and factors, for values that eager takes and refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.errors import InputError, UnsupportedError
from tests.functions import FunctionModel

pytestmark = pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")

X = torch.linspace(-1.0, 1.0, 24).reshape(4, 6)
PROGRAMS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "first": lambda x, n: x[:, : int(n)] * 2,
    "from": lambda x, n: x[:, int(n) :] @ x[:, int(n) :].t(),
    "two of": lambda x, n: x[:, int(n) : int(n) + 2] * 2,
    "last": lambda x, n: x[:, -int(n) :] * 2,
    "zeros": lambda x, n: torch.zeros(int(n)) + x.sum(),
    "arange": lambda x, n: torch.arange(n.item()) * 0.5 + x.sum(),
    "narrow": lambda x, n: torch.narrow(x, 1, 0, int(n)) * 2,
    "narrow from": lambda x, n: torch.narrow(x, 1, int(n), 2) * 2,
    "expand": lambda x, n: x[0].expand(int(n), 6) * 2,
    "reshape": lambda x, n: x.reshape(int(n), -1) * 2,
    "split": lambda x, n: torch.split(x, [int(n), 6 - int(n)], 1)[0] * 2,
    "pad": lambda x, n: nn.functional.pad(x, (0, int(n))) * 2,
    "factor": lambda x, n: x * int(n) + float(n),
}


SAID = r"eager torch refuses them, too|gives a number of .* in this call, expected"


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_value_is_as_in_eager(name: str) -> None:
    model = FunctionModel(PROGRAMS[name])
    compiled = spyre_mlir.compile(model, (X, torch.tensor(3)), numerics="exact")
    for value in (3, 1, 2, 5, 0, -2):
        inputs = X, torch.tensor(value)
        try:
            wanted = model(*inputs)
        except RuntimeError:
            with pytest.raises(InputError, match=SAID):
                compiled(*inputs)
        else:
            torch.testing.assert_close(compiled(*inputs), wanted)


NOT_TRACED = pytest.mark.skipif(torch.__version__ >= (2, 15), reason="torch 2.15 traces torch._assert as a check")


def _asserting(x: Tensor, _n: Tensor) -> Tensor:
    torch._assert(x.sum() > 0, "positive")
    return x * 2


class Translating(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.model = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return self.model(x, x, tgt_mask=mask)


REFUSED: tuple[Any, ...] = (
    (FunctionModel(lambda x, n: x * 2 if int(n) > 2 else x), (X, torch.tensor(3)), "torch.where or torch.cond"),
    (FunctionModel(lambda x, n: sum(x[i] for i in range(int(n)))), (X, torch.tensor(3)), "a number of Python"),
    (FunctionModel(lambda x, n: x if n.item() > 2 else -x), (X, torch.tensor(3)), r"write torch\._check\(u0 > 2\)"),
    (FunctionModel(lambda x, n: x if (x > n).all() else -x), (X, torch.tensor(3)), r"torch\.cond, instead of `if`"),
    pytest.param(FunctionModel(_asserting), (X, torch.tensor(3)), r"write torch\._assert_async", marks=NOT_TRACED),
    (Translating().eval(), (torch.ones(3, 1, 8), torch.zeros(3, 3)), "tgt_is_causal=True"),
)  # fmt: skip


@pytest.mark.parametrize(("model", "args", "hint"), REFUSED, ids=("if", "range", "bound", "bool", "assert", "mask"))
def test_what_python_decides_says_what_to_write_instead(model: Any, args: tuple[Any, ...], hint: str) -> None:
    with pytest.raises(UnsupportedError, match="decides its control flow or a shape by the values") as no:
        spyre_mlir.compile(model, args)
    assert "test_numbers_as_sizes.py:" in str(no.value)
    with pytest.raises(UnsupportedError, match=hint):
        raise no.value

"""Numbers that have no place in the type of a tensor: refused as in eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import spyre_mlir
from spyre_mlir.errors import ImportProgramError
from spyre_mlir.frontend import import_program
from tests.functions import FunctionModel

BYTES, SHORT = torch.tensor([0, 255, 7], dtype=torch.uint8), torch.tensor([-128, 127, 7], dtype=torch.int8)
HALF, MASK = torch.ones(3, dtype=torch.float16), torch.tensor([True, False, True])

REFUSED: dict[str, tuple[Callable[[Tensor], Any], Tensor, str]] = {
    "a limit of bytes": (lambda x: x.clamp(max=300), BYTES, r"clamp.default: max = 300 is no number of uint8"),
    "a limit below": (lambda x: x.clamp_min(-200), SHORT, r"clamp_min.default: min = -200"),
    "a limit of half precision": (lambda x: x.clamp(max=1e6), HALF, r"1000000.0 is no number of float16"),
    "a filling": (lambda x: x.masked_fill(MASK, 300), BYTES, r"masked_fill.Scalar: value = 300"),
    "a filling of half precision": (lambda x: x.masked_fill(MASK, -1e9), HALF, r"value = -1000000000.0"),
    "a filling in place": (lambda x: x.clone().fill_(300), BYTES, r"fill_.Scalar: value = 300"),
    "a tensor alike": (lambda x: torch.full_like(x, 300) + x, BYTES, r"full_like.default: fill_value = 300"),
    "a choice": (lambda x: torch.where(MASK, x, 300), BYTES, r"where.ScalarOther: other = 300"),
    "a scale": (lambda x: torch.add(x, x, alpha=300), BYTES, r"add.Tensor: alpha = 300"),
    "a tensor of half precision alike": (lambda x: torch.full_like(x, 1e6) + x, HALF, r"fill_value = 1000000.0"),
    "a scale of half precision": (lambda x: torch.add(x, x, alpha=1e6), HALF, r"add.Tensor: alpha = 1000000.0"),
    "what stands below a threshold": (
        lambda x: torch.nn.functional.threshold(x, 0.1, -1e9),
        HALF,
        r"threshold.default: value = -1000000000.0",
    ),
    "in a branch": (
        lambda x: torch.cond(x.sum() > 3, lambda x: x.clamp(max=300), lambda x: x + 1, (x,)),
        BYTES,
        r"max = 300",
    ),
}
TAKEN: dict[str, tuple[Callable[[Tensor], Any], Tensor]] = {
    "what wraps": (lambda x: (x + 300, x * 300, x == 300, x < 300), BYTES),
    "a number below 0": (lambda x: (x.clamp(min=-3), x.masked_fill(MASK, -1)), BYTES),
    "what half precision has as infinity": (lambda x: x + torch.full((), 1e6, dtype=x.dtype), HALF),
    "infinities of half precision": (
        lambda x: (torch.where(MASK, x, -1e9), torch.addcmul(x, x, x, value=1e6), torch.full_like(x[:1], 1e6)),
        HALF,
    ),
    "infinity": (lambda x: (x.masked_fill(MASK, float("-inf")), x.clamp(max=float("inf"))), HALF),
    "a limit with a fraction": (lambda x: torch.nn.functional.hardtanh(x.long(), -0.5, 2.5), BYTES),
    "a limit that makes floats": (lambda x: x.clamp(max=300.5), BYTES),
}


@pytest.mark.parametrize(("function", "x", "message"), REFUSED.values(), ids=REFUSED)
def test_what_eager_refuses_is_refused(function: Callable[[Tensor], Any], x: Tensor, message: str) -> None:
    with pytest.raises(RuntimeError, match="without overflow"):
        function(x)
    with pytest.raises(ImportProgramError, match=message) as met:
        import_program(FunctionModel(function), (x,), None)
    in_a_branch = "cond" in function.__code__.co_names  # whose line is here, not where the model calls it
    assert ("test_number_limits.py:" if in_a_branch else "functions.py:") in str(met.value)


@pytest.mark.parametrize(("function", "x"), TAKEN.values(), ids=TAKEN)
def test_what_eager_takes_is_taken(function: Callable[[Tensor], Any], x: Tensor) -> None:
    wanted = function(x)
    got = spyre_mlir.compile(FunctionModel(function), (x,), numerics="exact")(x)
    pairs = zip(got, wanted, strict=True) if isinstance(wanted, tuple) else [(got, wanted)]
    assert all(torch.equal(a, b) and a.dtype == b.dtype for a, b in pairs)

"""Example arguments of kinds that no program takes are named with their place and a remedy."""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch.masked import masked_tensor  # pyright: ignore[reportUnknownVariableType]

import spyre_mlir
from spyre_mlir.errors import InputError
from spyre_mlir.frontend.capture.tracing.given_kinds import check_kinds

X = torch.ones(2, 3)


class Way(Enum):
    FORTH = "forth"


class Model(torch.nn.Module):
    def forward(self, x: Any, choice: Any = None) -> Any:
        return x + 1


@pytest.mark.parametrize(
    ("value", "kind", "remedy"),
    [
        (torch.float16, "torch.dtype", r"self.model\(x, torch.float16\)"),
        (torch.device("cpu"), "torch.device", r"self.model\(x, cpu\)"),
        (slice(0, 2), "slice", r"self.model\(x, slice\(0, 2, None\)\)"),
        (..., "ellipsis", "self.model"),
        (1j, "complex", r"self.model\(x, 1j\)"),
        (Way.FORTH, "Way", "give its value 'forth'"),
        (np.float32(2.5), "numpy.float32", r"give 2.5, a number of Python"),
        (np.ones(2), "numpy.ndarray", "torch.from_numpy"),
        (torch.relu, "builtin_function_or_method", "self.model"),
        (partial(max, 1), "functools.partial", "self.model"),
        (torch.nn.ReLU(), "ReLU", "self.model"),
    ],
)
def test_a_kind_is_named_with_its_place_and_a_remedy(value: object, kind: str, remedy: str) -> None:
    said = rf"{kind} among the example arguments; expected tensors, (.|\n)*at: kwargs\['choice'\]\[0\](.|\n)*{remedy}"
    with pytest.raises(InputError, match=said):
        spyre_mlir.compile(Model(), (X,), {"choice": [value]})
    with pytest.raises(InputError, match=rf"{kind} among"):
        spyre_mlir.compile(Model())(X, choice=[value])


def test_masked_tensors_are_named() -> None:
    with pytest.warns(UserWarning, match="prototype"):
        masked = masked_tensor(X, X > 0)
    with pytest.raises(InputError, match=r"MaskedTensor among (.|\n)*args\[0\](.|\n)*x.get_data\(\), x.get_mask\(\)"):
        spyre_mlir.compile(Model(), (masked,))


def test_tensors_numbers_texts_and_none_are_taken() -> None:
    check_kinds(args=(X, [1, 2.5, True, "text", None, np.float64(1)]), kwargs={"y": (torch.nn.Parameter(X),)})

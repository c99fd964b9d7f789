"""Exported loops that are given a tensor twice: refused where torch took both for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._higher_order_ops.scan import scan

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.importer import import_program
from tests.functions import FunctionModel

INPUTS = torch.ones(3, 2), torch.ones(2)


def carried_twice(x: Tensor, h: Tensor) -> Any:
    return scan(lambda c, row: ((c[0] + row, c[1] * row), c[0] - c[1]), (h, h), x, dim=0)


def carried_and_read(x: Tensor, h: Tensor) -> Any:
    return scan(lambda c, row: (c + row + h, c * 2), h, x, dim=0)


def apart(x: Tensor, h: Tensor) -> Any:
    return scan(lambda c, row: (c + row + h, c * 2), h + 1, x, dim=0)


@pytest.mark.parametrize("program", [carried_twice, carried_and_read])
def test_one_tensor_for_two_arguments_is_refused(program: Callable[..., Any]) -> None:
    exported = torch.export.export(FunctionModel(program), INPUTS)
    with pytest.raises(UnsupportedError, match="given one tensor twice") as caught:
        import_program(exported)
    assert "compile the module itself" in str(caught.value.hint)


def test_two_tensors_are_two_arguments() -> None:
    assert import_program(torch.export.export(FunctionModel(apart), INPUTS)).name

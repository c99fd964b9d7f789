"""Dimensions along which values repeat, for programs whose numbers show it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from xdsl.dialects import func

from spyre_mlir.frontend import import_program
from spyre_mlir.transforms.utils.repeated_dims import repeated_dims
from tests.functions import FunctionModel

X = torch.arange(12).view(2, 3, 2)
CASES: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "argument": (lambda x: x * 2, ()),
    "expanded": (lambda x: x[..., None].expand(-1, -1, -1, 5), (3,)),
    "in front": (lambda x: x[:, :1].expand(4, 2, 3, 2), (0, 2)),
    "one entry": (lambda x: x[:, :1] * 1, (1,)),
    "twice": (lambda x: x[:, None, :1].expand(2, 4, 1, 2).expand(2, 4, 6, 2), (1, 2)),
    "merged": (lambda x: x[..., None, None].expand(-1, -1, -1, 5, 4).reshape(2, 3, 2, 20), (3,)),
    "merged with its own": (lambda x: x[..., None].expand(-1, -1, -1, 5).reshape(2, 3, 10), ()),
    "divided": (lambda x: x[..., None].expand(-1, -1, -1, 20).reshape(2, 3, 2, 4, 5), ()),
    "ones put in": (lambda x: x[..., None].expand(-1, -1, -1, 5).reshape(2, 3, 1, 2, 5), (2, 4)),
}


@pytest.mark.parametrize("name", CASES)
def test_repeated_dimensions(name: str) -> None:
    function, wanted = CASES[name]
    value = function(X)
    for d in wanted:  # the numbers agree
        assert (value == value.narrow(d, 0, 1)).all()
    program = import_program(FunctionModel(function), (X,))
    main = next(op for op in program.module.walk() if isinstance(op, func.FuncOp))
    returned = main.get_return_op()
    assert returned is not None
    assert repeated_dims(returned.operands[0]) == wanted

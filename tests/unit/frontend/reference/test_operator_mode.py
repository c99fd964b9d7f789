"""Modes see the operators of graphs that operations on graphs run."""

from collections.abc import Mapping
from typing import Any

import torch
from torch._higher_order_ops.map import map as map_slices
from torch._higher_order_ops.scan import scan
from typing_extensions import override

from spyre_mlir.frontend.reference.operator_mode import OperatorMode
from spyre_mlir.frontend.torch_private import Operator


class Negated(OperatorMode):
    """Subtracts where it is to add."""

    @override
    def run(self, func: Operator, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        return (torch.ops.aten.sub.Tensor if func is torch.ops.aten.add.Tensor else func)(*args, **kwargs)


X, H = torch.arange(6.0).reshape(3, 2), torch.zeros(2)


def test_scan() -> None:
    with Negated():
        carried, rows = scan(lambda c, row: (c + row, c * 1), H, X, dim=0)
    assert torch.equal(carried, -X.sum(0))
    assert torch.equal(rows, -torch.stack([H, X[0], X[0] + X[1]]))


def test_map() -> None:
    ones = torch.ones(2)
    with Negated():
        made = map_slices(lambda row, other: row + other, X, ones)
    assert torch.equal(made, X - 1)


def test_cond() -> None:
    with Negated():
        for sign, wanted in ((1, -1.0), (-1, 2.0)):
            made = torch.cond(torch.tensor(sign) > 0, lambda h: h + 1, lambda h: h * 1 + -2, (H,))
            assert torch.equal(made, torch.full((2,), wanted))


def test_conjugate_views_inside_of_operators() -> None:
    """`linalg_pinv` multiplies by one, which torch ignores under a mode."""
    z = torch.polar(torch.arange(1.0, 7.0), torch.arange(6.0)).reshape(3, 2)
    with Negated():
        inverse = torch.linalg.pinv(z)
    torch.testing.assert_close(inverse @ z, torch.eye(2, dtype=z.dtype))

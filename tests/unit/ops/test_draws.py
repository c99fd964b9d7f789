"""The list of operators that draw is that of torch."""

import torch

from spyre_mlir.frontend.arguments import overload_name
from spyre_mlir.frontend.reference.op_runner import operator_of
from spyre_mlir.ops.draws import DRAWING, FILLINGS, NAMESPACE, draws


def test_torch_says_so_of_each() -> None:
    for name in (*DRAWING, *(f"{NAMESPACE}::{filling}" for filling in FILLINGS)):
        operator = operator_of(name)
        assert torch.Tag.nondeterministic_seeded in operator.tags
        assert overload_name(operator) == name
        assert draws(name)


def test_others_do_not() -> None:
    assert not draws("add.Tensor")
    assert not draws("uniform")

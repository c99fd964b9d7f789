"""Views whose dimensions are cut in ways that do not fit one another, or that no walk through sticks follows."""

from collections.abc import Callable

import pytest
import torch
from xdsl.dialects.builtin import TensorType, UnitAttr, f32
from xdsl.ir import Block, SSAValue

import spyre_mlir
from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.ops.index_views import IndexView
from spyre_mlir.ops.native import pointwise
from spyre_mlir.ops.table import OpEntry
from spyre_mlir.transforms.aten_to_loop.nests import align, make_nest

Model = Callable[..., torch.Tensor]


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(100 * shape[0] + shape[-1]))


SIX = (numbers(2, 3), numbers(3, 2))
THIRTY = (numbers(5, 6), numbers(2, 15), numbers(10, 3))
ROWS = (numbers(130, 64),)
CASES: dict[str, tuple[Model, tuple[torch.Tensor, ...]]] = {
    "two operands, cut apart": (lambda a, b: (a * 2).reshape(6) - (b * 3).reshape(6), SIX),
    "two operands of a view": (lambda a, b: a.T.reshape(6) - b.T.reshape(6), SIX),
    "three operands, cut apart": (lambda a, b, c: torch.lerp(a.reshape(30), b.reshape(30), c.reshape(30)), THIRTY),
    "every second row of a part": (lambda x: x.view(2, 65, 64)[:, ::2], ROWS),
    "every second row of what is computed": (lambda x: (x * 2).view(2, 65, 64)[:, ::2] + 1, ROWS),
    "steps in two dimensions": (lambda x: (x * 2).view(2, 5, 13, 64)[:, ::2, ::3], ROWS),
    "every third column": (lambda x: (x * 2).T.contiguous().view(64, 2, 65)[..., ::3] + 1, ROWS),
    "a sum over the steps": (lambda x: (x * 2).view(26, 5, 64)[:, ::2].sum(1), ROWS),
    "strides that do not divide one another": (lambda a: (a * 2).as_strided((2, 33), (65, 2)), (numbers(136),)),
    "steps that a partner cuts": (
        lambda a, b: (a * 2).view(2, 68)[:, :66:2] + (b * 2).reshape(2, 33),
        (numbers(136), numbers(2, 3, 11)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_elements_are_those_of_torch(name: str) -> None:
    function, inputs = CASES[name]

    class Module(torch.nn.Module):
        def forward(self, *args: torch.Tensor) -> torch.Tensor:
            return function(*args)

    compiled = spyre_mlir.compile(Module(), inputs, numerics="exact", host_fallback="error")
    torch.testing.assert_close(compiled(*inputs), function(*inputs))


def test_steps_nest() -> None:
    part = IndexView.identity((130,)).reshape((2, 65))
    assert part.nests and part.slice(1, 0, 13).nests
    assert not part.slice(1, 0, 65, 2).nests
    assert part.slice(1, 0, 2, 1).expand((2, 2)).nests


def nest(operand: SSAValue, entry: OpEntry, **numbers: float) -> NestOp:
    loops = align([IndexView.identity((4, 64))], ["d0", "d1"])
    return make_nest(loops, [operand], loops.exprs(), TensorType(f32, [4, 64]), entry, numbers=numbers or None)


def test_nests_of_one_form_are_ops_of_their_own() -> None:
    one, other = Block(arg_types=[TensorType(f32, [4, 64])] * 2).args
    first, second = nest(one, pointwise.exp), nest(other, pointwise.exp)
    assert [tuple(op.operands) for op in (first, second)] == [(one,), (other,)]
    assert [len(list(value.uses)) for value in (one, other)] == [1, 1]
    first.attributes["mark"] = UnitAttr()
    assert first.is_structurally_equivalent(second) is False
    assert nest(one, pointwise.exp).is_structurally_equivalent(second, {one: other})


def test_nests_differ_by_function_and_by_the_sign_of_zero() -> None:
    (value,) = Block(arg_types=[TensorType(f32, [4, 64])]).args
    texts = [str(nest(value, pointwise.exp)), str(nest(value, pointwise.neg))]
    texts += [str(nest(value, pointwise.clamp, min=zero, max=1.0)) for zero in (0.0, -0.0)]
    assert len(set(texts)) == 4

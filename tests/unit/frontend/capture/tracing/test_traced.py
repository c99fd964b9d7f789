"""One trace: its examples are copies, Dynamo makes the same program, and torch's questions are answered once."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from spyre_mlir.errors import ImportProgramError
from spyre_mlir.frontend.capture.tracing.traced import TraceRequest, clone_examples, traced
from spyre_mlir.frontend.torch_private import GuardOnDataDependentSymNode
from tests.functions import FunctionModel

X = torch.ones(2, 3)


def test_examples_are_copied_apart() -> None:
    (first, second, number), named = clone_examples((X, X, 3), {"y": X})
    assert len({id(t) for t in (X, first, second, named["y"])}) == 4
    assert first.equal(X)
    assert number == 3


def test_copies_of_examples_have_their_strides() -> None:
    wide = torch.arange(24.0).reshape(4, 6)
    given = (wide[:, ::2], wide.t(), wide[::2, 1:3].t(), wide[:1].expand(3, 6))
    copies, _ = clone_examples(given, {})
    assert [c.stride() for c in copies[:3]] == [(6, 2), (1, 6), (1, 12)]
    assert copies[3].is_contiguous()  # elements that share a place cannot be written
    assert all(c.equal(g) for c, g in zip(copies, given, strict=True))
    with FakeTensorMode() as mode:
        (fake,), _ = clone_examples((mode.from_tensor(wide)[:, ::2],), {})
    assert (type(fake), fake.stride()) == (FakeTensor, (6, 2))


def request(function: object, *args: torch.Tensor) -> TraceRequest:
    return TraceRequest(FunctionModel(function), args, {}, None, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("strict", [False, True])
def test_a_trace_is_a_program_of_the_examples(strict: bool) -> None:
    exported = traced(request(lambda x: x.relu() + 1, X), strict=strict)
    assert exported.module()(-X).equal(X)


def test_what_torch_asks_of_a_size_is_answered_once() -> None:
    """`roll` asks whether there are rows; a second time there is no other answer."""
    rows = request(lambda x: x[x[:, 0] > 0].roll(1, 0), X)
    with pytest.raises(GuardOnDataDependentSymNode) as asked:
        traced(rows, strict=False)
    answered = rows.answered(asked.value)
    assert answered is not None and {number for _, number in answered.unlike} == {0} and answered.assumed
    assert answered.answered(asked.value) is None
    assert traced(answered, strict=False) is not None


def test_the_error_of_derivatives_says_what_to_try() -> None:
    with pytest.raises(ImportProgramError, match=r"torch\.export cannot trace FunctionModel") as plain:
        traced(request(lambda x: x @ x, X), strict=False)
    with pytest.raises(ImportProgramError, match="torch cannot take the derivatives of") as derived:
        traced(request(lambda x: x @ x, X), strict=False, derivatives=True)
    assert "torch.export.export(model, args)" in str(plain.value.hint)
    assert "take derivatives inside of torch.cond" in str(derived.value.hint)

"""Any shape: random chains of torch operations on tensors of rank 0 to 6, strided or without elements, at every level.

What the compiler refuses by name is listed here; anything else that goes wrong is a bug.
"""

from __future__ import annotations

from random import Random

import pytest
import torch
from hypothesis import event, given, note

import spyre_mlir
from spyre_mlir.errors import LoweringError, UnsupportedError
from tests.emitted import let_pass
from tests.property import shapes
from tests.property.examples import RANDOM, check_part, examples

KNOWN_REFUSALS = ("ReStickifyOpHBM: a core would touch",)  # sparse to dense moves 64 times the bytes


def check(random: Random) -> None:
    x = shapes.given(random, shapes.shape(random))
    chain = shapes.Chain(random, x)
    note(f"{tuple(x.shape)} with strides {x.stride()}: {chain}")
    wanted = chain(x)
    try:
        compiled = spyre_mlir.compile(chain, (x,))
        with let_pass("result-read"):  # a slice may leave out what a pad or a concatenation wrote
            outcome = compiled.verify(x)
    except (LoweringError, UnsupportedError) as error:
        if not any(known in error.message for known in KNOWN_REFUSALS):
            raise
        event(error.message)
        return
    assert outcome, str(outcome)
    got = compiled(x)
    assert got.shape == wanted.shape
    assert got.dtype == wanted.dtype
    torch.testing.assert_close(got, wanted, rtol=2e-2, atol=2e-2)


@examples(8)
@given(RANDOM)
def test_chains_of_any_shape(random: Random) -> None:
    check(random)


@pytest.mark.slow(reason="two thousand chains; a few run by default")
@pytest.mark.parametrize("part", range(4))
def test_many_chains(part: int) -> None:
    check_part(check, part, 500)

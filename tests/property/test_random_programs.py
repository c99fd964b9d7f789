"""Random aten functions mean the same on every level, read back from text, and write sound files.

What the compiler refuses by name is listed here; anything else that goes wrong is a bug.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import event, given, note

from spyre_mlir.errors import LoweringError, UnsupportedError
from spyre_mlir.text.render import module_text, parse_module
from spyre_mlir.universe import make_context
from tests.property.examples import RANDOM, check_part, examples
from tests.property.levels import check_every_level
from tests.property.programs import build

# Programs of the generator that the compiler says it cannot lower.
KNOWN_REFUSALS = (
    "a gather of rows of one element",
    "ReStickifyOpHBM: a core would touch",  # sparse to dense moves 64 times the bytes
)


def check(random: Random, *, files: bool) -> None:
    program = build(random)
    module = program.module()
    note(module_text(module))
    try:
        check_every_level(module, program.inputs, text=files, files=files)
    except (LoweringError, UnsupportedError) as error:
        if not any(known in error.message for known in KNOWN_REFUSALS):
            raise
        event(error.message)


@examples(20)
@given(RANDOM)
def test_every_level_computes_the_same(random: Random) -> None:
    check(random, files=False)


@examples(15)
@given(RANDOM)
def test_text_and_files_are_sound(random: Random) -> None:
    check(random, files=True)


ONE_INDEX_PER_STICK = """
func.func @main(%indices: tensor<2x1xi64>, %table: tensor<1x2xf32>) -> tensor<2x1x2xf32> {
  %0 = aten.embedding(%table, %indices) : (tensor<1x2xf32>, tensor<2x1xi64>) -> tensor<2x1x2xf32>
  func.return %0 : tensor<2x1x2xf32>
}
"""


def test_an_index_tensor_with_one_index_per_stick() -> None:
    module = parse_module(ONE_INDEX_PER_STICK, make_context())
    inputs = [np.zeros((2, 1), np.int64), np.asarray([[1.5, -2.0]])]
    check_every_level(module, inputs, text=True, files=True)


@pytest.mark.slow(reason="three thousand programs; a few run by default")
@pytest.mark.parametrize("part", range(6))
def test_many_programs(part: int) -> None:
    check_part(lambda random: check(random, files=True), part, 500)

"""Random functions mean the same after `canonicalize`, on every level and to the last bit; views and copies come often.

Canonicalising changes no number: exact numerics give equal bits, signs of zeros included.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import event, given, note
from xdsl.dialects.builtin import ModuleOp
from xdsl.transforms.canonicalize import CanonicalizePass

from spyre_mlir.errors import LoweringError, UnsupportedError
from spyre_mlir.text.render import module_text, verify_module
from spyre_mlir.universe import make_context
from tests.property.examples import RANDOM, check_part, examples
from tests.property.levels import PASSES, Array, apply, run
from tests.property.programs import Program, binary, build, random_shape, shape_of, unary, view


def canonicalised(module: ModuleOp) -> ModuleOp:
    """A copy of a module after `canonicalize`."""
    copy = module.clone()
    CanonicalizePass().apply(make_context(), copy)
    verify_module(copy)
    return copy


def bits(arrays: Sequence[Array]) -> list[tuple[str, tuple[int, ...], bytes]]:
    """What tells apart numbers that compare as equal, such as zeros of two signs."""
    return [(a.dtype.str, a.shape, a.tobytes()) for a in map(np.ascontiguousarray, arrays)]


def check(module: ModuleOp, inputs: Sequence[Array]) -> int:
    """Holds every level against itself canonicalised; returns how many levels changed."""
    changed = 0
    for name in ("", *PASSES):
        if name:
            apply(module, name)
        canonical = canonicalised(module)
        changed += not canonical.is_structurally_equivalent(module)
        device = name == PASSES[-1]
        assert bits(run(canonical, inputs, device=device)) == bits(run(module, inputs, device=device)), f"after {name}"
        again = canonicalised(canonical)
        assert again.is_structurally_equivalent(canonical), f"after {name}: it changes what is canonical"
    return changed


def moving(random: Random) -> Program:
    """A program that mostly moves elements, to and fro, with zeros of both signs among them."""
    p = Program(random)
    p.values.append(p.argument(random_shape(random, random.randint(1, 3), most=2000)))
    p.inputs[0].reshape(-1)[:: random.randint(2, 4)] *= 0.0
    for _ in range(random.randint(2, 7)):
        x = p.value()
        rank, way = len(shape_of(x)), random.randrange(8)
        if way == 0:
            made = p.call("clone", x)
        elif way == 1:
            made = p.call("_to_copy", x, dtype="f32")
        elif way == 2 and rank > 1:
            made = p.call("transpose.int", p.call("transpose.int", x, dim0=0, dim1=1), dim0=0, dim1=1)
        elif way == 3:
            made = p.call("add.Tensor", x, random.choice((0, 0.0, -0.0)))
        elif way == 4:
            made = random.choice((unary, binary))(p)
        else:
            made = view(p)
        if made is not None:
            p.values.append(made)
    return p


def check_program(program: Program) -> None:
    module = program.module()
    note(module_text(module))
    try:
        changed = check(module.clone(), program.inputs)
        event(f"{changed} levels changed")
    except (LoweringError, UnsupportedError) as error:
        event(error.message)


@examples(10)
@given(RANDOM)
def test_functions_that_move_elements(random: Random) -> None:
    check_program(moving(random))


@examples(5)
@given(RANDOM)
def test_functions_of_all_kinds(random: Random) -> None:
    check_program(build(random))


def test_most_programs_that_move_elements_change() -> None:
    """The property would hold of a `canonicalize` that does nothing."""
    changed = 0
    for seed in range(12):
        module = moving(Random(seed)).module()
        changed += not canonicalised(module).is_structurally_equivalent(module)
    assert changed >= 6


@pytest.mark.slow(reason="a thousand programs; a few run by default")
@pytest.mark.parametrize("part", range(4))
def test_many_programs(part: int) -> None:
    check_part(lambda random: check_program(moving(random)), part, 300)

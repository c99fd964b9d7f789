"""Shapes at the edge, one by one: each is right on every level, or refused with a message that says what."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from xdsl.ir import SSAValue

from spyre_mlir.errors import LoweringError, UnsupportedError
from tests.property.levels import check_every_level
from tests.property.programs import Program, Shape

Body = Callable[..., SSAValue]


def op(overload: str, **attributes: Any) -> Body:
    return lambda p, *args: p.call(overload, *args, **attributes)


def cat(dim: int) -> Body:
    return lambda p, *args: p.call("cat", list(args), dim=dim)


def first(view: str, then: str, **attributes: Any) -> Body:
    """A view of the first argument, then an op on it and the others."""
    return lambda p, x, *rest: p.call(then, p.call(view, x, **attributes), *rest)


def program(body: Body, shapes: tuple[Shape, ...]) -> Program:
    p = Program(Random(1))
    p.values = [body(p, *[p.argument(s) for s in shapes])]
    return p


RIGHT: dict[str, tuple[Body, tuple[Shape, ...]]] = {
    "rank 10 of ones": (op("neg"), ((1,) * 10,)),
    "eight loops": (op("neg"), ((2,) * 8,)),
    "sum of everything": (op("sum.dim_IntList", dim=(), keepdim=False), ((3,) * 7,)),
    "sum of one": (op("sum.dim_IntList", dim=(0,), keepdim=False), ((1,),)),
    "mean of a number": (op("mean.dim", dim=(), keepdim=False), ((),)),
    "sum of repetitions": (first("expand", "sum.dim_IntList", size=(3, 128)), ((128,),)),
    "largest of repeated rows": (
        lambda p, x: p.call("amax", p.call("expand", x, size=(2, 65, 8)), dim=(2,), keepdim=False),
        ((1, 65, 8),),
    ),
    "product of numbers": (op("matmul"), ((1, 1), (1, 1))),
    "one summed element": (op("matmul"), ((5, 1), (1, 70))),
    "one column": (op("matmul"), ((5, 70), (70, 1))),
    "one row": (op("matmul"), ((1, 70), (70, 70))),
    "five batches": (op("matmul"), ((2, 2, 2, 2, 2, 3, 4), (2, 2, 2, 2, 2, 4, 5))),
    "batches from both sides": (op("matmul"), ((2, 1, 3, 4), (1, 5, 4, 3))),
    "repeated summed element": (first("expand", "matmul", size=(3, 70)), ((3, 1), (70, 4))),
    "repeated row": (first("expand", "matmul", size=(3, 70)), ((1, 70), (70, 5))),
    "a part of the summed loop": (first("slice.Tensor", "matmul", dim=1, start=3, end=73), ((3, 100), (70, 5))),
    "every second summed element": (
        first("slice.Tensor", "matmul", dim=1, start=0, end=140, step=2),
        ((3, 140), (70, 5)),
    ),
    "cat inside a stick": (cat(-1), ((5, 33), (5, 65))),
    "cat of eight": (cat(1), ((3, 7),) * 8),
    "cat with nothing": (cat(1), ((5, 0), (5, 3))),
    "reshape across dimensions": (op("view", size=(130, 2, 64)), ((4, 65, 64),)),
    "matrix plus its transpose": (
        lambda p, x: p.call("add.Tensor", x, p.call("transpose.int", x, dim0=0, dim1=1)),
        ((67, 67),),
    ),
    "numbers alone": (op("arange.start_step", start=2, end=70, step=3), ()),
    "truth as a result": (lambda p, x: p.call("gt.Tensor", x, 0.0), ((5, 70),)),
    "not a truth": (lambda p, x: p.call("logical_not", p.call("gt.Tensor", x, 0.0)), ((5, 70),)),
    "number times truth": (lambda p, x: p.call("mul.Tensor", x, p.call("gt.Tensor", x, 0.0)), ((5, 70),)),
    "a column of indices": (
        lambda p, table: p.call("embedding", table, p.argument((2, 1), rows=10)),
        ((10, 128),),
    ),
    "rows of one index": (
        lambda p, table: p.call("embedding", table, p.argument((1,), rows=100)),
        ((100, 3),),
    ),
    "a part of an index tensor": (
        lambda p, table: p.call(
            "embedding", table, p.call("slice.Tensor", p.argument((6,), rows=5), dim=0, start=2, end=5)
        ),
        ((5, 70),),
    ),
    "every second index": (
        lambda p, table: p.call(
            "embedding", table, p.call("slice.Tensor", p.argument((2, 9), rows=5), dim=1, start=0, end=9, step=2)
        ),
        ((5, 70),),
    ),
    "a narrow table": (
        lambda p, table: p.call("embedding", table, p.argument((3,), rows=5)),
        ((5, 1),),
    ),
    "truths compared": (
        lambda p, x: p.call("eq.Tensor", p.call("gt.Tensor", x, 0.0), p.call("lt.Tensor", x, 1.0)),
        ((5, 70),),
    ),
    "a table of one row": (
        lambda p, table: p.call("embedding", table, p.argument((3,), rows=1)),
        ((1, 130),),
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_on_every_level(name: str) -> None:
    p = program(*RIGHT[name])
    check_every_level(p.module(), p.inputs)


REFUSED: dict[str, tuple[Body, tuple[Shape, ...], str]] = {
    "nine loops": (op("neg"), ((2,) * 9,), "9 loops .* the file format has 8 labels"),
    "nothing": (op("neg"), ((0, 64),), "a tensor without elements"),
    "sum of nothing": (op("sum.dim_IntList", dim=(1,)), ((5, 0),), "a tensor without elements"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_name(name: str) -> None:
    body, shapes, message = REFUSED[name]
    p = program(body, shapes)
    with pytest.raises((LoweringError, UnsupportedError), match=message):
        check_every_level(p.module(), p.inputs)

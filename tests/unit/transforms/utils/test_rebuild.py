"""Function bodies rebuilt op by op: new ops, locations, and errors that are kept until the end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, IntegerAttr, StringAttr, f32, i64
from xdsl.dialects.test import TestOp
from xdsl.ir import Block, Operation, Region, SSAValue

from spyre_mlir.dialects.aten_arguments import ORIGIN
from spyre_mlir.errors import LoweringError, UnsupportedError
from spyre_mlir.hw.sticks import StickError
from spyre_mlir.transforms.utils.rebuild import (
    Emitter,
    Failures,
    describe_location,
    origin_of_aten,
    rebuild,
    tell_origin,
)


def numbered(number: int | None = None, operands: Sequence[SSAValue] = ()) -> TestOp:
    op = TestOp(list(operands), [f32])
    if number is not None:
        op.attributes[ORIGIN] = IntegerAttr(number, i64)
    return op


def function(*ops: Operation) -> func.FuncOp:
    return func.FuncOp("main", ([], []), Region(Block([*ops, func.ReturnOp()])))


def at_line(op: Operation, line: int) -> Operation:
    op.location = FileLineColLoc(StringAttr("model.py"), IntAttr(line), IntAttr(2))
    return op


def test_new_ops_take_location_and_number_of_the_one_at_hand() -> None:
    emitter = Emitter()
    plain = emitter.add(numbered())
    assert str(plain.location) == "loc(unknown)" and ORIGIN not in plain.attributes
    emitter.current = at_line(numbered(7), 3)
    assert describe_location(emitter.add(TestOp())) == describe_location(emitter.current)
    assert origin_of_aten(emitter.ops[1]) == 7
    assert origin_of_aten(emitter.add(numbered(2))) == 2
    emitter.current = at_line(TestOp(), 4)
    assert ORIGIN not in emitter.add(TestOp()).attributes
    assert len(emitter.ops) == 4 and emitter.ops[0] is plain


def test_a_body_is_replaced_in_order() -> None:
    main, emitter = function(at_line(numbered(), 1), at_line(numbered(), 2)), Emitter()
    names = iter(["one", "two", "three"])

    def convert(op: Operation) -> Sequence[SSAValue]:
        made = func.ReturnOp() if isinstance(op, func.ReturnOp) else TestOp()
        made.attributes["name"] = StringAttr(next(names))
        return emitter.add(made).results

    rebuild(main, convert, emitter)
    new = list(main.body.block.ops)
    assert [op.attributes["name"] for op in new] == [StringAttr(n) for n in ("one", "two", "three")]
    assert [describe_location(op) for op in new[:2]] == ['"model.py":1:2', '"model.py":2:2']


def test_an_error_leaves_the_function_as_it_was_and_says_where() -> None:
    bad, tried = at_line(numbered(5), 8), list[Operation]()
    main = function(numbered(4), bad, numbered(6))
    before = list(main.body.block.ops)

    def convert(op: Operation) -> Sequence[SSAValue]:
        tried.append(op)
        if op is bad:
            raise UnsupportedError("no")
        return ()

    with pytest.raises(UnsupportedError, match="no") as met:
        rebuild(main, convert, Emitter())
    assert (met.value.where, met.value.origin, met.value.others) == ('test.op at "model.py":8:2', 5, ())
    assert list(main.body.block.ops) == before and tried == before[:2]


def test_what_a_layout_cannot_say_is_unsupported() -> None:
    def convert(op: Operation) -> Sequence[SSAValue]:
        raise StickError("half a stick")

    with pytest.raises(UnsupportedError, match="half a stick") as met:
        rebuild(function(TestOp()), convert, Emitter())
    assert isinstance(met.value.__cause__, StickError)
    with pytest.raises(UnsupportedError) as met:
        rebuild(function(numbered(1), numbered(2)), convert, Emitter(), lambda op: None)
    assert [e.origin for e in (met.value, *met.value.others)] == [1, 2]


def test_ops_behind_a_failed_one_are_tried_where_the_host_can_stand_in() -> None:
    ops = [numbered(n) for n in (1, 2, 2, 3, 4)]
    main, tried, stood = function(*ops), list[Operation](), list[Operation]()

    def convert(op: Operation) -> Sequence[SSAValue]:
        tried.append(op)
        if origin_of_aten(op) in (2, 4):
            raise LoweringError(f"op {origin_of_aten(op)}")
        return ()

    with pytest.raises(LoweringError, match="op 2") as met:
        rebuild(main, convert, Emitter(), stood.append)
    assert [e.origin for e in met.value.others] == [4]
    # The second op of number 2 is not tried again, and the return is not reached.
    assert tried == [ops[0], ops[1], ops[3], ops[4]]
    assert stood == [ops[1], ops[2], ops[4]]


def test_an_error_of_an_unnumbered_op_ends_it_all() -> None:
    failures, error = Failures(), LoweringError("bad", where="here")
    with pytest.raises(LoweringError) as met:
        failures.meet(error, TestOp())
    assert met.value is error and error.where == "here"
    failures.raise_all()
    assert not failures.know(TestOp())


def test_failures_are_known_by_number_and_raised_as_one() -> None:
    failures, errors = Failures(), [LoweringError("a"), UnsupportedError("b"), LoweringError("c")]
    for number, error in enumerate(errors):
        failures.meet(error, numbered(number))
    assert failures.know(numbered(1)) and not failures.know(numbered(3))
    with pytest.raises(LoweringError) as met:
        failures.raise_all()
    assert met.value is errors[0] and met.value.others == (errors[1], errors[2])


def test_an_error_keeps_the_place_and_the_number_it_has() -> None:
    error = LoweringError("bad")
    tell_origin(error, numbered(3))
    assert (error.where, error.origin) == ("test.op at unknown location", 3)
    tell_origin(error, at_line(numbered(4), 1))
    assert (error.where, error.origin) == ("test.op at unknown location", 3)
    assert origin_of_aten(TestOp(attributes={ORIGIN: StringAttr("x")})) is None

"""Patterns applied to every op once: the order, what they make, and errors."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, IntegerAttr, ModuleOp, StringAttr, f32, i64
from xdsl.dialects.test import TestOp
from xdsl.ir import Block, Operation, Region
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from spyre_mlir.dialects.aten_arguments import ORIGIN
from spyre_mlir.errors import LoweringError
from spyre_mlir.transforms.utils.patterns import apply_once


@dataclass
class Copying(RewritePattern):
    """Puts a copy before every op that has a number, and fails at one."""

    fails_at: int | None = None
    seen: list[int] = field(default_factory=list[int])

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if not isinstance(number := op.attributes.get("number"), IntegerAttr):
            return
        self.seen.append(number.value.data)
        if number.value.data == self.fails_at:
            raise LoweringError("too large")
        copy = op.clone()
        rewriter.insert(copy)


def numbered(number: int) -> TestOp:
    op = TestOp([], [f32], attributes={"number": IntegerAttr(number, i64), ORIGIN: IntegerAttr(10 + number, i64)})
    op.location = FileLineColLoc(StringAttr("model.py"), IntAttr(number), IntAttr(1))
    return op


def module() -> ModuleOp:
    block = Block([*map(numbered, range(3)), func.ReturnOp()])
    return ModuleOp([func.FuncOp("main", ([], []), Region(block))])


@pytest.mark.parametrize(("users_first", "order"), [(False, [0, 1, 2]), (True, [2, 1, 0])])
def test_every_op_is_offered_once(users_first: bool, order: list[int]) -> None:
    pattern, program = Copying(), module()
    apply_once(pattern, program.body, users_first=users_first)
    assert pattern.seen == order
    assert sum(isinstance(op, TestOp) for op in program.walk()) == 6


def test_an_error_ends_the_walk_and_says_where() -> None:
    pattern = Copying(fails_at=1)
    with pytest.raises(LoweringError, match="too large") as caught:
        apply_once(pattern, module().body)
    assert pattern.seen == [0, 1] and caught.value.origin == 11
    assert caught.value.where == 'test.op at "model.py":1:1'
    # xDSL would have added the text of the whole module.
    assert not hasattr(caught.value, "__notes__")

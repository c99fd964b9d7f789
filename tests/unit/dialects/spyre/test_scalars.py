"""Bodies of nests and their table entries, both ways."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import TensorType, f32, i1, i32
from xdsl.dialects.test import TestOp
from xdsl.ir import Block, Region

from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.loop import NestOp, YieldOp, body_function
from spyre_mlir.dialects.spyre.scalars import entry_of, scalar_op
from spyre_mlir.hw.sticks import LinearExpr
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.table import Family, OpEntry

POINTWISE = [e for e in ATEN if e.family is Family.POINTWISE and e.opfunc is not None]


@pytest.mark.parametrize("entry", POINTWISE, ids=lambda e: e.name)
def test_every_pointwise_entry_has_a_scalar_form(entry: OpEntry) -> None:
    arity = sum(p.is_tensor for p in entry.params)
    element = i32 if entry.scalar == "arith.addi" else f32
    block = Block(arg_types=[element] * arity)
    op = scalar_op(entry, list(block.args), i1 if entry.boolean else element)
    block.add_ops([op, YieldOp(operands=[[op.results[0]]])])
    op.verify()
    assert entry_of(op) is entry
    assert body_function(block) is entry


def test_copying_body_has_no_entry() -> None:
    block = Block(arg_types=[f32])
    block.add_op(YieldOp(operands=[[block.args[0]]]))
    assert body_function(block) is None


def test_nest_knows_what_it_reduces() -> None:
    (a,) = TestOp(result_types=[TensorType(f32, [4, 8])]).results
    block = Block(arg_types=[f32])
    block.add_op(YieldOp(operands=[[block.args[0]]]))
    m, n = LinearExpr.of("m"), LinearExpr.of("n")
    nest = NestOp(
        SpaceAttr((IterDim("m", 4), IterDim("n", 8))),
        [a],
        [IndexMapAttr((m, n)), IndexMapAttr((n,))],
        TensorType(f32, [8]),
        Region(block),
        combine="arith.addf",
    )
    nest.verify()
    assert nest.reduced == ("m",)
    assert nest.input_maps == (IndexMapAttr((m, n)),)


COMBINED = ("arith.addf", "arith.maximumf", "arith.minimumf", "arith.mulf", "arith.subf")


def test_combining_operations_are_the_reductions() -> None:
    found = {name: entry.name for name in COMBINED if (entry := ATEN.combiner(name))}
    assert found == {"arith.addf": "sum", "arith.maximumf": "amax", "arith.minimumf": "amin"}

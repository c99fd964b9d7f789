"""Shape ops on tensors: what is written, and nothing where nothing changes."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr, f16
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue

from spyre_mlir.transforms.kernel_to_ktdp.function_builder import Code, shape_of
from spyre_mlir.transforms.kernel_to_ktdp.tensor_ops import cut, inserted, reshaped, transposed

Groups = list[list[int]]


def start(*shape: int) -> tuple[Code, SSAValue]:
    """An empty function, and a tensor that is not of it."""
    return Code({}), Code({}).empty(f16, shape)


def groups(op: tensor.CollapseShapeOp | tensor.ExpandShapeOp) -> Groups:
    return [[d.value.data for d in group] for group in op.reassociation]


RESHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...], list[Groups]]] = {
    "nothing": ((2, 3), (2, 3), []),
    "merging": ((2, 3, 4), (2, 12), [[[0], [1, 2]]]),
    "splitting": ((2, 12), (2, 3, 4), [[[0], [1, 2]]]),
    "both": ((2, 6), (4, 3), [[[0, 1]], [[0, 1]]]),
    "several groups": ((2, 3, 8, 5), (6, 2, 4, 5), [[[0, 1], [2], [3]], [[0], [1, 2], [3]]]),
    "a unit behind": ((6, 1), (6,), [[[0, 1]]]),
    "a new unit behind": ((6,), (6, 1, 1), [[[0, 1, 2]]]),
    "a unit in front": ((6,), (1, 6), [[[0, 1]]]),
    "one element": ((1, 1), (1,), [[[0, 1]]]),
}


@pytest.mark.parametrize("name", RESHAPES)
def test_reshapes_merge_and_split_neighbours(name: str) -> None:
    have, want, wanted = RESHAPES[name]
    code, value = start(*have)
    made = reshaped(code, value, want)
    assert shape_of(made) == want
    found = [groups(op) for op in code.ops if isinstance(op, tensor.CollapseShapeOp | tensor.ExpandShapeOp)]
    assert found == wanted and len(code.ops) == len(wanted)
    for op in code.ops:
        op.verify()


def test_transpositions() -> None:
    code, value = start(2, 3, 4)
    assert transposed(code, value, [0, 1, 2]) is value and code.ops == []
    made = transposed(code, value, [2, 0, 1])
    assert shape_of(made) == (4, 2, 3)
    empty, op = code.ops
    assert isinstance(empty, tensor.EmptyOp) and isinstance(op, linalg.TransposeOp)
    assert list(op.permutation.get_values()) == [2, 0, 1]
    op.verify()


def test_boxes_of_a_tensor() -> None:
    code, value = start(4, 6)
    assert cut(code, value, [0, 0], (4, 6)) is value and code.ops == []
    made = cut(code, value, [1, 2], (2, 3))
    (op,) = code.ops
    assert isinstance(op, tensor.ExtractSliceOp) and shape_of(made) == (2, 3)
    assert list(op.static_offsets.get_values()) == [1, 2] and list(op.static_sizes.get_values()) == [2, 3]
    assert list(op.static_strides.get_values()) == [1, 1]
    op.verify()


def test_starts_are_numbers_where_they_are_known() -> None:
    code, value = start(4, 6)
    known, unknown = code.index(2), code.plus(code.core, code.index(1))
    cut(code, value, [unknown, known], (2, 3))
    op = code.ops[-1]
    assert isinstance(op, tensor.ExtractSliceOp)
    assert list(op.static_offsets.get_values()) == [DYNAMIC_INDEX, 2] and list(op.offsets) == [unknown]


def test_a_box_put_into_a_tensor() -> None:
    code, value = start(2, 3)
    into = Code({}).empty(f16, (4, 6))
    other = Code({}).empty(f16, (2, 3))
    assert inserted(code, value, other, [0, 0]) is value and code.ops == []
    made = inserted(code, value, into, [code.core, 2])
    (op,) = code.ops
    assert isinstance(op, tensor.InsertSliceOp) and shape_of(made) == (4, 6)
    assert (op.source, op.dest, list(op.offsets)) == (value, into, [code.core])
    assert list(op.static_offsets.get_values()) == [DYNAMIC_INDEX, 2]
    assert list(op.static_sizes.get_values()) == [2, 3] and list(op.static_strides.get_values()) == [1, 1]
    op.verify()


def test_constants_of_type_index_are_known_starts() -> None:
    code, value = start(4)
    seven = arith.ConstantOp(IntegerAttr(3, IndexType())).result
    cut(code, value, [seven], (1,))
    op = code.ops[-1]
    assert isinstance(op, tensor.ExtractSliceOp) and list(op.static_offsets.get_values()) == [3]

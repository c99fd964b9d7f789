"""Buffers that products read in batches, and the numbers of the cores that write them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.kernel import ComputeOp
from spyre_mlir.dialects.superdsc import SdscOp
from spyre_mlir.dialects.superdsc.model.descriptor import core_slices
from spyre_mlir.frontend import import_program
from spyre_mlir.options import CompileOptions, PassOptions
from spyre_mlir.pipeline import lower
from spyre_mlir.transforms.buffer_layouts import order_batches
from spyre_mlir.transforms.kernel_to_superdsc.descriptors import describe_kernel
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel

HEADS, SHARED, ROWS, HEAD = 16, 8, 256, 128


def attend(x: Tensor, q: Tensor, k: Tensor, v: Tensor, cos: Tensor) -> Tensor:
    """Attention of projections, heads being columns of each; queries and keys are scaled by row, as rotations do."""
    shape = (1, ROWS, -1, HEAD)
    queries, keys, values = ((x @ w).view(shape).transpose(1, 2) for w in (q, k, v))
    return functional.scaled_dot_product_attention(queries * cos, keys * cos, values, enable_gqa=True)


def inputs() -> tuple[Tensor, ...]:
    """Rows of 1,024 features, weights of the heads, and a factor for each element of a head."""
    generator = torch.Generator().manual_seed(1)
    shapes = (1, ROWS, 1024), (1024, HEADS * HEAD), *[(1024, SHARED * HEAD)] * 2, (ROWS, HEAD)
    return tuple((torch.randn(*shape, generator=generator) / 8).half() for shape in shapes)


def products(module: object) -> list[ComputeOp]:
    """The products of a module at the kernel level."""
    walked = module.walk()  # type: ignore[attr-defined]
    return [op for op in walked if isinstance(op, ComputeOp) and op.is_product]


def test_values_lie_as_their_product_reads_them() -> None:
    """Without the pass their rows are outermost, and heads inside of them."""
    module = import_program(FunctionModel(attend), inputs()).module
    lowered = lower(module, make_context(), until="spyre.kernel").modules["spyre.kernel"]
    *_, last = products(lowered)
    assert last.tensors[1].layout.order == (2, 1, 0)
    assert last.tensors[1].shape == (1, ROWS, SHARED * HEAD)


def test_batches_lie_outside_of_heads_that_are_columns() -> None:
    """A head's columns of keys are rows of the product of scores: 4 batches lay between them and their neighbours."""

    def scores(x: Tensor, q: Tensor, w: Tensor) -> Tensor:
        keys = torch.relu(x @ w).view(4, ROWS, 4, 64).transpose(1, 2)
        return functional.softmax(q @ keys.transpose(2, 3), -1)

    shapes = (4, ROWS, 256), (4, 4, ROWS, 64), (256, 256)
    module = import_program(FunctionModel(scores), tuple(torch.zeros(*shape).half() for shape in shapes)).module
    lowered = lower(module, make_context(), until="spyre.kernel").modules["spyre.kernel"]
    keys = products(lowered)[-1].tensors[1]
    assert (keys.shape, keys.layout.stick) == ((4, ROWS, 256), 1)
    assert keys.layout.order == (0, 2, 1)


def test_buffers_stay_as_they_are_if_the_rate_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other order is tried, as none can be quicker."""
    tried = list[object]()
    monkeypatch.setattr(order_batches, "_quicker_ns", lambda *asked: tried.append(asked) or 0.0)
    rates = ("pe_batched", "pe_batched_one_input", "pe_batched_result")
    numbers = tuple(f"{rate}_mac_per_ns_per_core=1140" for rate in rates)
    module = import_program(FunctionModel(attend), inputs()).module
    options: PassOptions = {"order-batches": {"numbers": numbers}}
    lowered = lower(module, make_context(), until="spyre.kernel", options=options).modules["spyre.kernel"]
    assert products(lowered)[-1].tensors[1].layout.order != (2, 1, 0)
    assert tried == []


def test_projections_stay_in_the_scratchpads() -> None:
    """The products of queries and keys number their cores along the columns, as the scaling by row takes heads."""
    program = import_program(FunctionModel(attend), inputs())
    levels = lower(program.module, make_context())
    first = products(levels.modules["spyre.kernel"])[0]
    assert [d.name for d in first.space.data][:2] == ["n", "m"]
    assert first.tensors[-1].space == "lx"
    placed = describe_kernel(first, 0).descriptor
    assert [dim.label for dim in placed.dims] == ["mb", "out", "in"]
    assert placed.slices
    assert placed.slices != core_slices(placed.dims, placed.op_class)
    assert (placed.slices[1]["out"], placed.slices[1]["mb"]) == (1, 0)
    assert any(isinstance(op, SdscOp) for op in levels.modules["superdsc"].walk())
    made = CompiledModel(program, levels, CompileOptions())
    assert (outcome := made.verify(*inputs())), str(outcome)

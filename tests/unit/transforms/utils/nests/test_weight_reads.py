"""How products are found to read weights of few bits."""

from __future__ import annotations

import torch
from torch import Tensor

from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.frontend import import_program
from spyre_mlir.pipeline import lower
from spyre_mlir.transforms.utils.nests.weight_reads import WeightRead, weight_reads
from spyre_mlir.universe import make_context
from tests.unit.transforms.levels import ops
from tests.unit.transforms.test_pack_weights import Layer, by_group, by_row, of_some_columns, stored_by_columns


def reads(model: Layer, x: Tensor) -> list[WeightRead]:
    modules = lower(import_program(model, (x,)).module, make_context(), options={"pack-weights": {"enabled": False}})
    return [read for nest in ops(modules.modules["spyre.loop"], NestOp) for read in weight_reads(nest)]


def test_the_sum_is_found_before_the_columns() -> None:
    x = torch.zeros(2, 128).half()
    summed, columns = reads(Layer(by_row, 256, 128, 8, (256, 1)), x)
    assert (summed.is_summed, summed.extent, summed.dim) == (True, 128, 1)
    assert (columns.is_summed, columns.extent, columns.dim) == (False, 256, 0)
    summed, columns = reads(Layer(stored_by_columns, 128, 256, 8, (1,)), x)
    assert (summed.extent, summed.dim, columns.extent, columns.dim) == (128, 0, 256, 1)


def test_a_loop_over_groups_stands_for_as_many_columns_as_a_group_has() -> None:
    summed, columns = reads(Layer(by_group, 256, 128, 4, (256, 4)), torch.zeros(2, 128).half())
    assert [step.each for step in summed.chain] == [1, 32, 32, 32]
    assert [step.each for step in columns.chain] == [1, 1, 1, 1]


def test_a_read_of_some_columns_is_not_whole() -> None:
    found = reads(Layer(of_some_columns, 256, 128, 8, (1,)), torch.zeros(2, 128).half())
    assert not any(read.is_whole for read in found)

"""A tile of attention, block by block, against torch's attention."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

import spyre_mlir
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.frontend import import_program
from spyre_mlir.frontend.reference.tiled_attention import AttentionTile, tile_call
from tests.unit.transforms.levels import ops


@pytest.mark.parametrize("blocks", [1, 2, 4])
@pytest.mark.parametrize("shape", [(1, 1, 1, 16, 128), (1, 2, 3, 1, 128), (1, 1, 1, 16, 1)])
def test_blocks_give_torchs_attention(blocks: int, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    query = torch.randn(1, 2, 3, 16, 64)
    key, value = torch.randn(1, 2, 128, 64), torch.randn(1, 2, 128, 64)
    mask = torch.randn(shape)
    expected = scaled_dot_product_attention(query, key[:, :, None], value[:, :, None], mask, scale=0.25)
    torch.testing.assert_close(AttentionTile(blocks, 0.25)(query, key, value, mask), expected)


def test_every_level_is_eager() -> None:
    torch.manual_seed(0)
    inputs = (torch.randn(1, 2, 2, 16, 64), *(torch.randn(1, 2, 128, 64) for _ in range(2)))
    assert spyre_mlir.compile(AttentionTile(2, 0.125), inputs).verify(*inputs)


def test_its_program_has_two_products_for_each_block() -> None:
    module = import_program(*tile_call((1, 2, 2, 16, 64), 256, [(1, 1, 1, 16, 256)], blocks=4, scale=0.125)).module
    assert sum(op.overload == "matmul" for op in ops(module, AtenOp)) == 8

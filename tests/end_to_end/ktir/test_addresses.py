"""KTIR and SuperDSC name the same bytes: what a core's tiles cover is what the decoder reads from the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.ktdp import ConstructAccessTileOp, ConstructMemoryViewOp, GetComputeTileIdOp
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel
from tests.oracles.superdsc_decoder import Decoder
from tests.unit.transforms.test_convert_spyre_kernel_to_ktdp import CASES


def value_of(value: Any, core: int) -> int:
    """An index that a core computes, from the text of the program."""
    op = value.owner
    match op:
        case GetComputeTileIdOp():
            return core
        case arith.ConstantOp():
            return op.value.value.data  # pyright: ignore
        case arith.MuliOp():
            return value_of(op.lhs, core) * value_of(op.rhs, core)
        case arith.DivUIOp():
            return value_of(op.lhs, core) // value_of(op.rhs, core)
        case arith.RemUIOp():
            return value_of(op.lhs, core) % value_of(op.rhs, core)
        case _:
            raise AssertionError(op)


def touched(tile: ConstructAccessTileOp, core: int) -> set[int]:
    """Bytes of the buffer, from its start, at which a core's tile has elements."""
    view = tile.view.owner
    assert isinstance(view, ConstructMemoryViewOp)
    starts = [value_of(i, core) for i in tile.indices]
    grids = np.ix_(*(s + np.arange(e) for s, e in zip(starts, tile.result.type.shape, strict=True)))
    strides = [s for s in view.mixed_strides if isinstance(s, int)]
    return set((2 * sum(g * s for g, s in zip(grids, strides, strict=True))).reshape(-1).tolist())


@pytest.mark.parametrize("name", ["bias", "matmul", "sum_off_the_stick", "matmul_split"])
def test_cores_touch_the_bytes_that_their_superdsc_names(name: str, tmp_path: Path) -> None:
    function, inputs, _ = CASES[name]
    model = spyre_mlir.compile(FunctionModel(function), inputs, addresses="concrete")
    assert isinstance(model, CompiledModel)
    files = sorted(model.save(tmp_path / "bundle").glob("sdsc_*.json"))
    decoder = Decoder(json.loads(files[0].read_text()))
    module = parse_module(model.ktir().encode(), make_context(), name)
    tiles = [op for op in next(iter(module.ops)).walk() if isinstance(op, ConstructAccessTileOp)]
    count = len(decoder.operands) if len(files) == 1 else 1
    for operand in range(count):
        for core in decoder.cores:
            _, addresses = decoder.addresses(operand, core)
            wanted = {int(a) % (16 * 1024**3) for a in np.asarray(addresses).reshape(-1)}
            assert touched(tiles[operand], core) == wanted, (operand, core)

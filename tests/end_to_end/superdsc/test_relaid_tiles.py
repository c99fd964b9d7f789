"""A change of sticks inside a loop: it works on a part of a buffer, and the file says so in one way only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn
from xdsl.dialects.builtin import i1

import spyre_mlir
from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.dialects.tensors import element_of
from spyre_mlir.transforms.buffer_layouts.choose_layouts import ChooseLayoutsPass
from spyre_mlir.transforms.buffer_layouts.order_batches import OrderBatchesPass
from spyre_mlir.transforms.loop_to_kernel import choose_lane, later_reads, lowering
from spyre_mlir.transforms.loop_to_kernel.data_formats import cast
from spyre_mlir.transforms.loop_to_kernel.layout_planner import LayoutPlanner
from tests.oracles.superdsc_decoder import Decoder

HEADS, WIDTH, LENGTH = 4, 8, 16


class RelativeScores(nn.Module):
    """Scores of attention, and scores of positions that each key picks, as in DeBERTa."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(HEADS * WIDTH, HEADS * WIDTH), nn.Linear(HEADS * WIDTH, HEADS * WIDTH)
        self.positions = nn.Parameter(torch.randn(LENGTH, HEADS * WIDTH))

    def forward(self, x: torch.Tensor, picked: torch.Tensor) -> torch.Tensor:
        query, key = heads(self.query(x)), heads(self.key(x))
        positions = heads(self.query(self.positions)[None]).repeat(len(x), 1, 1)
        found = torch.gather(key @ positions.transpose(1, 2), -1, picked.expand(len(key), LENGTH, LENGTH))
        return query @ key.transpose(1, 2) + found.transpose(1, 2)


def heads(x: torch.Tensor) -> torch.Tensor:
    return x.view(-1, LENGTH, HEADS, WIDTH).transpose(1, 2).reshape(-1, LENGTH, WIDTH)


def gaps_of_restickifies(directory: Path) -> list[tuple[set[str], dict[str, dict[int, int]]]]:
    """Per change of sticks with gaps: the dims in sticks, and the gaps of each dim."""
    files = (json.loads(path.read_text()) for path in directory.glob("sdsc_*.json"))
    # Addresses are not asked for: any number stands for a symbol.
    decoders = [Decoder(one, {-number: 0 for number in range(1, 1 << 12)}) for one in files if "ReStick" in str([*one])]
    found = [
        ({operand.stick for operand in one.operands}, {d: dict(g) for o in one.operands for d, g in o.gaps.items()})
        for one in decoders
    ]
    return [(sticks, gaps) for sticks, gaps in found if gaps]


def copied(p: LayoutPlanner, op: NestOp) -> bool:
    """A cast as usual, but truth values that become numbers are copied: with that kernel the plan has a loop."""
    return element_of(op.inputs[0]) != i1 and cast(p, op)


def test_a_loop_over_a_batch_relays_a_part_of_a_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lowering, "cast", copied)
    monkeypatch.setattr(OrderBatchesPass, "apply", lambda *_: None)
    for module in (later_reads, choose_lane):  # changes of sticks are cheap: the plan has one in a loop
        monkeypatch.setattr(module, "weight_of", lambda _form, _relaid: 1.0)
    monkeypatch.setattr(ChooseLayoutsPass, "_repaired", lambda *given: given[-1])
    monkeypatch.setenv("SPYRE_MLIR_CACHE", "off")
    torch.manual_seed(0)
    model = RelativeScores().eval()
    inputs = torch.randn(2, LENGTH, HEADS * WIDTH), torch.randint(0, LENGTH, (1, LENGTH, LENGTH))
    compiled = spyre_mlir.compile(model, inputs, numerics="exact")
    # One of two elements of the batch, which is in no stick: nothing pads it, so it can only be a part.
    assert gaps_of_restickifies(Path(compiled.bundle_directory())) == [({"y", "out"}, {"mb": {-1: 1}})]
    torch.testing.assert_close(compiled(*inputs), model(*inputs), rtol=1e-4, atol=1e-4)

"""A change of sticks inside a loop: it works on a part of a buffer, and the file says so in one way only."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import nn

import spyre_mlir
from tests.oracles.superdsc_decoder import Decoder


class Scores(nn.Module):
    """A product in a loop over its batch of two, whose second factor is laid out again in the loop."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        with spyre_mlir.hint(tile={0: 2}):
            return torch.neg(x) @ y.transpose(1, 2)


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


def test_a_loop_over_a_batch_relays_a_part_of_a_buffer() -> None:
    torch.manual_seed(0)
    inputs = torch.randn(2, 64, 64), torch.randn(2, 64, 64)
    compiled = spyre_mlir.compile(Scores(), inputs, numerics="exact", cache=False)
    # One of two elements of the batch, which is in no stick: nothing pads it, so it can only be a part.
    assert gaps_of_restickifies(Path(compiled.bundle_directory())) == [({"x", "out"}, {"mb": {-1: 1}})]
    torch.testing.assert_close(compiled(*inputs), Scores()(*inputs), rtol=1e-4, atol=1e-4)

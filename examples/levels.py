"""Prints a small model at every level, or at the one named: `python examples/levels.py spyre.kernel`."""

from __future__ import annotations

import sys

import torch

import spyre_mlir

LEVELS = ("aten", "spyre.loop", "spyre.kernel", "superdsc")


class Head(torch.nn.Module):
    """A softmax over the scores of a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.scores = torch.nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Probabilities [rows, 10] of features [rows, 64]."""
        return torch.softmax(self.scores(x), dim=-1)


def main() -> int:
    torch.manual_seed(0)
    compiled = spyre_mlir.compile(Head(), (torch.randn(4, 64),))
    for level in sys.argv[1:] or LEVELS:
        print(f"// {level}\n{compiled.mlir(level)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

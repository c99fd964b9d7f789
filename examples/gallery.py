"""Writes a page, a picture and a trace of each kind for two forms of one model: `python examples/gallery.py DIRECTORY`.

The site shows them: docs/gallery.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import nn

import spyre_mlir
from spyre_mlir.report.models.graph import svg


class Attention(nn.Module):
    """Attention over tokens whose keys are kept turned if `turned`, which costs a change of layout."""

    def __init__(self, width: int, *, turned: bool) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.turned = turned

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Tokens [rows, width] from tokens [rows, width]."""
        query, key, value = self.query(x), self.key(x), self.value(x)
        if self.turned:
            scores = (key @ query.transpose(0, 1)).softmax(0).transpose(0, 1)
        else:
            scores = (query @ key.transpose(0, 1)).softmax(-1)
        return scores @ value


class Layer(nn.Module):
    """A layer of a transformer."""

    def __init__(self, width: int, *, turned: bool) -> None:
        super().__init__()
        self.attention = Attention(width, turned=turned)
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Tokens [rows, width] from tokens [rows, width]."""
        x = self.norm(x + self.attention(x))
        return x + self.down(nn.functional.gelu(self.up(x)))


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "gallery")
    folder.mkdir(parents=True, exist_ok=True)
    x = torch.randn(256, 128, generator=torch.Generator().manual_seed(0))
    reports = []
    for name, turned in (("turned", True), ("straight", False)):
        torch.manual_seed(0)
        model = nn.Sequential(*(Layer(128, turned=turned) for _ in range(2))).eval()
        compiled = spyre_mlir.compile(model, (x,))
        checks = {"accuracy": compiled.accuracy(x), "verification": compiled.verify(x)}
        reports.append(compiled.report(folder / f"{name}.html", **checks))
        compiled.trace(folder / f"{name}.trace.json")
        (folder / f"{name}.svg").write_text(svg(spyre_mlir.info(model, (x,)).graph), encoding="utf-8")
        compiled.graphs().save(folder / f"{name}-graphs")
    reports[0].compare(reports[1]).page(folder / "comparison.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The page of scaling: of each number of cards the slowest card, compared with one card."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import scaling_page


def card(rank: int, kernels_us: float, link_us: float = 0.0, room: int = 100) -> dict[str, float]:
    return {
        "rank": rank,
        "device_bytes": room,
        "kernels_us": kernels_us,
        "collectives": 2,
        "link_bytes": 3e6,
        "link_us": link_us,
    }


def test_the_slowest_card_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = [[card(0, 8000.0)], [card(0, 1000.0), card(1, 4000.0, 1000.0, room=200)]]
    file = tmp_path / "cards.json"
    file.write_text(json.dumps({"decode": {"layers": 2, "compile_seconds": 1, "card_bytes": 150, "counts": counts}}))
    monkeypatch.setattr(scaling_page, "NUMBERS", file)
    one, two = (line for line in scaling_page.scaling_page().splitlines() if line.startswith(("| 1 ", "| 2 ")))
    assert one == "| 1 | 100 | yes | 8.0 | 2 | 3.0 | 0.00 | 8.0 | 1.00 | 100% |"
    assert two == "| 2 | 200 | no | 4.0 | 2 | 3.0 | 1.00 | 5.0 | 1.60 | 80% |"

"""The report's table of kernels."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.machine.bundle.schedule import Schedule, source_line
from spyre_mlir.machine.bundle.timeline import make_timeline
from spyre_mlir.report.timing import three_digits, timing_text

LINE = 1 + Path(__file__).read_text(encoding="utf-8").splitlines().index("        return self.linear(x).relu()")


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(256, 128)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x).relu()


def test_a_report_names_time_bound_bytes_and_source() -> None:
    compiled = spyre_mlir.compile(Model(), (torch.zeros(64, 256),))
    report = compiled.report()
    assert report.timeline is not None and report.timeline.total_us > 0
    text = str(report)
    line = next(line for line in text.splitlines() if "batchmatmul" in line)
    # 64 x 256, 256 x 128 and 64 x 128 numbers of two bytes, in MB.
    assert (
        "64x128x256" in line and "memory" in line and " 0.115 " in line and line.split()[-1] == f"test_timing.py:{LINE}"
    )
    assert "roofline" in text and "if cores loaded their own copies" in text and "least certain" in text
    peak = compiled.report(profile="peak").timeline
    assert peak is not None and peak.total_us < report.timeline.total_us


def test_only_the_longest_kernels_are_shown() -> None:
    compiled = spyre_mlir.compile(Model(), (torch.zeros(64, 256),))
    timeline = compiled.report().timeline
    assert timeline is not None
    text = timing_text(timeline, shown=1)
    kernels = text.partition("time by function")[0]
    assert "batchmatmul" in kernels and "relu" not in kernels
    assert len(timeline.kernels) == 3 and "and 2 shorter kernels" in text


def test_an_empty_bundle() -> None:
    text = timing_text(make_timeline(Schedule(())))
    assert (
        "time: 0.00 us for 0 kernels; without transfers between host and device\n" in text
        and "bottleneck: none" in text
    )


class Waves(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.special.bessel_j1(torch.special.bessel_j0(x + 1)) * x


def test_what_the_predicted_time_leaves_out_stands_beside_it(tmp_path: Path) -> None:
    x = torch.zeros(64, 64)
    compiled = spyre_mlir.compile(Waves(), (x,), host_fallback="allow")
    # x is sent once, and the product brought back: 8 KiB each. As much for the sum and for what the host makes of it.
    told = (
        "without transfers between host and device (16.4 kB) of inputs and results, "
        "and the unknown time that 2 host steps take"
    )
    report = compiled.report(tmp_path / "page.html")
    text = str(report)
    line = next(line for line in text.splitlines() if line.startswith("time: "))
    assert line.startswith("time: at least ") and line.endswith(f"; {told}")
    assert [row.split()[:4] for row in text.splitlines() if row.lstrip().startswith("host ")] == [
        ["host", "aten.special_bessel_j0", "unknown", "host"],
        ["host", "aten.special_bessel_j1", "unknown", "host"],
    ]
    page = (tmp_path / "page.html").read_text()
    assert told in page and "at least 0" in page and '<td class="n">unknown</td>' in page
    timeline = report.timeline
    assert timeline is not None and timeline.is_lower_bound
    # PCIe 5.0 x16: 32 GT/s on 16 lanes, 128 of 130 bits, is 63.0 GB/s.
    assert timeline.total_us - timeline.kernels_us == pytest.approx(16_384 / (32 * 16 * 128 / 130 / 8) / 1000, rel=1e-3)
    assert [step.moved_bytes for step in timeline.host_steps] == [8192, 8192]
    plain = str(spyre_mlir.compile(torch.nn.ReLU(), (x,)).report())
    assert "at least" not in plain
    assert "; without transfers between host and device (16.4 kB)\n" in plain


def test_source_lines() -> None:
    assert source_line('loc("l"("/home/me/model.py":12:0))') == "model.py:12"
    assert source_line("loc(unknown)") == ""


def test_three_digits() -> None:
    assert list(map(three_digits, (0, 0.00123, 0.0983, 1.5, 46.99, 198, 8998.4))) == [
        "0.00", "0.00123", "0.0983", "1.50", "47.0", "198", "8998"
    ]  # fmt: skip

"""Sentences on planted models: each names its cause, where it is, what it costs and what to try."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.machine.bundle.schedule import Schedule
from spyre_mlir.machine.bundle.timeline import Timeline, make_timeline
from spyre_mlir.report.advice import Advice, advice
from spyre_mlir.report.shares import moving_us


class Turning(nn.Module):
    """Transposes between every two steps."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = x.softmax(-1).transpose(-1, -2)  # turned here
        return x


class Straight(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.exp() + 1


class Asking(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.special.bessel_j1(x.exp()) + 1


def line_of(text: str) -> int:
    with open(__file__, encoding="utf-8") as lines:
        return next(number for number, line in enumerate(lines, 1) if text in line)


def timeline(model: nn.Module, *shape: int, **options: str) -> Timeline:
    return spyre_mlir.compile(model.eval(), (torch.zeros(shape),), **options).timeline()


def found(timeline: Timeline, words: str) -> Advice:
    (one,) = [one for one in advice(timeline) if words in one.cause]
    return one


def test_a_model_that_transposes_everywhere_is_told_so() -> None:
    slow = timeline(Turning(), 512, 512)
    one = found(slow, "only rearranges data")
    assert one.us == pytest.approx(moving_us(slow))
    assert one.us > 0.1 * slow.kernels_us
    assert f"test_advice.py:{line_of('# turned here')}" in one.cause
    assert f"{one.us / slow.kernels_us:.0%} of the time" in one.cause
    assert "try: leave the last dimension in its place" in str(one)


class Both(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.add, self.turn = nn.Softplus(), Turning()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.turn(self.add(x))


def test_the_module_is_the_one_that_rearranges() -> None:
    # A program from a file knows the line of the outermost call alone.
    model = torch.export.export(Both().eval(), (torch.zeros(512, 512),))
    for node in model.graph.nodes:
        if trace := node.meta.get("stack_trace"):
            node.meta["stack_trace"] = f'  File "model.py", line 5, in forward\n    {trace.splitlines()[-1]}\n'
    slow = spyre_mlir.compile(model).timeline()
    assert "for model.py:5 (turn)" in found(slow, "only rearranges data").cause


def test_page_and_json_have_the_sentences_of_the_terminal(tmp_path: Path) -> None:
    model = spyre_mlir.compile(Turning().eval(), (torch.zeros(512, 512),))
    assert isinstance(model, spyre_mlir.CompiledModel)
    report = model.report(tmp_path / "page.html")
    sentences = json.loads(report.json())["advice"]
    cause, _, hint = next(s for s in sentences if "only rearranges data" in s).partition("\n  try: ")
    assert f"test_advice.py:{line_of('# turned here')}" in cause
    for text in (str(report), (tmp_path / "page.html").read_text()):
        assert cause in text and hint in text


def test_a_model_without_cause_gets_no_advice() -> None:
    assert advice(timeline(Straight(), 2048, 512)) == []


def test_few_cores() -> None:
    assert "fewer than half of the 32 cores" in found(timeline(Straight(), 1, 64), "cores").cause


def test_host_steps() -> None:
    one = found(timeline(Asking(), 512, 512, host_fallback="allow"), "on the host")
    assert one.cause.startswith("1 step runs on the host")
    assert one.us > 0


def test_nothing_takes_no_time() -> None:
    assert advice(make_timeline(Schedule(()))) == []

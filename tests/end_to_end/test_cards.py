"""Cards other than the standard one: a program compiled for 64 cores verifies, is checked, and runs from disk."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from pathlib import Path

import pytest
import torch

import spyre_mlir
from spyre_mlir.backend.stored import read_bundle
from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.dialects.target import spec_at
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.text.render import parse_module, verify_module
from spyre_mlir.universe import make_context

LARGE = replace(SPYRE, cores_per_card=64)


@pytest.fixture(scope="module")
def compiled() -> tuple[spyre_mlir.CompiledModel, torch.Tensor]:
    torch.manual_seed(0)
    x = torch.randn(4096, 64)
    model = spyre_mlir.compile(torch.nn.Linear(64, 64).eval(), (x,), spec=LARGE, numerics="exact")
    assert isinstance(model, spyre_mlir.CompiledModel)
    return model, x


def test_every_level_runs_and_agrees(compiled: tuple[spyre_mlir.CompiledModel, torch.Tensor]) -> None:
    model, x = compiled
    assert model.verify(x)


def test_kernels_use_all_cores_and_their_text_verifies(
    compiled: tuple[spyre_mlir.CompiledModel, torch.Tensor],
) -> None:
    text = compiled[0].mlir("spyre.kernel")
    module = parse_module(text, make_context())
    verify_module(module)
    assert max(prod(d.split for d in op.space.data) for op in module.walk() if isinstance(op, KernelOp)) == 64
    assert "spyre.target = #spyre.target<cores_per_card = 64>" in text


def test_a_stored_bundle_names_its_card_and_breaks_no_rule(
    compiled: tuple[spyre_mlir.CompiledModel, torch.Tensor], tmp_path: Path
) -> None:
    saved = compiled[0].save(tmp_path / "bundle")
    assert spyre_mlir.check(saved) == ()
    assert spec_at(read_bundle(saved, make_context()).bundle) == LARGE


def test_the_predicted_time_is_that_of_the_card(compiled: tuple[spyre_mlir.CompiledModel, torch.Tensor]) -> None:
    timeline = compiled[0].timeline()
    assert timeline.spec == LARGE
    assert timeline.core_use <= 1
    assert timeline.roofline_us <= timeline.total_us


def test_the_standard_card_refuses_the_same_kernels(
    compiled: tuple[spyre_mlir.CompiledModel, torch.Tensor],
) -> None:
    text = compiled[0].mlir("spyre.kernel").replace("spyre.target = #spyre.target<cores_per_card = 64>", "")
    module = parse_module(text.replace(", ,", ",").replace(", }", "}"), make_context())
    with pytest.raises(Exception, match="divided over 64 cores, the card has 32"):
        verify_module(module)

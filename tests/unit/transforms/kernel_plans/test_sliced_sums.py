"""Sums along rows in two steps: where they pay, that the results stay right, and which sums stay whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from xdsl.dialects.builtin import f16
from xdsl.ir import Block

from spyre_mlir.backend.check import check_path
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.kernel import ComputeOp
from spyre_mlir.frontend import import_program
from spyre_mlir.options import CompileOptions
from spyre_mlir.pipeline import Lowered, lower
from spyre_mlir.report.timing import module_timeline
from spyre_mlir.transforms import plan
from spyre_mlir.transforms.kernel_plans import sliced_sums
from spyre_mlir.transforms.kernel_plans.divided_blocks import kernels_in
from spyre_mlir.transforms.kernel_plans.kernel_choices import KernelChoices
from spyre_mlir.transforms.kernel_plans.sliced_sums import SlicedSum, summed_columns
from spyre_mlir.transforms.plan_notes.kernel_forms import KernelForms
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel
from tests.unit.transforms.levels import ops


class Layer(nn.Module):
    """A residual connection around a linear layer, the norm behind it, and a linear layer of both."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.norm = nn.RMSNorm(width, eps=1e-5)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.first(x)
        return x + self.second(self.norm(x))


def sums(levels: Lowered) -> list[ComputeOp]:
    return [op for op in ops(levels.modules["spyre.kernel"], ComputeOp) if op.function_name == "sum"]


def always(parts: int) -> Callable[[Block, KernelChoices, KernelForms], None]:
    """Put every sum that may be in two steps in two."""

    def sliced(block: Block, choices: KernelChoices, _: KernelForms) -> None:
        for op in kernels_in(block):
            if isinstance(op, ComputeOp) and (loop := summed_columns(op)) is not None:
                made = SlicedSum.put(op, loop, parts)
                for step in made.kernels:
                    choices.divide(step)
                made.keep()

    return sliced


MODELS: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "norm": (Layer(512), (1, 64, 512)),
    "matrix": (FunctionModel(lambda x: x / x.sum(-1, keepdim=True)), (96, 256)),
    "dropped dimension": (FunctionModel(lambda x: x.sum(-1)), (2, 96, 256)),
    "heads": (FunctionModel(lambda x: (x.exp() / x.exp().sum(-1, keepdim=True)).mT), (2, 3, 64, 256)),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_two_steps_give_torchs_sum(
    name: str, dtype: torch.dtype, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, shape = MODELS[name]
    x = (0.25 + torch.rand(*shape, generator=torch.Generator().manual_seed(3))).to(dtype)
    program = import_program(model.to(dtype), (x,))
    monkeypatch.setattr(plan, "slice_sums", always(4))
    levels = lower(program.module, make_context())
    assert len(sums(levels)) == 2
    made = CompiledModel(program, levels, CompileOptions())
    assert (outcome := made.verify(x)), str(outcome)
    assert made.accuracy(x).worst < 0.01
    made.save(tmp_path / "bundle")
    assert [f for f in check_path(tmp_path / "bundle", make_context()) if f.severity == "error"] == []


def large() -> Lowered:
    with torch.device("meta"):
        model, x = Layer(4096).half(), torch.empty(1, 512, 4096).half()
    return lower(import_program(model, (x,)).module, make_context())


def test_a_norm_behind_a_product_takes_less_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """512 x 4096 squares are neither written nor read: 8.4 MB of device memory, which takes 56 us at 150 GB/s."""
    after = large()
    monkeypatch.setattr(plan, "slice_sums", lambda block, choices, forms: None)
    before = large()
    assert (len(sums(before)), len(sums(after))) == (1, 2)
    first, second = sums(after)
    # Cores have columns of the squares in their scratchpads; sums of parts alone go from core to core.
    assert [first.tensors[0].space, first.tensors[1].space] == ["lx", "hbm"]
    assert first.tensors[1].shape[-1] == second.space.extents["r"] in (4, 8)
    times = [module_timeline(levels.modules["superdsc"], "calibrated").total_us for levels in (before, after)]
    assert 30 < times[0] - times[1] < 75


@pytest.mark.parametrize("gains", [4, 8])
def test_more_parts_are_tried_where_few_do_not_gain(monkeypatch: pytest.MonkeyPatch, gains: int) -> None:
    asked = list[int]()

    def tried(_us: float, _op: ComputeOp, _loop: str, parts: int, *_: object) -> bool:
        asked.append(parts)
        return parts == gains

    monkeypatch.setattr(sliced_sums, "_takes_at_most", tried)
    assert sums(large())[1].space.extents["r"] == gains
    assert asked == [4, 8][: gains // 4]


@pytest.mark.parametrize("rows", [64, 512])
def test_sums_of_rows_that_one_core_has_stay_whole(rows: int) -> None:
    """A softmax has its rows on one core throughout; short kernels have too little to gain."""
    with torch.device("meta"):
        model, x = nn.Softmax(-1), torch.empty(rows, 4096).half()
    assert len(sums(lower(import_program(model, (x,)).module, make_context()))) == 1


@pytest.mark.parametrize(("rows", "width"), [(64, 512), (512, 4032), (65536, 1024)])
def test_sums_that_cannot_gain_are_not_priced(monkeypatch: pytest.MonkeyPatch, rows: int, width: int) -> None:
    """What is summed takes less than a microsecond of device memory, has no four parts of whole sticks, or no room."""
    monkeypatch.setattr(sliced_sums, "_priced", lambda *asked: pytest.fail(f"priced: {asked}"))
    with torch.device("meta"):
        model, x = Layer(width).half(), torch.empty(1, rows, width).half()
    assert len(sums(lower(import_program(model, (x,)).module, make_context(), until="spyre.kernel"))) == 1


def test_a_sum_in_two_steps_is_rounded_once_and_can_be_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[tuple[str, str]]()

    def tried(block: Block, choices: KernelChoices, _: KernelForms) -> None:
        for op in kernels_in(block):
            if isinstance(op, ComputeOp) and (loop := summed_columns(op)) is not None:
                op.element = f16  # as where exact numerics know the type of eager's sum
                before = str(block.parent_op())
                made = SlicedSum.put(op, loop, 8)
                assert str(block.parent_op()) != before
                assert [step.element for step in made.kernels if isinstance(step, ComputeOp)] == [None, f16]
                made.undo()
                seen.append((before, str(block.parent_op())))

    monkeypatch.setattr(plan, "slice_sums", tried)
    large()
    assert len(seen) == 1
    assert seen[0][0] == seen[0][1]

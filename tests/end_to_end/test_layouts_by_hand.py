"""Programs that are printed with their layouts, read again and lowered further, as they are or changed by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import nn
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from spyre_mlir.dialects.spyre.layout_choices import LAYOUT, LayoutAttr, LayoutChoice
from spyre_mlir.frontend import import_program
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.pipeline import lower, passes_to
from spyre_mlir.report.timing import module_timeline
from spyre_mlir.text.render import module_text, parse_module
from spyre_mlir.transforms import get_all_passes
from spyre_mlir.transforms.loop_to_kernel.layout_text.argument_layouts import drop_layouts
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel
from tests.op_cases.cases import Case, cases
from tests.op_cases.judge import copies, program_of
from tests.op_cases.program import NotAProgramError
from tests.op_cases.test_op_cases import IN_EVERY_RUN

CHOOSE = "choose-layouts"
ONE_IN = 12  # of the smallest op cases of every template


def passes_between() -> tuple[list[str], list[str]]:
    """The passes from the loop level to the layouts, and those behind."""
    names = passes_to("superdsc").removeprefix(passes_to("spyre.loop") + ",").split(",")
    at = names.index(CHOOSE) + 1
    return names[:at], names[at:]


def run_passes(module: ModuleOp, names: Sequence[str]) -> ModuleOp:
    context = make_context()
    loaded = get_all_passes()
    for name in names:
        loaded[name]()().apply(context, module)
    return module


def read_again(module: ModuleOp) -> ModuleOp:
    return parse_module(module_text(module), make_context())


def check_a_stop_changes_nothing(aten: ModuleOp) -> None:
    before, behind = passes_between()
    levels = lower(aten, make_context()).modules
    chosen = run_passes(read_again(levels["spyre.loop"]), before)
    wanted = module_text(levels["superdsc"])
    assert module_text(run_passes(read_again(chosen), behind)) == wanted
    for op in chosen.walk():
        op.attributes.pop(LAYOUT, None)
        if isinstance(op, FuncOp):
            drop_layouts(op)
    # What is not said is chosen by the conversion.
    assert module_text(run_passes(chosen, behind)) == wanted


class Block(nn.Module):
    """Attention and a feed-forward part, with everything that layouts meet: products, sums, copies, views."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(128, 2, batch_first=True)
        self.norm = nn.LayerNorm(128)
        self.up = nn.Linear(128, 192)
        self.down = nn.Linear(192, 128)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(x, x, x, need_weights=False)[0]
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Images(nn.Module):
    """Convolutions, one of groups, and a pool: columns and rows are moved."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(64, 64, 3, padding=1, groups=2)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.body(x), self.body(x.flip(-1))], 1).softmax(2)


@pytest.mark.parametrize(("model", "shape"), [(Block, (2, 67, 128)), (Images, (1, 3, 16, 16))])
def test_models_that_are_read_again_become_the_same_bundle(model: type[nn.Module], shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    check_a_stop_changes_nothing(import_program(model().eval(), (torch.randn(shape),)).module)


SAMPLE = [case for case in cases() if case.id in IN_EVERY_RUN][::ONE_IN]


@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: str(case.id))
def test_op_cases_that_are_read_again_become_the_same_bundle(case: Case) -> None:
    try:
        program = program_of(case)
    except NotAProgramError as error:
        pytest.skip(str(error))
    check_a_stop_changes_nothing(import_program(FunctionModel(program.call), copies(program.inputs)).module)


class Columns(nn.Module):
    """A softmax along columns behind a function of each element, which by itself likes rows in its lanes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(torch.relu(x), 0)


def test_a_layout_that_is_changed_by_hand_runs_and_has_its_price() -> None:
    x = torch.randn(256, 512, generator=torch.Generator().manual_seed(0))
    before, behind = passes_between()
    free = {"place-inputs": {"inputs": "free"}}  # a placed input has a layout already, which the nest would follow
    levels = lower(import_program(Columns(), (x,)).module, make_context(), options=free).modules
    chosen = run_passes(read_again(levels["spyre.loop"]), before)
    drop_layouts(next(op for op in chosen.walk() if isinstance(op, FuncOp)))
    relu, *others = [op for op in chosen.walk() if LAYOUT in op.attributes]
    for op in others:  # chosen again, by what is said of the first one
        del op.attributes[LAYOUT]
    times = {}
    for stick in (1, 0):
        relu.attributes[LAYOUT] = LayoutAttr(LayoutChoice(stick=stick))
        kernels = run_passes(read_again(chosen), behind[:-1])
        (found,) = run_function(kernels, [x.numpy()])
        torch.testing.assert_close(torch.as_tensor(found).float(), Columns()(x), rtol=1e-5, atol=1e-6)
        times[stick] = module_timeline(run_passes(kernels, behind[-1:]), "calibrated")
    assert times[0].total_us < times[1].total_us

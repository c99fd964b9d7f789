"""Pass `take-experts`: rows of few tokens meet the matrices of their own experts, with the numbers of eager."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch

import spyre_mlir
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.aten_arguments import PLACED
from spyre_mlir.dialects.host_call import HostCall
from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.dialects.spyre.kernel_loop import BlockNumberOp, TileOp
from spyre_mlir.errors import InputError
from spyre_mlir.frontend import import_program
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.pipeline import lower
from spyre_mlir.text.render import parse_module
from spyre_mlir.transforms.aten_forms.take_experts import TakeExpertsPass
from spyre_mlir.universe import make_context
from tests.unit.transforms.aten_forms.mixtures import Given, Mixture, moe
from tests.unit.transforms.aten_forms.paired_mixtures import PairedMixture, paired_inputs
from tests.unit.transforms.levels import ops


def mixture(choices: int = 2, kind: type[Mixture] = Mixture) -> Mixture:
    """Ten experts whose matrices take longer to read than a launch."""
    return kind(experts=10, width=128, inner=256, choices=choices).half()


def given(model: Mixture, tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(tokens)
    width = model.down_proj_bias.shape[1]
    x, scores = (
        torch.randn(tokens, width, generator=generator),
        torch.rand(tokens, model.num_experts, generator=generator),
    )
    return x.half(), scores.half()


def taken(model: Mixture, tokens: int) -> list[AtenOp]:
    """The ops after the pass that read one expert's part of a tensor."""
    module = import_program(model, given(model, tokens)).module
    TakeExpertsPass().apply(make_context(), module)
    module.verify()
    return [op for op in ops(module, AtenOp) if PLACED in op.attributes]


@pytest.mark.parametrize(("tokens", "choices", "each"), [(1, 2, 2), (3, 2, 6), (2, 5, 0), (5, 2, 0)])
def test_fewer_rows_than_experts_read_their_own(tokens: int, choices: int, each: int) -> None:
    """Two matrices and two biases for each row; ten rows would read as much as all tokens with all experts."""
    assert len(taken(mixture(choices), tokens)) == 4 * each


class Copied(Mixture):
    """The form of transformers that copies a matrix for each row; numbers of experts count from the end, too."""

    def forward(self, x: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        weights, chosen = torch.topk(scores, self.choices, -1)
        return moe.batched_mm_experts_forward(self, x, chosen - self.num_experts, weights)


class Turned(Copied):
    """The same with matrices that stand on the right, as GPT-OSS has them."""

    is_transposed = True

    def __init__(self, **sizes: int) -> None:
        super().__init__(**sizes)
        self.gate_up_proj.data = self.gate_up_proj.mT.contiguous()
        self.down_proj.data = self.down_proj.mT.contiguous()


@pytest.mark.parametrize("kind", [Copied, Turned])
def test_copies_of_matrices_are_read_where_they_lie(kind: type[Mixture]) -> None:
    model = mixture(kind=kind)
    assert len(taken(model, 1)) == 4 * 2
    halves = given(model, 1)
    compiled = spyre_mlir.compile(model, halves)
    assert compiled.verify(*halves)
    wanted = model(*halves)
    assert (compiled(*halves) - wanted).abs().max() < 0.01 * wanted.abs().max()


@pytest.mark.parametrize(("tokens", "each"), [(1, 2), (3, 6), (5, 0)])
def test_products_that_name_their_experts(tokens: int, each: int) -> None:
    """Two matrices and two biases for each row, in the order of tokens."""
    model = PairedMixture(experts=10, width=128, inner=256, biased=True).half()
    halves = tuple(x.half() for x in paired_inputs(tokens, experts=10, width=128))
    module = import_program(model, halves).module
    TakeExpertsPass().apply(make_context(), module)
    module.verify()
    assert sum(PLACED in op.attributes for op in ops(module, AtenOp)) == 4 * each
    if tokens == 1:
        compiled = spyre_mlir.compile(model, halves)
        assert compiled.verify(*halves)
        wanted = model(*halves)
        assert (compiled(*halves) - wanted).abs().max() < 0.01 * wanted.abs().max()


def test_experts_of_the_caller_are_rows_of_a_table() -> None:
    """The host has no step that says them; nothing is known of a number but its value."""
    model = PairedMixture(experts=10, width=128, inner=256, biased=False).half()

    class Caller(torch.nn.Module):
        def forward(self, x: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
            return model.mixed(x, chosen, x[:, :2])

    module = import_program(Caller(), (torch.ones(1, 128).half(), torch.tensor([[3, 7]]))).module
    TakeExpertsPass().apply(make_context(), module)
    assert not [op for op in ops(module, AtenOp) if PLACED in op.attributes]


def test_more_rows_than_anyone_wants_to_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spyre_mlir.transforms.aten_forms.take_experts._MOST_ROWS", 1)
    assert not taken(mixture(), 1)


def test_small_matrices_are_all_read() -> None:
    """They take less time than the launches of a second one."""
    assert not taken(Mixture(experts=5).half(), 1)


def test_experts_that_the_caller_chooses() -> None:
    """One may be chosen twice, or be none of them: all tokens meet the groups of their rows, as before."""
    assert not taken(mixture(kind=Given), 1)


def test_functions_of_control_flow_read_all_experts() -> None:
    model = mixture(kind=Copied)

    class Branch(torch.nn.Module):
        def forward(self, x: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, model, lambda x, _: x * 2, (x, scores))

    module = import_program(Branch(), given(model, 1)).module
    TakeExpertsPass().apply(make_context(), module)
    assert not [op for op in ops(module, AtenOp) if PLACED in op.attributes]


@pytest.mark.parametrize(("tokens", "choices"), [(1, 2), (3, 2)])
def test_every_level(tokens: int, choices: int) -> None:
    model = mixture(choices)
    halves = given(model, tokens)
    compiled = spyre_mlir.compile(model, halves)
    assert compiled.verify(*halves)
    wanted = model(*halves)
    assert (compiled(*halves) - wanted).abs().max() < 0.01 * wanted.abs().max()


def test_kernels_read_one_matrix_each() -> None:
    model = mixture()
    module = parse_module(spyre_mlir.compile(model, given(model, 1)).mlir("spyre.kernel"), make_context())
    read = [v for op in ops(module, KernelOp) for v in op.inputs if isinstance(v.owner, TileOp)]
    shapes = sorted(v.owner.window() for v in read if isinstance(v.owner, TileOp) and v.owner.is_placed_by_host)
    assert [s[0] for s in shapes] == [1] * 8
    assert len(ops(module, BlockNumberOp)) == 8
    assert not [op for op in ops(module, KernelOp) if 10 in op.space.extents.values() and len(op.space.extents) > 2]


def _first_operand(call: HostCall, operands: Sequence[np.ndarray], *, wide: bool) -> list[np.ndarray]:
    return list(operands)


ONE = """func.func @main(%x: tensor<1x64xf16>, %at: tensor<1xi64>, %w: tensor<3x64x64xf16> {aten.kind = "parameter"})
    -> tensor<1x64xf16> {
  %n = aten.call "aten.split.Tensor"(%at) {self = #aten.operands<1>, split_size = 1} host because "it is said"
    : (tensor<1xi64>) -> tensor<1xi64>
  %m = aten.index_select(%w, %n) {dim = 0} attributes {spyre.placed}
    : (tensor<3x64x64xf16>, tensor<1xi64>) -> tensor<1x64x64xf16>
  %v = aten.view(%m) {size = [64, 64]} : (tensor<1x64x64xf16>) -> tensor<64x64xf16>
  %y = aten.mm(%x, %v) : (tensor<1x64xf16>, tensor<64x64xf16>) -> tensor<1x64xf16>
  func.return %y : tensor<1x64xf16>
}"""


@pytest.mark.parametrize("level", ["spyre.loop", "spyre.kernel"])
def test_a_number_that_no_matrix_has(level: str) -> None:
    module = lower(parse_module(ONE, make_context()), make_context()).modules[level]
    x, w = np.ones((1, 64)), np.arange(3 * 64 * 64).reshape(3, 64, 64) % 7 / 8

    def run(at: int) -> np.ndarray:
        return run_function(module, [x, np.array([at]), w], host=_first_operand)[0]

    np.testing.assert_array_equal(run(2), x @ w[2])
    np.testing.assert_array_equal(run(-2), x @ w[1])
    for at in (3, -4):
        with pytest.raises(InputError, match=f"is {at}, and the tensor that it points into has entries -3 to 2"):
            run(at)

"""Mixtures of experts with one token: the host says which matrices are read, call after call and from files."""

from __future__ import annotations

import json
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3MoE
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssMLP
from transformers.models.granitemoe.modeling_granitemoe import GraniteMoeMoE
from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock
from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeSparseMoeBlock
from xdsl.dialects import func

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.host import HostOp
from spyre_mlir.dialects.spyre.kernel_loop import BlockNumberOp
from spyre_mlir.frontend import import_program
from spyre_mlir.options import CompileOptions
from spyre_mlir.pipeline import lower
from spyre_mlir.report.advice import advice
from spyre_mlir.universe import make_context

WIDTH = 64
MODULES: dict[str, tuple[type[nn.Module], Any]] = {
    "mixtral": (
        MixtralSparseMoeBlock,
        transformers.MixtralConfig(hidden_size=WIDTH, intermediate_size=128),
    ),
    "qwen3_moe": (
        Qwen3MoeSparseMoeBlock,
        transformers.Qwen3MoeConfig(hidden_size=WIDTH, moe_intermediate_size=64, num_experts=16, num_experts_per_tok=4),
    ),
    "gpt_oss": (
        GptOssMLP,
        transformers.GptOssConfig(hidden_size=WIDTH, intermediate_size=128, num_local_experts=8, num_experts_per_tok=2),
    ),
    "granite_moe": (
        GraniteMoeMoE,
        transformers.GraniteMoeConfig(
            hidden_size=WIDTH, intermediate_size=64, num_local_experts=10, num_experts_per_tok=3
        ),
    ),
    "deepseek_v3": (
        DeepseekV3MoE,
        transformers.DeepseekV3Config(
            hidden_size=WIDTH,
            moe_intermediate_size=64,
            n_routed_experts=16,
            num_experts_per_tok=4,
            n_group=4,
            topk_group=2,
        ),
    ),
}


def built(name: str, form: str = "grouped_mm") -> nn.Module:
    kind, config = MODULES[name]
    config._experts_implementation = form
    torch.manual_seed(0)
    made = kind(config).half().eval().requires_grad_(False)
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.1)
    return made


def token(seed: int = 1, count: int = 1) -> Tensor:
    return torch.randn(1, count, WIDTH, generator=torch.Generator().manual_seed(seed)).half()


def program(model: nn.Module, given: Tensor, **options: Any) -> CompiledModel:
    made = spyre_mlir.compile(model, (given,), **options)
    assert isinstance(made, CompiledModel)
    return made


@cache
def mixtral() -> tuple[nn.Module, CompiledModel]:
    """A model and its program, compiled without a warning: the device could do all of it."""
    model = built("mixtral")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return model, program(model, token(), host_fallback="error")


def near(got: Any, wanted: Any) -> None:
    """Whether results agree with eager's, for modules that return more than one too."""
    got, wanted = (x[0] if isinstance(x, tuple) else x for x in (got, wanted))
    assert (got - wanted).abs().max() < 0.01 * wanted.abs().max()


@pytest.mark.parametrize("name", MODULES)
def test_every_level_is_eager(name: str) -> None:
    model, given = built(name), token()
    made = program(model, given)
    assert "spyre.kernel.block_number" in made.mlir("spyre.kernel")
    assert made.verify(given)
    near(made(given), model(given))


def test_each_call_reads_the_experts_that_it_chooses() -> None:
    model, made = mixtral()
    chosen = set[int]()
    for seed in range(6):
        given = token(seed)
        near(made(given), model(given))
        chosen |= set(model.gate(given.view(1, WIDTH))[2].flatten().tolist())
    assert len(chosen) > 4


def test_the_time_has_the_step_of_the_host() -> None:
    _, made = mixtral()
    timeline = made.timeline()
    (step,) = timeline.host_steps
    assert step.op == "aten.split.Tensor"
    assert step.least_us > 0
    assert timeline.is_lower_bound
    assert not [one for one in advice(timeline) if "on the host" in one.cause]
    others = program(built("mixtral"), token(), chosen_experts=False)
    assert not others.timeline().host_steps
    assert timeline.moved_bytes < 0.5 * others.timeline().moved_bytes


def test_files_take_each_matrix_as_an_argument(tmp_path: Path) -> None:
    model, made = mixtral()
    made.save(tmp_path / "bundle")
    described = json.loads((tmp_path / "bundle" / "manifest.json").read_text())["arguments"]
    blocks = [(a["holds"], a["block"]["bytes_apart"]) for a in described if "block" in a]
    matrices = 2 * [("experts.gate_up_proj", 2 * 128 * WIDTH * 2)], 2 * [("experts.down_proj", 128 * WIDTH * 2)]
    assert blocks == [*matrices[0], *matrices[1]]
    loaded = spyre_mlir.load(tmp_path / "bundle")
    for seed in (1, 2):
        near(loaded(token(seed)), model(token(seed)))


class Layers(nn.Module):
    """Layers of experts, each added to what it reads; with the numbers of one layer's choice if asked for."""

    def __init__(self, *, tells: bool = False) -> None:
        super().__init__()
        self.layers, self.tells = nn.ModuleList(built("mixtral") for _ in range(4)), tells

    def forward(self, x: Tensor) -> Any:
        x, told = x.view(-1, WIDTH), list[Tensor]()
        for layer in self.layers:
            given = torch.tanh(x)
            _, weights, chosen = layer.gate(given)
            x = x + layer.experts(given, chosen, weights)
            told.append(chosen)
        return (x, told[1]) if self.tells else x


def test_equal_layers_are_one_function_between_steps_of_the_host(tmp_path: Path) -> None:
    model = Layers()
    made = program(model, token(), cache=False)
    text = made.mlir("spyre.kernel")
    assert text.count("func.func private") == 1
    assert text.count("func.call") == 3
    assert made.verify(token())
    made.save(tmp_path / "bundle")
    loaded = spyre_mlir.load(tmp_path / "bundle")
    for seed in (1, 2):
        near(loaded(token(seed)), model(token(seed)))


def test_layers_whose_choice_others_read_stay_apart() -> None:
    model = Layers(tells=True)
    module = import_program(model, (token(),)).module
    made = lower(module, make_context(), until="aten", options=CompileOptions().passes()).modules["aten"]
    assert not [op for op in made.walk() if isinstance(op, func.CallOp)]


def test_torch_compile() -> None:
    torch._dynamo.reset()
    model, _ = mixtral()
    compiled = torch.compile(model, backend="spyre")
    for seed in (1, 2):
        near(compiled(token(seed)), model(token(seed)))


def test_all_experts_on_request() -> None:
    model = built("mixtral")
    made = program(model, token(), chosen_experts=False)
    assert "block_number" not in made.mlir("spyre.kernel")
    near(made(token()), model(token()))


def test_addresses_in_files_do_not_move() -> None:
    program = import_program(built("mixtral"), (token(),)).module
    passes = CompileOptions(addresses="concrete").passes()
    kernels = lower(program, make_context(), until="spyre.kernel", options=passes).modules["spyre.kernel"]
    assert not [op for op in kernels.walk() if isinstance(op, BlockNumberOp | HostOp)]


def test_ktir_reads_all_experts() -> None:
    _, made = mixtral()
    assert made.mlir("spyre.kernel").count("spyre.kernel.tile") == 4
    assert made.ktir() == program(built("mixtral"), token(), chosen_experts=False).ktir()

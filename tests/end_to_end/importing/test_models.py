"""Whole models: they import, verify, fold what they should, and mean what torch computes."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from torch import nn
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import Builtin, UnknownLoc
from xdsl.parser import Parser

from spyre_mlir.dialects.aten import Aten, AtenOp
from spyre_mlir.frontend import Program, import_program, torch_reference
from tests.end_to_end.importing.evaluate import evaluate

transformers = pytest.importorskip("transformers")


def llama(layers: int = 2, **options: object) -> nn.Module:
    config = transformers.LlamaConfig(
        hidden_size=64,
        num_hidden_layers=layers,
        intermediate_size=128,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=100,
        use_cache=False,
        **options,
    )
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(config).eval()


def overloads(program: Program) -> list[str]:
    return [op.overload for op in program.module.walk() if isinstance(op, AtenOp)]


def ids(length: int = 8) -> torch.Tensor:
    return torch.arange(length).reshape(1, length) * 7 % 100


@cache
def imported(attention: str) -> tuple[nn.Module, Program]:
    """A Llama and its program, which no test changes.

    Args:
        attention: how the model computes it, `sdpa` or `eager`.
    """
    model = llama(attn_implementation=attention)
    return model, import_program(model, (), {"input_ids": ids()})


def test_llama_means_what_torch_computes() -> None:
    model, program = imported("sdpa")
    program.module.verify()
    got = evaluate(program, (), {"input_ids": ids()})
    wanted = model(input_ids=ids()).logits.detach().numpy()
    np.testing.assert_allclose(got[0], wanted, rtol=0, atol=2e-6 * np.abs(wanted).max())


def test_llama_has_nothing_left_to_compute_about_positions_and_masks() -> None:
    _, program = imported("sdpa")
    assert not {"arange.start_step", "cumsum", "index.Tensor", "cos", "sin", "call"} & set(overloads(program))
    assert [a.name for a in program.arguments if a.kind == "constant"] == ["constant_0", "constant_1"]  # cos, sin
    assert [a.name for a in program.arguments if a.kind == "buffer"] == []
    assert "is_causal = true" in str(program.module)
    assert "i1>" not in str(program.module)


def test_rotary_tables_are_the_cosine_and_sine_of_position_times_frequency() -> None:
    _, program = imported("sdpa")
    frequency = 10000.0 ** (-np.arange(0, 16, 2) / 16)
    angle = np.concatenate([np.outer(np.arange(8), frequency)] * 2, axis=-1)
    np.testing.assert_allclose(program.values["constant_0"].numpy().reshape(8, 16), np.cos(angle), atol=1e-6)
    np.testing.assert_allclose(program.values["constant_1"].numpy().reshape(8, 16), np.sin(angle), atol=1e-6)


def test_llama_returns_the_structure_of_the_model() -> None:
    model, program = imported("sdpa")
    reference = torch_reference(program, (), {"input_ids": ids()})
    output = program.unflatten([torch.from_numpy(reference[0])])
    assert type(output) is type(model(input_ids=ids()))
    assert torch.equal(output.logits, model(input_ids=ids()).logits)
    assert program.results == ("logits",)
    assert program.name == "LlamaForCausalLM"


def test_tied_embeddings_are_one_argument() -> None:
    program = import_program(llama(tie_word_embeddings=True), (), {"input_ids": ids()})
    names = [a.name for a in program.arguments]
    assert "model.embed_tokens.weight" in names
    assert "lm_head.weight" not in names
    wanted = torch_reference(program, (), {"input_ids": ids()})[0]
    np.testing.assert_allclose(evaluate(program, (), {"input_ids": ids()})[0], wanted, atol=2e-6 * np.abs(wanted).max())


def test_locations_name_the_line_and_the_module() -> None:
    _, program = imported("sdpa")
    silu = next(op for op in program.module.walk() if isinstance(op, AtenOp) and op.overload == "silu")
    assert 'loc("model.layers.0.mlp' in str(silu.location)
    assert "transformers" in str(silu.location)
    assert "torch/nn" not in str(silu.location)


def test_bfloat16_llama_sees_one_element_type_per_op() -> None:
    model = llama().to(torch.bfloat16)
    program = import_program(model, (), {"input_ids": ids()})
    program.module.verify()
    for op in program.module.walk():
        if isinstance(op, AtenOp) and op.overload not in ("_to_copy", "embedding"):
            assert len({str(o.type.get_element_type()) for o in op.operands}) == 1, str(op)


def test_mlp_means_what_torch_computes() -> None:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(5, 7), nn.GELU(), nn.LayerNorm(7), nn.Linear(7, 3), nn.Softmax(-1))
    x = torch.randn(4, 5)
    program = import_program(model, (x,))
    program.module.verify()
    np.testing.assert_allclose(evaluate(program, (x,))[0], model(x).detach().numpy(), atol=1e-6)


def test_text_of_a_program_reads_back_as_the_same_program() -> None:
    context = Context()
    for dialect in (Builtin, func.Func, Aten):
        context.load_dialect(dialect)
    for options in ({}, {"attn_implementation": "eager"}):
        program = import_program(llama(**options), (), {"input_ids": ids()})
        again = Parser(context, str(program.module)).parse_module()
        again.verify()
        assert str(again) == str(program.module)
        assert again.is_structurally_equivalent(program.module)


def test_every_op_has_a_location() -> None:
    _, program = imported("eager")
    assert [
        str(op) for op in program.module.walk() if isinstance(op, AtenOp) and isinstance(op.location, UnknownLoc)
    ] == []


def test_eager_attention_means_what_torch_computes() -> None:
    model, program = imported("eager")
    wanted = model(input_ids=ids()).logits.detach().numpy()
    got = evaluate(program, (), {"input_ids": ids()})
    np.testing.assert_allclose(got[0], wanted, rtol=0, atol=2e-6 * np.abs(wanted).max())

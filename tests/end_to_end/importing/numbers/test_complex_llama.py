"""A whole Llama whose rotary positions are complex numbers: logits at every level, through both entry points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import spyre_mlir
from tests.end_to_end.importing.numbers.complex_llama import LONGEST, VOCABULARY, ComplexLlama

EXACT: dict[str, Any] = {"numerics": "exact", "host_fallback": "error"}


def tokens(length: int, batch: int = 2) -> Tensor:
    return torch.arange(batch * length).mul(17).add(3).remainder(VOCABULARY).view(batch, length)


def check(got: Tensor, wanted: Tensor, tolerance: float = 1e-5) -> None:
    """Logits agree, measured by the largest of them."""
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    assert (got - wanted).abs().max() <= tolerance * wanted.abs().max()


def llama(*, kept: bool = False) -> ComplexLlama:
    return ComplexLlama(kept=kept).eval().requires_grad_(requires_grad=False)


@pytest.fixture(scope="module")
def model() -> ComplexLlama:
    return llama()


@pytest.fixture(scope="module")
def compiled(model: ComplexLlama) -> spyre_mlir.CompiledModel:
    compiled = spyre_mlir.compile(model, (tokens(9),), **EXACT)
    assert isinstance(compiled, spyre_mlir.CompiledModel)
    return compiled


def test_every_level_gives_eagers_logits(model: ComplexLlama, compiled: spyre_mlir.CompiledModel) -> None:
    assert (outcome := compiled.verify(tokens(9))), outcome
    check(compiled(tokens(9)), model(tokens(9)))


def test_positions_matter(model: ComplexLlama) -> None:
    """The comparison would see a table that turns nothing."""
    still = llama()
    still.freqs_cis.fill_(1)
    with pytest.raises(AssertionError):
        check(still(tokens(9)), model(tokens(9)), 1e-2)


def test_torch_compile_takes_the_model_in_one_graph(model: ComplexLlama) -> None:
    torch._dynamo.reset()
    ours = torch.compile(model, backend="spyre", options=EXACT, fullgraph=True)
    check(ours(tokens(9)), model(tokens(9)))


def test_a_checkpoint_with_the_table_is_saved_and_bound(model: ComplexLlama, tmp_path: Path) -> None:
    given = llama(kept=True)
    given.freqs_cis.fill_(1)
    compiled = spyre_mlir.compile(given, (tokens(9),), **EXACT)
    compiled.save(tmp_path / "saved")
    check(spyre_mlir.load(tmp_path / "saved", numerics="exact")(tokens(9)), given(tokens(9)))
    check(compiled.bind(llama(kept=True).state_dict())(tokens(9)), model(tokens(9)))


def test_device_numerics_stay_near(model: ComplexLlama, compiled: spyre_mlir.CompiledModel) -> None:
    (got,) = compiled._run_bundle((tokens(9),), {}, "device")  # pyright: ignore[reportPrivateUsage]
    check(torch.from_numpy(got), model(tokens(9)), 2e-2)


def test_half_precision(model: ComplexLlama) -> None:
    """Rotations are computed in float32, as the model says; weights and the rest are float16."""
    half = llama()
    for module in half.modules():
        for parameter in module.parameters(recurse=False):
            parameter.data = parameter.data.half()
    check(spyre_mlir.compile(half, (tokens(9),), **EXACT)(tokens(9)), model(tokens(9)), 1e-2)


def test_any_length(model: ComplexLlama) -> None:
    lengths = ({1: torch.export.Dim("length", max=LONGEST)},)
    ours = spyre_mlir.compile(model, (tokens(9),), dynamic_shapes=lengths, numerics="exact", buckets=[LONGEST])
    for length in (2, 7, LONGEST):
        check(ours(tokens(length)), model(tokens(length)))


@pytest.mark.parametrize("door", ["compile", "torch.compile"])
def test_llama_4_of_transformers(door: str) -> None:
    """Complex rotary positions in three layers of four, attention in chunks, and experts."""
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 64, "intermediate_size": 96, "intermediate_size_mlp": 96, "head_dim": 16, "vocab_size": 101}
    heads = {"num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "num_local_experts": 2}
    ends = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "use_cache": False}
    config = transformers.Llama4TextConfig(**sizes, **heads, **ends, max_position_embeddings=64, attention_chunk_size=8)
    torch.manual_seed(0)
    model = transformers.Llama4ForCausalLM(config).eval().requires_grad_(requires_grad=False)
    for parameter in model.parameters():
        if parameter.dim() == 3:
            parameter.data.normal_(0, 0.05)  # weights of experts, which transformers leaves uninitialized
    ids = torch.arange(12).view(1, 12) * 7 % 101
    wanted = model(input_ids=ids).logits
    if door == "torch.compile":
        torch._dynamo.reset()
        check(torch.compile(model, backend="spyre", options={"numerics": "exact"})(input_ids=ids).logits, wanted)
        return
    compiled = spyre_mlir.compile(model, (), {"input_ids": ids}, numerics="exact")
    assert (outcome := compiled.verify(input_ids=ids)), outcome
    check(compiled(input_ids=ids).logits, wanted)

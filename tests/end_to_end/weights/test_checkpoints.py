"""Checkpoints as Hugging Face writes them, bound to a model that was compiled without weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

pytest.importorskip("transformers")

from transformers import LlamaConfig, LlamaForCausalLM

import spyre_mlir
from spyre_mlir.cli import compile as compile_tool
from spyre_mlir.cli import run as run_tool
from spyre_mlir.compiled import CompiledModel

IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])


class Logits(LlamaForCausalLM):
    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return super().forward(input_ids=input_ids, use_cache=False).logits


def config(**more: Any) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=128,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        **more,
    )


def compiled(model: torch.nn.Module) -> CompiledModel:
    made = spyre_mlir.compile(model.eval(), (IDS,), host_fallback="allow")
    assert isinstance(made, CompiledModel)
    return made


@pytest.fixture(scope="module")
def model() -> Logits:
    torch.manual_seed(0)
    return Logits(config()).to(torch.bfloat16).eval()


@pytest.fixture(scope="module")
def directory(model: Logits, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint in several files with an index."""
    place = tmp_path_factory.mktemp("checkpoint")
    model.save_pretrained(place, max_shard_size="50KB")
    assert (place / "model.safetensors.index.json").exists()
    return place


@pytest.fixture(scope="module")
def weightless() -> CompiledModel:
    with torch.device("meta"):
        empty = Logits(config()).to(torch.bfloat16)
    return compiled(empty)


@pytest.fixture(scope="module")
def bound(weightless: CompiledModel, directory: Path) -> CompiledModel:
    return weightless.bind(directory)


def test_a_bound_model_runs_as_one_that_had_its_weights(bound: CompiledModel, model: Logits) -> None:
    whole = compiled(model)
    assert torch.equal(bound(IDS), whole(IDS))
    assert bound.mlir("superdsc") == whole.mlir("superdsc")
    assert bound.verify(IDS)


def test_a_program_without_weights_says_how_to_get_them(weightless: CompiledModel) -> None:
    with pytest.raises(spyre_mlir.SpyreError, match=r"has no values for .*\n.*compiled\.bind"):
        weightless(IDS)


def test_the_bundle_has_the_device_form_only_and_loads(bound: CompiledModel, tmp_path: Path) -> None:
    bound.save(tmp_path / "bundle")
    assert "lm_head.weight" not in load_file(tmp_path / "bundle" / "data.safetensors")
    again = spyre_mlir.load(tmp_path / "bundle")
    assert torch.equal(again(IDS), bound(IDS))


def test_the_command_line_binds(
    model: Logits, directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.export.save(torch.export.export(model, (IDS,)), tmp_path / "model.pt2")
    other = Logits(config()).to(torch.bfloat16).eval()
    torch.export.save(torch.export.export(other, (IDS,)), tmp_path / "other.pt2")
    for source, more in (("model", []), ("other", ["--weights", str(directory), "--ignore-unexpected"])):
        words = [str(tmp_path / f"{source}.pt2"), "-o", str(tmp_path / source), "--host-fallback", "allow", *more]
        assert compile_tool.run(words) == 0
    weights = [(tmp_path / name / "weights.safetensors").read_bytes() for name in ("model", "other")]
    assert weights[0] == weights[1]
    capsys.readouterr()
    assert run_tool.run([str(tmp_path / "other")]) == 0


def test_a_checkpoint_of_another_model_is_refused(weightless: CompiledModel, directory: Path, tmp_path: Path) -> None:
    for file in directory.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    with torch.device("meta"):
        biased = Logits(config(attention_bias=True)).to(torch.bfloat16)
    wider = compiled(biased)
    with pytest.raises(spyre_mlir.SpyreError, match=r"4 missing: model\.layers\.0\.self_attn\.q_proj\.bias"):
        wider.bind(directory)
    shards = sorted(tmp_path.glob("*.safetensors"))
    shards[-1].unlink()
    with pytest.raises(spyre_mlir.SpyreError, match=r"the index names .*, which is not there"):
        weightless.bind(tmp_path)

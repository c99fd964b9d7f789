"""`generate` of transformers on the hardware model: the tokens are torch's, over caches of several kinds."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import transformers

import spyre_mlir
from spyre_mlir import Generation, torch_compile
from spyre_mlir.choices import CacheKind
from tests.models.entry import DECODER, VOCABULARY

WINDOW = 8
SIZES = {**DECODER, "vocab_size": VOCABULARY, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None}
ONE = SIZES | {"num_hidden_layers": 1}
MODELS: dict[str, tuple[type[Any], Any]] = {
    "llama": (transformers.LlamaForCausalLM, transformers.LlamaConfig(**SIZES)),
    "llama of one layer": (transformers.LlamaForCausalLM, transformers.LlamaConfig(**ONE)),
    "mistral": (transformers.MistralForCausalLM, transformers.MistralConfig(**SIZES, sliding_window=WINDOW)),
    "gemma2": (transformers.Gemma2ForCausalLM, transformers.Gemma2Config(**SIZES, head_dim=8, sliding_window=WINDOW)),
}
SEEDS = (5, 6, 7)
slow = pytest.mark.slow(reason="a program per token, a second model, or 64 tokens; one layer over a static cache runs")


def padded() -> dict[str, torch.Tensor]:
    """Two prompts of 7 tokens, the second with three tokens of padding before it."""
    ids = torch.randint(2, VOCABULARY, (2, 7), generator=torch.Generator().manual_seed(3))
    mask = torch.ones_like(ids)
    ids[1, :3] = mask[1, :3] = 0
    return {"input_ids": ids, "attention_mask": mask}


def model_of(name: str) -> Any:
    torch._dynamo.reset()
    torch_compile.forget()
    torch.manual_seed(0)
    kind, config = MODELS[name]
    return kind(copy.deepcopy(config)).eval()


@pytest.mark.parametrize(
    ("name", "cache", "sample", "tokens", "programs"),
    [
        ("llama of one layer", "static", True, 4, 2),
        pytest.param("llama", None, False, 4, 4, marks=slow),  # a cache that grows
        pytest.param("mistral", "static", False, 12, 3, marks=slow),  # beyond the window
    ],
)
def test_torch_compile_gives_the_tokens_of_torch(
    name: str, cache: str | None, sample: bool, tokens: int, programs: int
) -> None:
    model = model_of(name)
    how: dict[str, Any] = {**padded(), "max_new_tokens": tokens, "do_sample": sample, "cache_implementation": cache}

    def generated(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return model.generate(**how, disable_compile=True)

    seeds = SEEDS if sample else SEEDS[:1]
    expected = [generated(seed) for seed in seeds]
    assert len({str(tokens.tolist()) for tokens in expected}) == len(seeds)
    model.forward = torch.compile(model.forward, backend="spyre", options={"numerics": "exact"})
    assert all(torch.equal(generated(seed), tokens) for seed, tokens in zip(seeds, expected, strict=True))
    assert len(torch_compile.compilations()) == programs


@pytest.mark.parametrize(
    ("name", "cache", "sample", "tokens", "programs"),
    [
        ("llama of one layer", "static", False, 4, (1, 1)),
        pytest.param("llama", "static", False, 64, (1, 1), marks=slow),
        pytest.param("llama", "static", True, 64, (1, 1), marks=slow),
        pytest.param("mistral", "sliding", False, 64, (1, 2), marks=slow),
        pytest.param("mistral", "sliding", True, 64, (1, 2), marks=slow),
        pytest.param("gemma2", "sliding", False, 64, (1, 2), marks=slow),
        pytest.param("gemma2", "sliding", True, 64, (1, 2), marks=slow),
        pytest.param("llama of one layer", "growing", True, 64, (1, 64), marks=slow),
    ],
)
def test_tokens_are_those_of_torch(
    name: str, cache: CacheKind, sample: bool, tokens: int, programs: tuple[int, int]
) -> None:
    model = model_of(name)
    how: dict[str, Any] = {**padded(), "max_new_tokens": tokens, "do_sample": sample}
    fast: Any = spyre_mlir.compile(model, generation=Generation(cache=cache), numerics="exact")
    for seed in SEEDS if sample else SEEDS[:1]:
        torch.manual_seed(seed)
        expected = model.generate(**how, cache_implementation=None if cache == "growing" else "static")
        torch.manual_seed(seed)
        assert torch.equal(fast.generate(**how), expected)
    assert (len(fast.prefill), len(fast.decode)) == programs


@pytest.mark.parametrize(
    ("name", "cache", "tokens"),
    [
        pytest.param("llama", "static", 64, marks=slow),
        pytest.param("mistral", "sliding", 64, marks=slow),
        pytest.param("gemma2", "sliding", 64, marks=slow),
    ],
)
def test_device_numerics_part_from_torch_where_two_tokens_are_close(name: str, cache: CacheKind, tokens: int) -> None:
    """While the text is torch's, so are its logits, within a percent; it leaves torch's where two are that close."""
    model = model_of(name)
    how: dict[str, Any] = {**padded(), "max_new_tokens": tokens, "do_sample": False}
    how |= {"output_logits": True, "return_dict_in_generate": True}
    expected = model.generate(**how, cache_implementation="static")
    fast: Any = spyre_mlir.compile(model, generation=Generation(cache=cache))
    found = fast.generate(**how)
    for row in range(2):
        alike = found.sequences[row] == expected.sequences[row]
        same = len(alike) if alike.all() else int(alike.long().argmin())
        steps = min(same - how["input_ids"].shape[1] + 1, tokens)  # the step that parts sees the same text
        print(f"{name}, row {row}: {steps} steps alike")
        for step in range(steps):
            wanted, got = (result.logits[step][row] for result in (expected, found))
            error = float((got - wanted).abs().max())
            assert error <= 0.01 * float(wanted.abs().max()), (row, step)
        if same < len(alike):
            top = wanted.topk(2).values
            assert float(top[0] - top[1]) <= 2 * error, f"row {row} parts at step {steps - 1} for no reason"


def test_sampling_is_that_of_torch_for_every_seed() -> None:
    model = model_of("llama of one layer")
    compiled = spyre_mlir.compile(model, generation=Generation(max_length=16), numerics="exact")
    how: dict[str, Any] = {**padded(), "max_new_tokens": 5, "do_sample": True, "temperature": 1.5}
    seen: set[str] = set()
    for seed in (0, 1, 2):
        torch.manual_seed(seed)
        expected = model.generate(**how, cache_implementation="static", disable_compile=True)
        torch.manual_seed(seed)
        assert torch.equal(compiled.generate(**how), expected)
        seen.add(str(expected))
    assert len(seen) == 3

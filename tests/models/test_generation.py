"""`generate` of transformers behind torch.compile: the tokens are torch's, over caches of several kinds."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import transformers

from spyre_mlir import torch_compile
from tests.models.zoo.entry import DECODER, VOCABULARY

WINDOW = 8
SIZES = {**DECODER, "vocab_size": VOCABULARY, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None}
MODELS: dict[str, tuple[type[Any], Any]] = {
    "llama": (transformers.LlamaForCausalLM, transformers.LlamaConfig(**SIZES)),
    "llama of one layer": (transformers.LlamaForCausalLM, transformers.LlamaConfig(**SIZES | {"num_hidden_layers": 1})),
    "mistral": (transformers.MistralForCausalLM, transformers.MistralConfig(**SIZES, sliding_window=WINDOW)),
    "gemma2": (transformers.Gemma2ForCausalLM, transformers.Gemma2Config(**SIZES, head_dim=8, sliding_window=WINDOW)),
}
slow = pytest.mark.slow(reason="a program per token, or a second model; one layer over a static cache runs by default")


def padded() -> dict[str, torch.Tensor]:
    """Two prompts of 7 tokens, the second with three tokens of padding before it."""
    ids = torch.randint(2, VOCABULARY, (2, 7), generator=torch.Generator().manual_seed(3))
    mask = torch.ones_like(ids)
    ids[1, :3] = mask[1, :3] = 0
    return {"input_ids": ids, "attention_mask": mask}


@pytest.mark.parametrize(
    ("name", "cache", "sample", "tokens", "programs"),
    [
        ("llama of one layer", "static", True, 4, 2),
        pytest.param("llama", None, False, 4, 4, marks=slow),  # a cache that grows
        pytest.param("mistral", "static", False, 12, None, marks=slow),  # beyond the window
        pytest.param("gemma2", "static", True, 12, None, marks=slow),
        pytest.param("llama", "static", False, 64, 2, marks=slow),
    ],
)
def test_tokens_are_those_of_torch(
    name: str, cache: str | None, sample: bool, tokens: int, programs: int | None
) -> None:
    torch._dynamo.reset()
    torch_compile.forget()
    torch.manual_seed(0)
    kind, config = MODELS[name]
    model = kind(copy.deepcopy(config)).eval()
    how: dict[str, Any] = {**padded(), "max_new_tokens": tokens, "do_sample": sample, "cache_implementation": cache}

    def generated() -> torch.Tensor:
        torch.manual_seed(5)
        return model.generate(**how, disable_compile=True)

    expected = generated()
    model.forward = torch.compile(model.forward, backend="spyre", dynamic=False, options={"numerics": "exact"})
    assert torch.equal(generated(), expected)
    assert programs is None or len(torch_compile.compilations()) == programs

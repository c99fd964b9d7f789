"""Generation of ibm-fms, as it is, under `torch.compile`: decoders give the tokens and logits of eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from spyre_mlir import torch_compile
from tests.clients.catalogue import fms, fms_steps
from tests.clients.catalogue.entry import with_random_weights
from tests.clients.installed import needs
from tests.models.entry import Built, token_ids

AIU = "--no-deps aiu-fms-testing-utils==0.9.0 && pip install -e '.[clients-aiu]'"
EXACT = 1e-4
NEW_TOKENS = 3
PROMPT = 6
Maker = Callable[[], Built]

pytestmark = pytest.mark.slow(reason="programs for every step of eleven models, where ibm-fms is installed")


@pytest.fixture(autouse=True)
def _installed() -> None:
    needs("ibm-fms", "1.13", "-e '.[clients]'")
    torch._dynamo.reset()
    torch_compile.forget()
    torch.manual_seed(0)


def made(maker: Maker) -> Any:
    model, _ = maker()
    return with_random_weights(model).eval().requires_grad_(False)


@torch.no_grad()
def both(model: Any, generate: Callable[..., Any], prompt: torch.Tensor, **options: Any) -> list[Any]:
    """The tokens and the logits of every step, of eager and of the compiled model."""
    found: list[Any] = []
    compiled = torch.compile(model, backend="spyre", options={"numerics": "exact", "host_fallback": "allow"})
    for callee in (model, compiled):
        steps: list[torch.Tensor] = []

        def keep(_: int, logits: torch.Tensor, token: Any, named: Any, steps: list[torch.Tensor] = steps) -> Any:
            steps.append(logits.clone())
            return token, named

        how = {"max_new_tokens": NEW_TOKENS, "do_sample": False, "use_cache": True, "post_iteration_hook": keep}
        tokens = generate(callee, prompt.clone(), **how, **options)
        found.append((tokens, torch.stack(steps)))
    return found


def check(found: list[Any], made: int) -> None:
    (tokens, logits), (got, given) = found
    assert got.equal(tokens)
    assert logits.shape[0] == NEW_TOKENS and logits.isfinite().all()
    assert (given - logits).abs().max() <= EXACT * logits.abs().max()
    programs = torch_compile.compilations()
    assert len(programs) >= made and all(program.kernels > 0 for program in programs)


@pytest.mark.parametrize("maker", [*fms_steps.DECODERS, fms.bamba], ids=lambda maker: maker.__name__)
def test_static_cache(maker: Maker) -> None:
    from fms.utils.generation import generate

    check(both(made(maker), generate, token_ids(tokens=PROMPT), contiguous_cache=True), 2)


@pytest.mark.parametrize("maker", [fms.llama, fms.granite, fms.gpt_oss], ids=lambda maker: maker.__name__)
def test_paged_cache(maker: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dynamo sees open sizes, which `generate` marks, in a `torch.compile` without `dynamic=`."""
    needs("aiu-fms-testing-utils", "0.9", AIU)
    from aiu_fms_testing_utils.utils.paged import generate
    from fms.utils.generation import pad_input_ids

    monkeypatch.setenv("VLLM_DT_MAX_BATCH_SIZE", "2")
    monkeypatch.setenv("VLLM_DT_MAX_CONTEXT_LEN", str(2 * fms_steps.PAGE))
    prompt, padding = pad_input_ids(list(token_ids(tokens=PROMPT)), min_pad_length=fms_steps.PAGE)
    attention = "spyre_paged_attn" + ("_with_sinks" if maker is fms.gpt_oss else "")
    check(both(made(maker), generate, prompt, extra_kwargs={**padding, "attn_name": attention}), 2)

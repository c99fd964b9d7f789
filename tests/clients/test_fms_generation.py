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

EXACT = 1e-4
NEW_TOKENS = 3
PROMPT = 6
Maker = Callable[[], Built]

pytestmark = pytest.mark.slow(reason="a program per token of ten models, where ibm-fms is installed")


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
    compiled = torch.compile(model, backend="spyre", options={"numerics": "exact"})
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


# A step of gpt_oss does not compile with its static cache: tests/clients/test_clients.py knows the trouble.
STATIC = [maker for maker in fms_steps.DECODERS if maker is not fms.gpt_oss]


@pytest.mark.parametrize("maker", [*STATIC, fms.bamba], ids=lambda maker: maker.__name__)
def test_static_cache(maker: Maker) -> None:
    from fms.utils.generation import generate

    check(both(made(maker), generate, token_ids(tokens=PROMPT), contiguous_cache=True), 2)

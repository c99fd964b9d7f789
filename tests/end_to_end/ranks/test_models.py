"""Models divided by DTensor, ibm-fms, experts and pipeline stages, unmodified, against one rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.end_to_end.ranks.launch import on_ranks
from tests.end_to_end.ranks.models import all_models, small_models

Found = list[dict[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def small() -> Found:
    return on_ranks(2, small_models)


@pytest.fixture(scope="module", params=[2, 4])
def large(request: pytest.FixtureRequest) -> Found:
    return on_ranks(request.param, all_models)


def check(of_ranks: list[dict[str, Any]], tolerance: float) -> None:
    """One rank's numbers, the same bytes on all ranks and on repetition."""
    scale = np.abs(of_ranks[0]["one rank"]).max()
    for rank in of_ranks:
        np.testing.assert_allclose(rank["eager"], rank["one rank"], atol=1e-5 * scale)
        np.testing.assert_allclose(rank["spyre"], rank["one rank"], atol=tolerance * scale)
        assert rank["spyre"].tobytes() == rank["again"].tobytes() == of_ranks[0]["spyre"].tobytes()


def test_an_mlp_of_dtensors(small: Found) -> None:
    found = [rank["mlp_of_dtensors"] for rank in small]
    check(found, 0.01)
    for rank in found:
        assert rank["text"].count("all_reduce") > 0
        assert "all_gather" not in rank["text"], "nobody gathers weights"
        assert "128x64" not in rank["text"], "a rank has its part alone"


def test_two_stages_of_a_pipeline(small: Found) -> None:
    found = [rank["pipeline_of_two"] for rank in small]
    first, second = found[1]["results"]
    assert first.tobytes() == second.tobytes()
    np.testing.assert_allclose(first, found[1]["one rank"], atol=4e-3)
    assert "aten.relu" in found[0]["text"]
    assert "aten.relu" not in found[1]["text"]


@pytest.mark.slow(reason="two and four ranks; two stages of one rank each run by default")
def test_two_stages_of_one_or_two_ranks(large: Found) -> None:
    found = [rank["pipeline_of_two"] for rank in large]
    *first, last = found
    assert [bool(rank["results"]) for rank in found] == [n >= len(found) // 2 for n in range(len(found))]
    for rank in found[len(found) // 2 :]:
        np.testing.assert_allclose(rank["results"][0], rank["one rank"], atol=4e-3)
        assert {r.tobytes() for r in rank["results"]} == {last["results"][0].tobytes()}
    whole = "128x64xf32"
    assert (whole in first[0]["text"]) == (len(found) == 2), "of four ranks, each has half of a weight"


@pytest.mark.slow(reason="models of two and four ranks; a divided MLP and a pipeline run by default")
@pytest.mark.parametrize("name", ["llama_of_dtensors", "mixtral_of_experts", "llama_of_fms"])
def test_models_are_those_of_one_rank(large: Found, name: str) -> None:
    if name not in large[0]:
        pytest.skip("ibm-fms is not installed")
    found = [rank[name] for rank in large]
    check(found, 0.02)
    for rank in found:
        assert rank["steps"] <= ({"aten.topk"} if name == "mixtral_of_experts" else set())
        # ibm-fms gathers embeddings and logits, of [1, 6, …]; weights have two dimensions.
        gathers = [line for line in rank["text"].splitlines() if '"_c10d_functional::all_gather' in line]
        assert len(gathers) <= 2 * (name == "llama_of_fms")
        assert all("x6x" in line for line in gathers), "activations of six tokens, no weights"

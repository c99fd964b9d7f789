"""Programs of two ranks against one rank and against eager torch, and the meanings of collectives against torch."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import spyre_mlir
from spyre_mlir.ops.native import collectives
from tests.end_to_end.ranks.launch import Kill, after_a_kill, on_ranks, survivors
from tests.end_to_end.ranks.programs import (
    bound_by_parts,
    compile_and_run_once,
    compile_until_refused,
    go_on_after_an_error,
    rows,
    run_again,
    run_all,
    run_until_refused,
    saved_and_run,
    wait_for_a_rank_that_hangs,
    whole_mlp,
)

Found = list[dict[str, Any]]


@pytest.fixture(scope="module")
def found() -> Found:
    return on_ranks(2, run_all)


@pytest.mark.parametrize("way", ["compile", "torch.compile"])
def test_a_divided_mlp_is_that_of_one_rank(found: Found, way: str) -> None:
    for rank in found:
        np.testing.assert_allclose(rank["eager"][0], rank["one rank"][0], atol=1e-6)
        np.testing.assert_allclose(rank[way][0], rank["one rank"][0], atol=4e-3)
        assert np.abs(rank[way][0] - rank["one rank"][0]).max() > 0, "the device rounds"
    assert found[0][way][0].tobytes() == found[1][way][0].tobytes()


def test_a_second_call_gives_the_same_bytes(found: Found) -> None:
    for rank in found:
        assert rank["compile"][0].tobytes() == rank["again"][0].tobytes()


def test_every_level_agrees_with_eager(found: Found) -> None:
    assert [rank["agrees"] for rank in found] == [True, True]


def test_a_rank_has_its_part_of_the_weights_and_no_host_step(found: Found) -> None:
    for rank in found:
        assert rank["steps"] == ()
        assert "tensor<128x" not in rank["text"]
        assert rank["text"].count("tensor<64x64xf32> {aten.name") == 2
        assert rank["text"].count("_c10d_functional") == 1
        assert "ranks = array<i64: 0, 1>" in rank["text"]


def test_each_rank_binds_its_part_of_one_checkpoint(tmp_path: Path) -> None:
    save_file(whole_mlp().state_dict(), tmp_path / "model.safetensors")
    for rank in on_ranks(2, partial(bound_by_parts, str(tmp_path / "model.safetensors"))):
        np.testing.assert_allclose(rank["bound"][0], rank["one rank"][0], atol=4e-3)
        assert rank["agrees"]


def test_every_collective_gives_what_eager_gives(found: Found) -> None:
    for rank in found:
        assert len(rank["collectives"]) == 6
        for got, wanted in zip(rank["collectives"], rank["collectives eager"], strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_collectives_that_write_to_their_arguments_give_what_eager_gives(found: Found) -> None:
    assert [len(rank["written"]) for rank in found] == [12, 9]
    for rank in found:
        for got, wanted in zip(rank["written"], rank["written eager"], strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_a_collective_that_nobody_reads_runs(found: Found) -> None:
    assert [rank["collectives text"].count("_c10d_functional::all_reduce") for rank in found] == [3, 3]


def test_meanings_are_those_of_torch(found: Found) -> None:
    given = [rows(0).numpy(), rows(1).numpy()]
    sent, expected = ((2, 4), (4, 2)), ((2, 4), (4, 2))
    meanings = [
        collectives.all_reduce.meaning([x + 1 for x in given], reduce_op="sum"),
        [2 * x for x in collectives.all_reduce.meaning(given, reduce_op="max")],
        [x - 1 for x in collectives.all_gather_into_tensor.meaning(given, group_size=2)],
        collectives.reduce_scatter_tensor.meaning(given, reduce_op="sum", group_size=2),
        collectives.all_to_all_single.meaning(given, input_split_sizes=sent, output_split_sizes=expected),
        collectives.broadcast.meaning(given, src=1),
    ]
    for number, results in enumerate(meanings):
        for rank, result in enumerate(results):
            np.testing.assert_array_equal(result, found[rank]["collectives eager"][number])


def test_the_meaning_of_a_reduction_of_bits_is_that_of_torch(found: Found) -> None:
    given = [rows(0).numpy().astype(np.int64), rows(1).numpy().astype(np.int64)]
    for rank, result in enumerate(collectives.all_reduce.meaning(given, reduce_op="bxor")):
        np.testing.assert_array_equal(result, found[rank]["written eager"][2])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_ranks_in_one_process_give_the_bytes_of_a_process_group(dtype: torch.dtype, tmp_path: Path) -> None:
    """Sums round, so their order counts: gloo's starts at another rank for each part of a tensor."""
    found = on_ranks(4, partial(saved_and_run, str(tmp_path), dtype))
    for rank, result in zip(found, spyre_mlir.load_ranks(tmp_path)(found[0]["x"]), strict=True):
        assert torch.equal(result, rank["result"])


def test_a_rank_that_is_killed_ends_the_others_by_name() -> None:
    kind, text = after_a_kill(run_again, before=compile_and_run_once)
    assert kind == "CollectiveError"
    assert "rank 0: all_reduce of group '0' (2 ranks: 0, 1) was not completed" in text
    assert "programs.py:" in text
    assert "look at the errors of the other ranks" in text


def test_a_kill_at_a_random_point_ends_all_other_ranks_by_name() -> None:
    """Also those that exchange nothing with the killed rank, while the others stay alive."""
    chance = random.Random(18)
    kill = Kill(chance.randrange(4), chance.uniform(0.0, 2.0))
    found = survivors(4, kill, run_until_refused, before=compile_and_run_once)
    assert len(found) == 3
    for seconds, (kind, text) in found:
        assert kind == "CollectiveError"
        assert "all_reduce of group '0' (4 ranks: 0, 1, 2, 3) was not completed" in text
        assert seconds < 10


def test_a_kill_while_all_ranks_compile_ends_the_others_by_name() -> None:
    """They exchange nothing: no connection tells them."""
    chance = random.Random(19)
    kill = Kill(chance.randrange(3), chance.uniform(0.0, 2.0))
    found = survivors(3, kill, compile_until_refused, before=compile_and_run_once)
    assert len(found) == 2
    for seconds, (kind, text) in found:
        assert kind == "CollectiveError"
        assert f"was given up: rank {kill.rank} has ended in the middle of its work (process " in text
        assert seconds < 10


def test_a_rank_that_never_comes_is_named_when_the_group_times_out() -> None:
    *waiting, (kind, text) = on_ranks(3, wait_for_a_rank_that_hangs, timeout_seconds=4)
    assert (kind, text) == ("", "never came")
    for kind, text in waiting:
        assert kind == "CollectiveError"
        assert "all_reduce of group '0' (3 ranks: 0, 1, 2) was not completed: " in text
        assert "; rank 2 had not come to it" in text
        assert "programs.py:" in text


def test_ranks_that_caught_an_error_wait_for_slow_ones() -> None:
    for text, result in on_ranks(2, go_on_after_an_error):
        assert "all_reduce of group '0' (2 ranks: 0, 1) was not completed" in text
        assert "had not come" not in text
        assert result.tolist() == [3.0, 3.0, 3.0]

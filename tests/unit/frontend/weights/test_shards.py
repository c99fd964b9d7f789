"""The part of a checkpoint that a rank binds: its own numbers, as views of mapped files, and named mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from spyre_mlir.errors import BindingError, InputError
from spyre_mlir.frontend import Program, import_program
from spyre_mlir.frontend.process_groups import without_exchange
from spyre_mlir.frontend.weights.binding import bind
from spyre_mlir.frontend.weights.shards import Shards

WIDTH, INNER, RANKS = 1024, 8192, 4
BYTES = 2 * WIDTH * INNER * 4
SHARDS: Shards = {"*.up.weight": 0, "*.down.weight": 1}


class Part(nn.Module):
    """Some rows of one weight, the same columns of another, and all of a bias."""

    def __init__(self, inner: int) -> None:
        super().__init__()
        self.block = nn.Module()
        self.block.up, self.block.down = nn.Linear(WIDTH, inner, bias=False), nn.Linear(inner, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.block.down(torch.relu(self.block.up(x)))


def part(inner: int = INNER // RANKS) -> Program:
    with torch.device("meta"):
        return import_program(Part(inner).eval(), (torch.zeros(2, WIDTH),))


@pytest.fixture(scope="module")
def whole() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return Part(INNER).state_dict()


def test_a_rank_has_its_part_of_each_named_tensor(whole: dict[str, torch.Tensor]) -> None:
    for rank in range(RANKS):
        with without_exchange(rank, RANKS):
            values = bind(part(), whole, shards=SHARDS).values
        own = slice(rank * INNER // RANKS, (rank + 1) * INNER // RANKS)
        assert torch.equal(values["block.up.weight"], whole["block.up.weight"][own])
        assert torch.equal(values["block.down.weight"], whole["block.down.weight"][:, own])
        assert torch.equal(values["block.down.bias"], whole["block.down.bias"])


def test_a_function_divides_weights_that_were_joined() -> None:
    """Both halves of a joined weight are divided, not the joined weight."""
    joined = torch.arange(float(2 * INNER))[:, None].expand(-1, WIDTH).contiguous()

    def halves(tensor: torch.Tensor, rank: int, count: int) -> torch.Tensor:
        return torch.cat([half.chunk(count)[rank] for half in tensor.chunk(2)])

    given = {"block.up.weight": joined, "block.down.weight": torch.zeros(WIDTH, 2 * INNER // RANKS)}
    with without_exchange(1, RANKS):
        bias = {"block.down.bias": torch.zeros(WIDTH)}
        bound = bind(part(2 * INNER // RANKS), {**given, **bias}, shards={"block.up.weight": halves})
    first = bound.values["block.up.weight"][:, 0]
    each = INNER // RANKS
    assert first.tolist() == [*range(each, 2 * each), *range(INNER + each, INNER + 2 * each)]


def resident_bytes(path: Path) -> int:
    """Bytes of a mapped file that this process has touched."""
    found, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first, *rest = line.split()
        if "-" in first and ":" not in first:
            inside = bool(rest) and rest[-1] == str(path)
        elif inside and first == "Rss:":
            found += 1024 * int(rest[0])
    return found


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the system does not tell what is resident")
def test_no_part_of_another_rank_is_touched(tmp_path: Path, whole: dict[str, torch.Tensor]) -> None:
    """Binding touches nothing; reading the part of a row-divided weight touches a fourth of it, in pages."""
    save_file(whole, path := tmp_path / "model.safetensors")
    with without_exchange(2, RANKS):
        values = bind(part(), path, shards=SHARDS).values
        before = resident_bytes(path)
        assert before < BYTES / 50
        values["block.up.weight"].sum()
    assert 0.9 * BYTES / 2 / RANKS < resident_bytes(path) - before < 1.5 * BYTES / 2 / RANKS


def test_what_cannot_be_divided_is_listed(whole: dict[str, torch.Tensor]) -> None:
    with without_exchange(0, 3), pytest.raises(BindingError) as caught:
        bind(part(), whole, shards={**SHARDS, "*.bias": 1, "*.gate.weight": 0})
    text = str(caught.value)
    assert "block.up.weight: dimension 0 of shape [8192, 1024] has no 3 equal parts" in text
    assert "block.down.bias: dimension 1 of shape [1024] has no 3 equal parts" in text
    assert "shards: '*.gate.weight' fits no tensor" in text


def test_a_whole_tensor_without_a_shard_is_of_another_shape(whole: dict[str, torch.Tensor]) -> None:
    with without_exchange(0, RANKS), pytest.raises(BindingError, match=r"block\.down\.weight: expected float32\[1024"):
        bind(part(), whole, shards={"*.up.weight": 0})


def test_shards_need_a_process_group(whole: dict[str, torch.Tensor]) -> None:
    with pytest.raises(InputError, match="binding the part of a rank needs a process group"):
        bind(part(), whole, shards=SHARDS)

"""`flex_attention`: functions of scores and of masks, at every level, in `torch.compile` and from disk as eager."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import AuxRequest, BlockMask, and_masks, create_block_mask, flex_attention

import spyre_mlir
from tests.end_to_end.importing.against_eager import Programs, close, eager, model_of, results

pytestmark = pytest.mark.filterwarnings("ignore")
HEADS, ROWS, WIDTH = 4, 32, 16


def drawn(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


Q, K, V = (drawn(2, HEADS, ROWS, WIDTH, seed=seed) for seed in (1, 2, 3))
FEW_K, FEW_V = (drawn(2, 2, ROWS, WIDTH, seed=seed) for seed in (4, 5))
DOCUMENTS = torch.tensor([0] * 7 + [1] * 15 + [2] * 10)


def mask_of(seen: Callable[..., Any]) -> BlockMask:
    return create_block_mask(seen, None, None, ROWS, ROWS, device="cpu")


def before(_b: Tensor, _h: Tensor, row: Tensor, column: Tensor) -> Tensor:
    return row >= column


def near(_b: Tensor, _h: Tensor, row: Tensor, column: Tensor) -> Tensor:
    return row - column < 6


def same_document(_b: Tensor, _h: Tensor, row: Tensor, column: Tensor) -> Tensor:
    return DOCUMENTS[row] == DOCUMENTS[column]


CAUSAL, WINDOW = mask_of(before), mask_of(and_masks(before, near))


def causal(q: Tensor, k: Tensor, v: Tensor) -> Any:
    return flex_attention(q, k, v, block_mask=CAUSAL)


def sliding_window(q: Tensor, k: Tensor, v: Tensor) -> Any:
    return flex_attention(q, k, v, block_mask=WINDOW)


def relative_positions(q: Tensor, k: Tensor, v: Tensor) -> Any:
    return flex_attention(q, k, v, score_mod=lambda score, _b, _h, row, column: score + (row - column) * 0.1)


def softcap(q: Tensor, k: Tensor, v: Tensor) -> Any:
    return flex_attention(q, k, v, score_mod=lambda score, *_: 2 * torch.tanh(score / 2), block_mask=CAUSAL, scale=0.5)


def grouped_queries(q: Tensor, k: Tensor, v: Tensor) -> Any:
    return flex_attention(q, k, v, block_mask=CAUSAL, enable_gqa=True)


def documents(q: Tensor, k: Tensor, v: Tensor) -> Any:
    return flex_attention(q, k, v, block_mask=mask_of(and_masks(before, same_document)))


def documents_of_a_call(q: Tensor, k: Tensor, v: Tensor, ids: Tensor) -> Any:
    def masked(score: Tensor, batch: Tensor, _h: Tensor, row: Tensor, column: Tensor) -> Tensor:
        return torch.where(ids[batch, row] == ids[batch, column], score, -float("inf"))

    return flex_attention(q, k, v, score_mod=masked)


def lengths_of_a_call(q: Tensor, k: Tensor, v: Tensor, lengths: Tensor) -> Any:
    def within(score: Tensor, batch: Tensor, _h: Tensor, _row: Tensor, column: Tensor) -> Tensor:
        return torch.where(column < lengths[batch], score, -float("inf"))

    return flex_attention(q, k, v, score_mod=within)


def rows_that_see_nothing(q: Tensor, k: Tensor, v: Tensor) -> Any:
    seen = mask_of(lambda _b, _h, row, column: (row > 3) & (column < row - 2))
    return flex_attention(q, k, v, block_mask=seen)


def heads_that_differ(q: Tensor, k: Tensor, v: Tensor) -> Any:
    def some(score: Tensor, _b: Tensor, head: Tensor, row: Tensor, column: Tensor) -> Tensor:
        return torch.where((head % 2 == 0) | (row >= column), score, score - 4)

    return flex_attention(q, k, v, score_mod=some)


def numbers_of_a_function(q: Tensor, k: Tensor, v: Tensor) -> Any:
    def scaled(score: Tensor, _b: Tensor, head: Tensor, _row: Tensor, _column: Tensor) -> Tensor:
        return score * torch.tensor([1.0, 0.5, 0.25, 2.0])[head]

    return flex_attention(q, k, v, score_mod=scaled)


def log_sums(q: Tensor, k: Tensor, v: Tensor) -> Any:
    return flex_attention(q, k, v, block_mask=CAUSAL, return_lse=True)


def auxiliary_results(q: Tensor, k: Tensor, v: Tensor) -> Any:
    out, auxiliary = flex_attention(q, k, v, return_aux=AuxRequest(lse=True))
    return out, auxiliary.lse


def queries_of_another_length(q: Tensor, k: Tensor, v: Tensor) -> Any:
    return flex_attention(q[:, :, :5], k, v[..., :8], score_mod=lambda score, *_: score * 0.5)


class Alibi(nn.Module):
    """A slope per head, which is a parameter, and a table of biases, which is a buffer."""

    slopes: Tensor
    table: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.slopes = nn.Parameter(torch.tensor([0.5, 0.25, 0.125, 0.0625]))
        self.register_buffer("table", drawn(HEADS, 2 * ROWS, seed=8))

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        def biased(score: Tensor, _b: Tensor, head: Tensor, row: Tensor, column: Tensor) -> Tensor:
            return score + self.slopes[head] * (column - row) + self.table[head, row - column + ROWS]

        return flex_attention(q, k, v, score_mod=biased, block_mask=CAUSAL)


class Layer(nn.Module):
    """Projections around attention: heads are a transposed view, and the result is one row per token again."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.qkv = nn.Linear(HEADS * WIDTH, 3 * HEADS * WIDTH)
        self.out = nn.Linear(HEADS * WIDTH, HEADS * WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part.unflatten(-1, (HEADS, WIDTH)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        attended = flex_attention(
            q, k, v, score_mod=lambda s, _b, _h, row, col: s - (row - col) * 0.2, block_mask=CAUSAL
        )
        return self.out(attended.transpose(1, 2).flatten(2))


IDS = torch.tensor([[0] * 10 + [1] * 22, [0] * 25 + [1] * 7])
PROGRAMS: Programs = {
    **{
        function.__name__: (function, (Q, K, V))
        for function in (
            causal,
            sliding_window,
            relative_positions,
            softcap,
            documents,
            rows_that_see_nothing,
            heads_that_differ,
            numbers_of_a_function,
            log_sums,
            auxiliary_results,
            queries_of_another_length,
        )
    },
    "grouped_queries": (grouped_queries, (Q, FEW_K, FEW_V)),
    "documents_of_a_call": (documents_of_a_call, (Q, K, V, IDS)),
    "lengths_of_a_call": (lengths_of_a_call, (Q, K, V, torch.tensor([20, 31]))),
    "Alibi": (Alibi(), (Q, K, V)),
    "Layer": (Layer().eval(), (drawn(2, ROWS, HEADS * WIDTH, seed=9),)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_level_is_eager(name: str) -> None:
    model, inputs = model_of(PROGRAMS, name)
    compiled = spyre_mlir.compile(model, inputs, numerics="exact")
    close(results(compiled, inputs), eager(model, inputs))
    verification = compiled.verify(*inputs)
    assert verification, str(verification)


@pytest.mark.parametrize("name", PROGRAMS)
def test_torch_compile_in_one_graph(name: str) -> None:
    model, inputs = model_of(PROGRAMS, name)
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="spyre", fullgraph=True, options={"numerics": "exact"})
    close(results(compiled, inputs), eager(model, inputs))


@pytest.mark.parametrize("name", ["Layer", "documents_of_a_call"])
def test_from_disk(name: str, tmp_path: Path) -> None:
    model, inputs = model_of(PROGRAMS, name)
    folder = spyre_mlir.compile(model, inputs, numerics="exact").save(tmp_path / "bundle")
    close(results(spyre_mlir.load(folder, numerics="exact"), inputs), eager(model, inputs))

"""Small models: where padding stays out of results, and where it would not."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import pytest
import torch
from torch import nn
from torch.export import Dim

import spyre_mlir
from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dynamic.model import DynamicModel
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.padding.growth import Pair
from spyre_mlir.padding.proof import prove
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context

LENGTH = {1: Dim("length", min=8, max=512)}
BUCKET = 70


class Model(nn.Module):
    """A function as a model."""

    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        return self.function(*tensors)


def compiled(function: Callable[..., torch.Tensor], *examples: torch.Tensor) -> DynamicModel:
    shapes = ((LENGTH,) * len(examples),)
    made = spyre_mlir.compile(
        Model(function), examples, dynamic_shapes=shapes, buckets=[BUCKET], numerics="exact", specializations=1
    )
    assert isinstance(made, DynamicModel)
    return made


def tokens(length: int = 20) -> torch.Tensor:
    return torch.randn(2, length, 16, generator=torch.Generator().manual_seed(length))


def attention(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return (x @ x.transpose(1, 2) + mask).softmax(-1) @ x


def causal(x: torch.Tensor) -> torch.Tensor:
    length = x.shape[1]
    return attention(x, torch.full((length, length), -torch.inf).triu(1))


def window(x: torch.Tensor) -> torch.Tensor:
    place = torch.arange(x.shape[1])
    seen = (place[None] <= place[:, None]) & (place[None] > place[:, None] - 4)
    return nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=seen)


def masked(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return attention(x, (1 - mask[:, None]) * torch.finfo(torch.float32).min)


TABLE = torch.linspace(-1, 1, 512 * 16).reshape(512, 16)
PASSED: dict[str, Callable[..., torch.Tensor]] = {
    "tokens alone": lambda x: torch.sigmoid(x) + 1,
    "causal mask": causal,
    "flag of attention": lambda x: nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True),
    "window": window,
    "first rows of a table": lambda x: x + TABLE[: x.shape[1]],
    "first rows of what is computed": lambda x: x * (TABLE * 2).exp()[: x.shape[1]],
    "first token": lambda x: x[:, 0] * 2,
    "first tokens": lambda x: x[:, 2:8] * 2,
    "sum of what is padded with 0": lambda x: x.sum(1),
    "running sum": lambda x: x.cumsum(1),
    "each twice": lambda x: x.repeat_interleave(2, 1) * torch.arange(2 * x.shape[1])[:, None],
}
REFUSED: dict[str, tuple[Callable[..., torch.Tensor], str]] = {
    "mean": (lambda x: x.mean(1), "other numbers, for another length"),
    "sum of what is not 0": (lambda x: x.exp().sum(1), "addf takes in padding, which holds 1"),
    "sum with rows of a table": (
        lambda x: (x + TABLE[: x.shape[1]]).sum(1),
        "addf takes in padding, which holds any numbers",
    ),
    "largest": (lambda x: x.amax(1), "maximumf takes in padding, which holds 0"),
    "attention to all": (
        lambda x: attention(x + 1, torch.zeros(())),
        "maximumf takes in padding, which holds any numbers",
    ),
    "weak mask": (
        lambda x: attention(x, torch.full((x.shape[1], x.shape[1]), -100.0).triu(1)),
        "maximumf takes in padding, which holds -100",
    ),
    "mask of the past": (
        lambda x: attention(x, torch.full((x.shape[1], x.shape[1]), -torch.inf).tril(-1)),
        "maximumf takes in padding",
    ),
    "last token": (lambda x: x[:, -1] * 2, "for another length"),
    "reversed": (lambda x: x.flip(1) * 2, "for another length"),
    "merged with the batch": (lambda x: x.reshape(-1, 16).t() @ x.reshape(-1, 16), "for another length"),
    "a copy behind it": (lambda x: torch.cat([x, x + 1], 1), "for another length"),
    "places from the end": (lambda x: x * torch.arange(x.shape[1], 0, -1)[:, None], "for another length"),
    "a fraction of the length": (lambda x: x * (torch.arange(x.shape[1]) / x.shape[1])[:, None], "for another length"),
}


@pytest.mark.parametrize("name", PASSED)
def test_what_padding_does_not_reach_runs_on_the_bucket(name: str) -> None:
    model = compiled(PASSED[name], tokens())
    for length in (20, 69, BUCKET):
        x = tokens(length)
        torch.testing.assert_close(model(x), PASSED[name](x), rtol=1e-5, atol=1e-5)
    assert len(model.programs) == 1


def test_padding_of_a_mask_among_the_inputs_masks() -> None:
    mask = torch.ones(2, 20)
    mask[0, 15:] = 0
    model = compiled(masked, tokens(), mask)
    torch.testing.assert_close(model(tokens(), mask), masked(tokens(), mask), rtol=1e-5, atol=1e-5)
    assert len(model.programs) == 1


@pytest.mark.parametrize("name", REFUSED)
def test_what_padding_would_reach_is_refused(name: str) -> None:
    function, because = REFUSED[name]
    with pytest.raises(UnsupportedError, match=f"inputs cannot be padded: .*{because}"):
        compiled(function, tokens())


def test_infinite_padding_is_noticed() -> None:
    bias = tokens(1)

    def scores(x: torch.Tensor) -> torch.Tensor:
        return causal(1 / (x + bias - bias))  # infinite where x is 0, which no range of numbers says

    model, x = compiled(scores, tokens()), tokens() + 5
    torch.testing.assert_close(model(x), scores(x), rtol=1e-4, atol=1e-4)
    assert len(model.programs) == 2


BEYOND = """
func.func @main(%x: tensor<SIZExf32>) -> tensor<4xf32> {
  %0 = spyre.loop.nest [d0 = 4] ins(%x[d0 + 6] : tensor<SIZExf32>) -> [d0] : tensor<4xf32> {
  ^bb0(%a: f32):
    spyre.loop.yield %a : f32
  }
  func.return %0 : tensor<4xf32>
}
"""


def proved(text: str, least: int) -> None:
    texts = [text.replace("SIZE", str(size)) for size in (70, 20)]
    larger, smaller = (functions(parse_module(text, make_context(), "main.mlir"))[0] for text in texts)
    prove(Pair(larger, 70, smaller, 20), {}, least)


@pytest.mark.parametrize(("least", "passes"), [(10, True), (9, False)])
def test_elements_beyond_the_shortest_length(least: int, passes: bool) -> None:
    with nullcontext() if passes else pytest.raises(UnsupportedError, match="beyond the shortest"):
        proved(BEYOND, least)


DIAGONAL = """
func.func @main(%x: tensor<SIZExSIZExf32>) -> tensor<1xf32> {
  %0 = spyre.loop.nest [d0 = SIZE] ins(%x[PLACE] : tensor<SIZExSIZExf32>) -> [0] : tensor<1xf32> reduce "arith.addf" {
  ^bb0(%a: f32):
    spyre.loop.yield %a : f32
  }
  func.return %0 : tensor<1xf32>
}
"""


@pytest.mark.parametrize(("place", "passes"), [("d0, 1", True), ("1, d0", True), ("d0, d0", False)])
def test_nothing_is_known_where_two_dimensions_are_padding(place: str, passes: bool) -> None:
    with nullcontext() if passes else pytest.raises(UnsupportedError, match="addf takes in padding"):
        proved(DIAGONAL.replace("PLACE", place), 2)


SQUARE = """
func.func @main(%x: tensor<SIZExSIZExf32>) -> tensor<1xf32> {
  %0 = spyre.loop.nest [d0 = SIZE, d1 = SIZE] ins(%x[d0, d1] : tensor<SIZExSIZExf32>) -> [0] : tensor<1xf32> reduce "arith.addf" {
  ^bb0(%a: f32):
    spyre.loop.yield %a : f32
  }
  func.return %0 : tensor<1xf32>
}
"""  # noqa: E501 - a nest has one line


def test_a_sum_of_what_is_padding_of_two_dimensions_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="takes in what is padding of two dimensions"):
        proved(SQUARE, 2)


MERGED = """
func.func @main(%x: tensor<SIZEx3xf32>) -> tensor<PIXELSxf32> {
  %0 = spyre.loop.nest [d0 = SIZE, d1 = 3] ins(%x[d0, d1] : tensor<SIZEx3xf32>) -> [PLACE] : tensor<PIXELSxf32> {
  ^bb0(%a: f32):
    spyre.loop.yield %a : f32
  }
  func.return %0 : tensor<PIXELSxf32>
}
"""


@pytest.mark.parametrize(
    ("place", "passes"), [("d0 * 3 + d1", True), ("d0 * 2 + d1", False), ("d0 * 3 + d1 + 1", False)]
)
def test_a_growing_loop_outside_of_others_may_be_merged_with_them(place: str, passes: bool) -> None:
    """Padding of the merged dimension is behind the elements of the caller only if whole blocks of three follow."""
    texts = (MERGED.replace("PLACE", place).replace("SIZE", str(n)).replace("PIXELS", str(3 * n)) for n in (70, 20))
    larger, smaller = (functions(parse_module(text, make_context(), "main.mlir"))[0] for text in texts)
    with nullcontext() if passes else pytest.raises(UnsupportedError, match="shifted, or merged"):
        prove(Pair(larger, 70, smaller, 20), {}, 2)


GATHER = """
func.func @main(%ids: tensor<IDSxf32>, %table: tensor<ROWSx64xf32>) -> tensor<IDSx64xf32> {
  %0 = spyre.loop.gather [s = IDS, h = 64] rows(%ids[s] : tensor<IDSxf32>) of axis 0
      in %table[0, h] : tensor<ROWSx64xf32> -> [s, h] : tensor<IDSx64xf32>
  func.return %0 : tensor<IDSx64xf32>
}
"""


@pytest.mark.parametrize(("ids", "rows", "passes"), [("SIZE", "9", True), ("5", "SIZE", False)])
def test_rows_by_index_must_not_be_padding(ids: str, rows: str, passes: bool) -> None:
    with nullcontext() if passes else pytest.raises(UnsupportedError, match="an index may name a padded row"):
        proved(GATHER.replace("IDS", ids).replace("ROWS", rows), 2)


def test_the_error_names_the_line() -> None:
    with pytest.raises(UnsupportedError) as error:
        compiled(lambda x: x.exp().sum(1), tokens())
    assert __file__ in str(error.value.where)

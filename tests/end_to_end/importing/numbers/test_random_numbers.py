"""Random numbers: those of eager after the same seed, at every level, and the generator ends where eager leaves it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as f

import spyre_mlir
from spyre_mlir.errors import UnsupportedError
from tests.functions import FunctionModel

pytestmark = pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")
distributions = torch.distributions


def spread(*shape: int) -> Tensor:
    return torch.linspace(-1.5, 1.5, torch.Size(shape).numel()).reshape(shape)


def factories(x: Tensor) -> Any:
    made = (
        torch.rand(4, 5),
        torch.randn(20),
        torch.randint(3, 9, (6,)),
        torch.randperm(7),
        torch.normal(1.0, 2.0, (4, 5)),
    )
    return x + made[0] * made[4], *made[1:4], torch.randint(0, 2**40, (3,))


def likes(x: Tensor) -> Any:
    return torch.rand_like(x), torch.randn_like(x), torch.randint_like(x, 5), torch.randint_like(x, 2, 9)


def in_memory_order(x: Tensor) -> Any:
    """Torch fills what is transposed, or has gaps, in the order of its memory."""
    gaps = torch.empty(8, 10)[:, ::2]
    return torch.rand_like(x.t()), torch.empty_like(x.t()).normal_(), gaps.normal_() + 1, torch.randn_like(gaps)


def fillings(x: Tensor) -> Any:
    new = lambda: torch.empty_like(x)  # noqa: E731
    drawn = [new().uniform_(1, 3), new().normal_(2, 3), new().bernoulli_(0.3), new().exponential_(2.0)]
    drawn += [new().geometric_(0.4), new().cauchy_(1, 2), new().log_normal_(0.5, 0.25)]
    whole = torch.empty(5, dtype=torch.int32)
    return *drawn, whole.clone().random_(), whole.clone().random_(5), new().bernoulli_(x.abs() / 2)


def by_values(x: Tensor) -> Any:
    p = torch.softmax(x, -1)
    return (
        torch.bernoulli(p), torch.bernoulli(x, 0.25), torch.bernoulli(x, 0.0),
        torch.multinomial(p, 3, True), torch.multinomial(p, 2),
        torch.normal(x, 1.5), torch.normal(0.5, p), torch.normal(x, p), torch.poisson(p * 9),
    )  # fmt: skip


def of_distributions(x: Tensor) -> Any:
    named: dict[str, Any] = {"validate_args": False}
    return (
        distributions.Normal(x, 2.0, **named).sample(), distributions.Categorical(logits=x, **named).sample(),
        distributions.Gamma(x.abs() + 1, 1.0, **named).sample(), f.gumbel_softmax(x, hard=True),
    )  # fmt: skip


def dropouts(x: Tensor) -> Any:
    y = x.reshape(2, 2, 5)
    turned = f.dropout(x.t(), 0.4, True)
    parts = f.dropout(x, 0.3, True), f.alpha_dropout(x, 0.3, True), f.dropout(x, 1.0, True), f.dropout(x, 0.5, False)
    natives = *torch.native_dropout(x.t(), 0.3, True), *torch.native_dropout(x, 1.0, True)
    whole = f.dropout1d(y, 0.5, True), f.feature_alpha_dropout(y, 0.2, True), f.rrelu(x, training=True)
    return turned, *parts, *natives, *whole


def unread(x: Tensor) -> Any:
    """What nobody reads moves the generator on all the same."""
    torch.rand(3)
    f.dropout(x, 0.5, True)
    return x + torch.rand(5)


def parts(x: Tensor) -> Any:
    """A draw of a part is a write to the whole."""
    y = x.clone()
    y.t().uniform_()
    y[:, 1].normal_()
    return y, torch.rand(2)


def waiting(x: Tensor) -> Any:
    """The second draw waits for the device, and the third, which waits for nothing, for the second."""
    first = torch.softmax(torch.rand(4, 4) @ x, -1)
    return torch.multinomial(first, 4, True), torch.rand(3)


PROGRAMS: tuple[Callable[..., Any], ...] = (
    factories, likes, in_memory_order, fillings, by_values, of_distributions, dropouts, unread, parts, waiting,
)  # fmt: skip


def drawn(model: Callable[..., Any], *args: Tensor, seed: int) -> tuple[list[Tensor], Tensor]:
    torch.manual_seed(seed)
    with torch.no_grad():
        results = torch.utils._pytree.tree_leaves(model(*args))
    return results, torch.get_rng_state()


def check(model: nn.Module, compiled: Callable[..., Any], *args: Tensor, seeds: tuple[int, ...] = (0, 1)) -> None:
    for seed in seeds:
        (wanted, after), (got, found) = drawn(model, *args, seed=seed), drawn(compiled, *args, seed=seed)
        for a, b in zip(got, wanted, strict=True):
            assert a.dtype is b.dtype
            torch.testing.assert_close(a, b, rtol=0, atol=2e-6 * float(b.abs().max()) if b.is_floating_point() else 0)
        assert torch.equal(after, found)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_numbers_and_generator_are_those_of_eager(program: Callable[..., Any]) -> None:
    x, model = spread(4, 5), FunctionModel(program)
    check(model, spyre_mlir.compile(model, (x,), numerics="exact"), x)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_torch_compile_draws_the_same(program: Callable[..., Any]) -> None:
    x, model = spread(4, 5), FunctionModel(program)
    check(model, torch.compile(model, backend="spyre", options={"numerics": "exact"}), x)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_every_level_draws_the_same(program: Callable[..., Any]) -> None:
    x = spread(4, 5)
    compiled = spyre_mlir.compile(FunctionModel(program), (x,), numerics="exact")
    torch.manual_seed(7)
    before = torch.get_rng_state()
    verification = compiled.verify(x)
    assert verification, str(verification)
    assert str(compiled.accuracy(x))
    assert torch.equal(before, torch.get_rng_state())


class Block(nn.Module):
    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.inner, self.drop = nn.Linear(16, 16, dtype=dtype), nn.Dropout(0.25)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.drop(torch.relu(self.inner(x)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_layers_in_training_mode(dtype: torch.dtype) -> None:
    model, x = nn.Sequential(*(Block(dtype) for _ in range(8))).train(), spread(4, 16).to(dtype)
    compiled = spyre_mlir.compile(model, (x,), numerics="exact")
    torch.manual_seed(1)
    assert (verification := compiled.verify(x)), str(verification)
    if dtype is torch.float32:
        check(model, compiled, x)


@pytest.mark.parametrize(
    "model",
    [
        nn.LSTM(4, 4, 3, dropout=0.3),
        nn.LSTM(4, 4, 2, dropout=0.3, bidirectional=True, batch_first=True),
        nn.GRU(4, 4, 2, dropout=0.5),
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
    ],
    ids=["lstm", "both ways", "gru", "encoder layer"],
)
def test_modules_in_training_mode(model: nn.Module) -> None:
    x = spread(3, 2, 8 if isinstance(model, nn.TransformerEncoderLayer) else 4)
    check(model.train(), spyre_mlir.compile(model, (x,), numerics="exact"), x)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_with_dropout(causal: bool) -> None:
    model = FunctionModel(lambda q, m: f.scaled_dot_product_attention(q, q, q, None if causal else m, 0.4, causal))
    args = spread(1, 2, 4, 8), torch.ones(4, 4, dtype=torch.bool).tril(-1)  # the first row sees nothing: eager has 0
    check(model, spyre_mlir.compile(model, args, numerics="exact"), *args)


def test_sizes_by_symbols() -> None:
    model = FunctionModel(lambda x: f.dropout(x, 0.5, True) + torch.rand(x.shape[0], 4))
    rows = torch.export.Dim("rows", min=2, max=32)
    compiled = spyre_mlir.compile(model, (spread(3, 4),), numerics="exact", dynamic_shapes=(({0: rows},),))
    for count in (3, 5):
        check(model, compiled, spread(count, 4))


def test_a_saved_program_draws_at_each_call(tmp_path: Path) -> None:
    model, x = FunctionModel(waiting), spread(4, 5)
    spyre_mlir.compile(model, (x,)).save(tmp_path / "saved")
    loaded = spyre_mlir.load(tmp_path / "saved", numerics="exact")
    check(model, loaded, x)
    one, two = loaded(x), loaded(x)
    assert not torch.equal(one[1], two[1])


def test_device_numerics_round_what_is_drawn() -> None:
    compiled = spyre_mlir.compile(FunctionModel(lambda x: x * torch.rand_like(x)), (spread(4, 5),), numerics="device")
    torch.manual_seed(3)
    got = compiled(spread(4, 5))
    torch.manual_seed(3)
    torch.testing.assert_close(got, spread(4, 5) * torch.rand(4, 5), rtol=0, atol=2**-8)


def test_draws_can_be_forbidden() -> None:
    with pytest.raises(UnsupportedError, match="random::uniform: random numbers are drawn by the host"):
        spyre_mlir.compile(FunctionModel(torch.rand_like), (spread(4, 5),), host_fallback="error")

"""Integers beyond 2^24: at every level and in both doors what eager has, bit for bit, and never wrapped or rounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import spyre_mlir
from spyre_mlir.errors import InputError
from spyre_mlir.pipeline import LEVELS
from spyre_mlir.runtime.larger_integers import LargerIntegersWarning
from spyre_mlir.torch_compile import forget
from tests.functions import FunctionModel

pytestmark = pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")


def numbers(most: int, dtype: torch.dtype, seed: int) -> Tensor:
    seeded = torch.Generator().manual_seed(seed)
    return torch.randint(-most, most, (3, 65), generator=seeded, dtype=torch.int64).to(dtype)


LONG = numbers(2**62, torch.int64, 1), numbers(2**62, torch.int64, 2)
INT = numbers(2**31 - 1, torch.int32, 3), numbers(2**31 - 1, torch.int32, 4)
ROWS = torch.linspace(-1, 1, 7 * 64).reshape(7, 64)


def hashed(a: Tensor, b: Tensor) -> Tensor:
    """Buckets as a hashing embedding makes them: the product wraps."""
    return ((a * 2654435761) ^ (b >> 7)) % 1024


def mixed(a: Tensor, b: Tensor) -> Tensor:
    """Xorshift: every step wraps at the width of the type."""
    x = a ^ (a << 13)
    x = x ^ (x >> 7)
    return (x ^ (x << 17)) + b


PROGRAMS: dict[str, Callable[..., Any]] = {
    "sum": lambda a, b: a + b,
    "difference": lambda a, b: a - b * 3,
    "product": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or, xor, not": lambda a, b: (a | b) ^ ~a,
    "shifts": lambda a, b: (a << 5) + (b >> 9),
    "comparisons": lambda a, b: (a < b) | (a == b),
    "sums of rows": lambda a, b: a.sum(-1) + b.amax(-1),
    "running sum": lambda a, b: a.cumsum(-1),
    "hash": hashed,
    "xorshift": mixed,
    "rows chosen": lambda a, b: torch.nn.functional.embedding((a % 7).abs(), ROWS) * 2,
    "selection": lambda a, b: torch.where(a > 0, a, b).flip(-1),
    "quotient": lambda a, b: torch.div(a, 1009, rounding_mode="floor") + b % 1000,
    "moves": lambda a, b: torch.cat([a.t(), b.t()], 0)[1:70],
}


@pytest.mark.parametrize("inputs", [LONG, INT], ids=["int64", "int32"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_level_is_eager(name: str, inputs: tuple[Tensor, Tensor]) -> None:
    wanted = PROGRAMS[name](*inputs)
    made = spyre_mlir.compile(FunctionModel(PROGRAMS[name]), inputs, integers="exact")
    for level in LEVELS:
        (got,) = made._run(level, made._inputs(inputs, {}))
        same(torch.from_numpy(got), wanted, level)
    same(made(*inputs), wanted, "bundle")


def same(got: Tensor, wanted: Tensor, where: str) -> None:
    if wanted.is_floating_point():
        torch.testing.assert_close(got.double(), wanted.double(), rtol=2e-3, atol=2e-3, msg=where)
    else:
        assert torch.equal(got.to(wanted.dtype), wanted), where


@pytest.mark.parametrize("name", PROGRAMS)
def test_torch_compile_is_eager(name: str) -> None:
    forget()
    compiled = torch.compile(FunctionModel(PROGRAMS[name]), backend="spyre", options={"integers": "exact"})
    same(compiled(*LONG), PROGRAMS[name](*LONG), name)


def test_a_call_with_larger_integers_compiles_again_once_and_says_so() -> None:
    small = torch.tensor([1, -2, 3]), torch.tensor([5, 6, 7])
    made = spyre_mlir.compile(FunctionModel(lambda a, b: a * b), small)
    assert torch.equal(made(*small), small[0] * small[1])
    assert made.host_steps == ()
    for large in ((torch.tensor([2**40, 1, 2]), small[1]), (torch.tensor([4097, 1, 2]), torch.tensor([4097, 1, 2]))):
        fresh = spyre_mlir.compile(FunctionModel(lambda a, b: a * b), small)
        with pytest.warns(LargerIntegersWarning, match="compile with integers='exact'") as met:
            assert torch.equal(fresh(*large), large[0] * large[1])
        assert [w.category for w in met].count(LargerIntegersWarning) == 1
        assert torch.equal(fresh(*large), large[0] * large[1])  # no second warning, which would be an error
        assert torch.equal(fresh(*small), small[0] * small[1])


SHORT = torch.tensor([30_000, -30_000, 7, 4097], dtype=torch.int16)


def test_products_of_short_integers_wrap() -> None:
    def products(a: Tensor) -> Any:
        return a.square(), a**3, torch.addcmul(a, a, a, value=3), a[:, None] @ a[None], torch.outer(a, a).sum()

    made = spyre_mlir.compile(FunctionModel(products), (SHORT,))
    with pytest.warns(LargerIntegersWarning):
        got = made(SHORT)
    for mine, wanted in zip(got, products(SHORT), strict=True):
        assert mine.dtype == wanted.dtype
        assert torch.equal(mine, wanted)


def test_a_saved_program_says_what_to_do(tmp_path: Any) -> None:
    small = torch.tensor([1, 2, 3])
    spyre_mlir.compile(FunctionModel(lambda a: a + 1), (small,)).save(tmp_path / "bundle")
    with pytest.raises(InputError, match=r"holds 1,099,511,627,776 at \[0\]") as met:
        spyre_mlir.load(tmp_path / "bundle")(small + 2**40 - 1)
    assert "integers='exact'" in str(met.value.hint)


def test_random_numbers_are_not_drawn_twice() -> None:
    def drawing(a: Tensor) -> Tensor:
        return a * a + torch.randint(0, 9, (3,))

    a = torch.tensor([4097, 1, 2])
    with pytest.raises(spyre_mlir.errors.MachineFault, match="int32-overflow"):
        spyre_mlir.compile(FunctionModel(drawing), (a,))(a)


def test_bounded_integers_stay_on_the_device() -> None:
    """Positions, remainders and their bits: nothing of them can leave 24 bits."""

    def bounded(a: Tensor, b: Tensor) -> Tensor:
        at = torch.arange(65) * 1000 + a % 256
        return (at & (b % 16)) | ((a % 8) ^ (b % 8))

    made = spyre_mlir.compile(FunctionModel(bounded), (LONG[0] % 1000, LONG[1] % 1000), prefer_device=True)
    assert made.host_steps == ()
    inputs = LONG[0] % 100_000, LONG[1] % 100_000
    assert torch.equal(made(*inputs), bounded(*inputs))


def test_the_report_says_which_and_why() -> None:
    made = spyre_mlir.compile(FunctionModel(PROGRAMS["product"]), LONG, integers="exact")
    assert [step.op for step in made.host_steps] == ["aten.mul.Tensor"]
    assert "its integers may be as large as 9,223,372,036,854,775,808" in str(made.report())

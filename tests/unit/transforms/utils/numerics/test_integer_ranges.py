"""Integers and truth values from torch to the bundle on disk: exactly what torch computes, or a named error."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn
from xdsl.dialects.builtin import i1

import spyre_mlir
from spyre_mlir.errors import InputError, MachineFault
from spyre_mlir.transforms.utils.host_fallback import HostStepWarning
from spyre_mlir.transforms.utils.numerics.integer_ranges import Ranges, type_range
from tests.functions import FunctionModel
from tests.unit.transforms.loop_to_kernel.planning import nest

LARGEST = 2**24 - 1


def compiled(function: Callable[..., Any], *inputs: torch.Tensor) -> Any:
    return spyre_mlir.compile(FunctionModel(function), inputs, numerics="device", integers="device")


def exact(function: Callable[..., Any], *inputs: torch.Tensor) -> Any:
    """What the emitted bundle computes in device numerics is what torch computes, to the last unit."""
    made = compiled(function, *inputs)
    got, wanted = made(*inputs), function(*inputs)
    assert got.dtype == wanted.dtype
    assert torch.equal(got, wanted)
    return made


def integers(*shape: int, most: int = 1000, least: int | None = None, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    low = -most if least is None else least
    seeded = torch.Generator().manual_seed(most + sum(shape))
    return torch.randint(low, most + 1, shape, dtype=torch.int64, generator=seeded).to(dtype)


def all_of(dtype: torch.dtype) -> torch.Tensor:
    kind = torch.iinfo(dtype)
    return torch.arange(kind.min, kind.max + 1).to(dtype).reshape(2, -1)


TWO: dict[str, Callable[..., Any]] = {
    "products": lambda a, b: a * b * 9 - 1,
    "sums of rows": lambda a, b: (a * b).sum(-1) + b.sum(),
    "sums of columns": lambda a, b: (a * b).sum(0, keepdim=True) - b,
    "largest": lambda a, b: torch.maximum(a * 1000, b).amax(-1, keepdim=True) - a.amin(0),
    "transposed": lambda a, b: (a * 3).t().contiguous() + (b * b).t(),
    "parts of sticks": lambda a, b: (a * b)[:, 64:68].sum(-1) + (a * 3)[:, 5:66].amax(-1),
    "joined": lambda a, b: torch.cat([a * b, b], 1) + 1,
    "truths of integers": lambda a, b: ((a * b < 50_000) == (a >= b)) | (a == 7),
    "matrix product": lambda a, b: a @ b.t(),
    "floor division": lambda a, b: torch.div(a * b, 77, rounding_mode="floor"),
}


@pytest.mark.parametrize("name", TWO)
def test_integers_are_exact(name: str) -> None:
    exact(TWO[name], integers(5, 70, most=300), integers(5, 70, most=299))


@pytest.mark.parametrize("extent", [1, 5, 66, 130])
def test_any_extent_in_the_lanes(extent: int) -> None:
    exact(lambda a: (a * a).sum(-1) + a.amin(-1), integers(3, extent, most=300))


def test_integers_select_floats() -> None:
    """A comparison in float32, a selection in DL16: one conversion between them and nothing else."""
    x = torch.arange(-200.0, 200.0).reshape(5, 80)
    made = exact(lambda a, x: torch.where(a * a > 5000, x, -x), integers(5, 80), x)
    kernels = made.mlir("spyre.kernel")
    assert kernels.count("spyre.kernel.convert") == 1
    assert kernels.count("spyre.kernel.restickify") == 0


def test_the_place_of_the_largest_of_5000() -> None:
    x = torch.randn(7, 5000, generator=torch.Generator().manual_seed(1)).half()

    def place(x: torch.Tensor) -> torch.Tensor:
        hits = x == x.amax(-1, keepdim=True)
        return torch.where(hits, torch.arange(5000), 5000).amin(-1)

    rounded = torch.from_numpy(spyre_mlir.compile(FunctionModel(lambda x: x + 0), (x,))(x).numpy())
    assert torch.equal(compiled(place, x)(x), place(rounded))


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
@pytest.mark.parametrize(
    "function",
    [lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: -a],
    ids=["sum", "difference", "product", "negative"],
)
def test_short_integers_wrap_as_in_torch(function: Callable[..., Any], dtype: torch.dtype) -> None:
    whole = all_of(dtype)
    exact(function, whole, whole.flip(1))


def test_sixteen_bits_wrap_as_in_torch() -> None:
    a = integers(3, 70, most=2**15 - 1, dtype=torch.int16)
    exact(lambda a, b: a + b, a, a.flip(0))


FLOATS = (torch.float16, torch.float32)
KINDS = (torch.bool, torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, *FLOATS)


CASTS_IN_EVERY_RUN = (torch.bool, torch.int64, torch.float32)


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(
            k,
            marks=()
            if k in CASTS_IN_EVERY_RUN
            else pytest.mark.slow(reason="other pairs of types; one of each kind runs by default"),
            id=str(k),
        )
        for k in KINDS
    ],
)
def test_every_cast(target: torch.dtype) -> None:
    """From every type, of an input and of a computed value; towards 0, and a short integer wraps."""
    numbers = torch.tensor([[-3, -1, 0, 1, 2, 100] * 11])
    whole = numbers.abs() if target == torch.uint8 else numbers  # from negative floats nothing is defined
    sources = [whole.to(kind) / 2 if kind in FLOATS else numbers.abs().to(kind) for kind in KINDS]

    def casts(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        computed = [torch.where(g == 0, g, g.flip(1)) for g in given]
        return (*(g.to(target) for g in given), *(c.to(target) for c in computed))

    got = compiled(casts, *sources)(*sources)
    for mine, torchs in zip(got, casts(*sources), strict=True):
        assert mine.dtype == target
        assert torch.equal(mine, torchs)


def test_computed_integers_become_floats() -> None:
    exact(lambda a: (a * a).to(torch.float32) / 4, integers(3, 70, most=31))


def test_truth_values_alone() -> None:
    a, b = integers(3, 70, most=1) > 0, integers(3, 70, most=2) > 1
    exact(lambda a, b: ((a + b) * (a == b)) ^ (a <= b), a, b)
    exact(lambda a, b: a.amax(-1) & b.amin(-1), a, b)
    exact(lambda a, b: (a | b).sum(-1), a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([-11_184_819, 11_184_819, -LARGEST, LARGEST, -1], [5_592_409, -5_592_409, LARGEST, -3, LARGEST]),
        ([LARGEST, LARGEST - 1, -LARGEST, 5, -5], [LARGEST - 1, 2, 4_194_304, 7, 7]),
    ],
)
def test_floor_divisions_at_the_limits(a: list[int], b: list[int]) -> None:
    """The first dividend is where a product of the quotient is rounded so that the remainder misleads."""
    exact(lambda a, b: torch.div(a, b, rounding_mode="floor"), torch.tensor(a), torch.tensor(b))


@pytest.mark.slow(reason="other values of a tested function")
def test_remainders_at_the_limits() -> None:
    """The product of the floored quotient is beyond 2^24, that of the one nearer to 0 is not."""
    a = torch.tensor([-LARGEST, LARGEST, -LARGEST, LARGEST, -LARGEST, 7, -7, 0])
    exact(torch.remainder, a, torch.tensor([10, -10, LARGEST, -LARGEST, -16, -LARGEST, LARGEST, -3]))
    exact(lambda a: torch.stack([a % 10, a % -10, a % 16, a & 60]), a)


@pytest.mark.parametrize(
    "dtype", [pytest.param(torch.int8, marks=pytest.mark.slow(reason="int16 is the wider case")), torch.int16]
)
def test_the_least_number_of_a_short_type_is_divided(dtype: torch.dtype) -> None:
    """It has no magnitude there."""
    least = torch.iinfo(dtype).min
    a = torch.tensor([least, least, least, least, least + 1, 5], dtype=dtype)
    b = torch.tensor([3, -3, least, 127, least, least], dtype=dtype)
    quotient = partial(torch.div, rounding_mode="trunc")
    exact(lambda a, b: torch.stack([torch.fmod(a, b), quotient(a, b), a % b, torch.fmod(a, 3)]), a, b)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
def test_a_number_beyond_a_short_type_wraps(dtype: torch.dtype) -> None:
    a = torch.tensor([100, 5, 50, 127], dtype=dtype)
    exact(lambda a: torch.stack([a % 1000, a + 300, a * 300, a // 1000]), a)
    exact(lambda a: torch.stack([a < 300, a >= 299, a == 256 + 5, a > 1000]), a)


@pytest.mark.parametrize("function", [torch.floor_divide, torch.remainder], ids=["quotient", "remainder"])
def test_a_floor_division_by_zero_is_a_fault(function: Callable[..., Any]) -> None:
    a = torch.tensor([5, -5, 0])
    made = compiled(function, a, torch.tensor([1, 2, 3]))
    with pytest.raises(MachineFault, match="int32-overflow: 3 integers") as met:
        made(a, torch.tensor([0, 0, 0]))
    assert "division by 0" in str(met.value.hint)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int64])
def test_the_padding_of_pools_loses_to_the_least_integer(dtype: torch.dtype) -> None:
    least = max(torch.iinfo(dtype).min, -LARGEST)
    a = torch.full((1, 2, 5, 5), least, dtype=dtype)
    a[0, 0, 2, 2] = 7
    exact(lambda a: torch.max_pool2d(a, 3, 2, 1), a)
    exact(lambda a: nn.functional.max_pool2d(a, 3, 2, 1, return_indices=True)[1], a)


def test_an_input_compared_with_small_integers_may_be_of_any_size() -> None:
    """Positions against a table of 100: the host limits them to just beyond what they are compared with."""
    a = torch.tensor([0, 99, 100, 1025, -1, 2**62, -(2**62)])
    made = exact(lambda a: torch.arange(100)[None] <= a[:, None], a)
    assert "IEEE_FP32" not in made.mlir("spyre.kernel")


def test_an_input_that_does_not_fit_is_refused() -> None:
    made = compiled(lambda a: a + 1, integers(3))
    assert torch.equal(made(torch.tensor([0, LARGEST - 1, -LARGEST])), torch.tensor([1, LARGEST, 1 - LARGEST]))
    with pytest.raises(InputError, match=r"argument 0, 'a.*', holds 16,777,216 at \[2\]") as met:
        made(torch.tensor([0, 1, 2**24]))
    assert "2^24" in str(met.value.hint)


def test_an_integer_that_becomes_a_float_must_be_one_of_float32() -> None:
    made = exact(lambda a: a.float() * 2, torch.tensor([0, 1, 1025, LARGEST, -LARGEST]))
    with pytest.raises(InputError, match="holds 16,777,217"):
        made(torch.tensor([0, 1, 1025, 2**24 + 1, 0]))


@pytest.mark.parametrize(
    "function", [lambda a: a * a, lambda a: a.sum(), lambda a: (a * 2 > 0).sum()], ids=["square", "sum", "operand"]
)
def test_a_result_beyond_float32_is_a_fault(function: Callable[..., Any]) -> None:
    made = compiled(function, integers(2, 70))
    made(integers(2, 70, most=90))
    with pytest.raises(MachineFault, match=r"int32-overflow: \d+ integers are beyond 16,777,215"):
        made(integers(2, 70, most=LARGEST, least=LARGEST - 1))


class Doubled(nn.Module):
    """Two sums of one shape: the bounds of the first are known, those of the second are not."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return a.long() + a.long(), b + b


def test_overflow_is_seen_where_files_are_shared() -> None:
    a, b = torch.full((4, 70), 9999, dtype=torch.int16), torch.full((4, 70), LARGEST)
    made = spyre_mlir.compile(Doubled(), (a, b), share_files=True, integers="device")
    with pytest.raises(MachineFault, match="int32-overflow"):
        made(a, b)
    small = b // 4
    for got, wanted in zip(made(a, small), Doubled()(a, small), strict=True):
        assert torch.equal(got, wanted)


def test_a_sum_whose_parts_leave_float32_is_a_fault() -> None:
    """The order of adding up is not public, so any order has to be exact."""
    made = compiled(lambda a: a.sum(), integers(4))
    with pytest.raises(MachineFault, match="int32-overflow"):
        made(torch.tensor([2**23, 2**23, -(2**23), -(2**23)]))


def test_padding_is_no_overflow() -> None:
    """What fills the lanes behind 70 columns is the largest integer, and what is computed from it means nothing."""
    exact(lambda a: a.amin(-1, keepdim=True) - a, integers(3, 70))


def test_a_constant_that_does_not_fit_stays_on_the_host() -> None:
    with pytest.warns(HostStepWarning, match="the integer 16777217 in a constant"):
        exact(lambda a: a + (2**24 + 1), integers(3))


def test_a_power_of_two_stands_for_no_index() -> None:
    exact(lambda a: torch.where(a > 0, a, 2**62).amin(-1), integers(3, 70))


def test_the_report_counts_integer_kernels() -> None:
    made = compiled(lambda a, x: torch.where(a * a > 5000, x, -x), integers(5, 80), torch.ones(5, 80))
    text = str(made.report())
    assert "1 kernel computes integers of unknown size: beyond 16,777,215 is a fault" in text
    assert "1 kernel converts between formats of numbers" in text


def test_every_level_agrees() -> None:
    a = integers(5, 70)
    made = spyre_mlir.compile(FunctionModel(lambda a: (a * a).t().amax(-1) + a.sum(0)), (a,), numerics="exact")
    assert made.verify(a, tolerance=0.0)


def test_bounds_beyond_the_device() -> None:
    """A quarter of an input is below 2^24 where the device has the input, and else below 2^61; sums wrap."""
    kind, short = "tensor<4x64xi64>", "tensor<4x64xi32>"

    def bounds(body: str, *, beyond: bool, of: str = kind) -> tuple[int, int]:
        element = of.removeprefix("tensor<4x64x").removesuffix(">")
        text = f"""func.func @main(%x: {of}) -> {of} {{
          %c = spyre.loop.constant 4.0 : f64 : tensor<{element}>
          %0 = spyre.loop.nest [m = 4, n = 64] ins(%x[m, n] : {of}, %c[] : tensor<{element}>) -> [m, n] : {of} {{
          ^bb0(%a: {element}, %b: {element}):
            %q = {body} : {element}
            spyre.loop.yield %q : {element}
          }}
          func.return %0 : {of}
        }}"""
        return Ranges(checks=False, beyond_device=beyond).of(nest(text).result)

    assert bounds("arith.floordivsi %a, %b", beyond=False)[1] <= 2**22
    assert bounds("arith.floordivsi %a, %b", beyond=True) == (-(2**61), 2**61 - 1)
    assert bounds("arith.addi %a, %b", beyond=True) == (-(2**63), 2**63 - 1)
    assert bounds("arith.addi %a, %b", beyond=True, of=short) == (-(2**31), 2**31 - 1)
    assert bounds("arith.addi %a, %b", beyond=True, of="tensor<4x64xi16>") == (-(2**15), 2**15 - 1)
    assert type_range(i1) == (0, 1)


ANY_FLOATS = torch.tensor([300.0, -300.0, 127.5, -129.0, 1000.0, 255.5, -0.5, 0.0, 3.0])


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8], ids=str)
def test_floats_wrap_where_they_become_short_integers(dtype: torch.dtype) -> None:
    exact(lambda x: x.to(dtype), ANY_FLOATS)
    exact(lambda x: x.to(dtype) + 1, ANY_FLOATS)
    exact(lambda x: x.to(dtype) > 20, ANY_FLOATS)
    exact(lambda x: x.to(dtype).int() * 3, ANY_FLOATS)


LIMITED: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], int]] = {
    "limits": (lambda x: x.clamp(-128, 127).to(torch.int8), 2),
    "limits before rounding": (lambda x: torch.floor(x.clamp(-100, 100) + 0.5).to(torch.int8), 3),
    "a sigmoid": (lambda x: (x.sigmoid() * 120).to(torch.int8), 2),
    "the largest of limited ones": (lambda x: x.clamp(-9, 9).amax(0, keepdim=True).neg().to(torch.int8), 2),
    "limits too far": (lambda x: x.clamp(-128, 128).to(torch.int8), 3),
}


@pytest.mark.parametrize(("function", "floors"), LIMITED.values(), ids=LIMITED)
def test_limited_floats_have_no_steps_to_wrap(function: Callable[[torch.Tensor], torch.Tensor], floors: int) -> None:
    """A conversion rounds down twice, once for either sign; to wrap takes another one."""
    assert exact(function, ANY_FLOATS).mlir("spyre.kernel").count('"floor"') == floors

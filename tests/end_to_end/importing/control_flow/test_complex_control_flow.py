"""Complex numbers in branches and loops: every level against eager, both entry points, saved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._higher_order_ops.map import map as mapped
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

import spyre_mlir
from spyre_mlir.errors import UnsupportedError
from tests.end_to_end.importing.against_eager import check_levels, check_torch_compile, close, eager, results
from tests.functions import FunctionModel

pytestmark = pytest.mark.filterwarnings("ignore")
EXACT: dict[str, Any] = {"numerics": "exact", "host_fallback": "error"}
X = torch.linspace(-1.0, 1.5, 64).reshape(4, 16)
UP, DOWN = (torch.polar(X + 2, 3 * X), torch.tensor(3)), (torch.polar(X.abs(), X), torch.tensor(1))
TURN = torch.polar(torch.ones(16), torch.linspace(0, 1, 16))


def zero() -> Tensor:
    return torch.zeros((), dtype=torch.int64)


def given_and_returned(z: Tensor, n: Tensor) -> Any:
    return torch.cond(n > 2, lambda z: z * TURN, lambda z: z.conj() + 1j, (z,))


def inside_alone(z: Tensor, n: Tensor) -> Any:
    def turned(x: Tensor) -> Tensor:
        return torch.view_as_real(torch.polar(x, x) * 2j).sum(-1)

    return torch.cond(n > 2, turned, lambda x: x - 1, (z.real.contiguous(),))


def returned_alone(z: Tensor, n: Tensor) -> Any:
    return torch.cond(n > 2, lambda x: torch.complex(x, -x), lambda x: x + 2j, (z.imag.contiguous(),)).abs()


def beside_real_results(z: Tensor, n: Tensor) -> Any:
    def one(z: Tensor, n: Tensor) -> Any:
        return z.abs(), z * n, n + 1, z.exp()

    def other(z: Tensor, n: Tensor) -> Any:
        return z.real + 1, z / (n + 1), n * 2, z.clone()

    length, w, count, e = torch.cond(n > 2, one, other, (z, n))
    return e - w, count, length * w


def carried(z: Tensor, n: Tensor) -> Any:
    return while_loop(lambda i, _z: i < n, lambda i, z: (i + 1, z * TURN + 0.5), (zero(), z))


def carried_unchanged(z: Tensor, n: Tensor) -> Any:
    def step(i: Tensor, w: Tensor, x: Tensor) -> Any:
        return i + 1, w.clone(), x + (w * w).real

    return while_loop(lambda i, _w, _x: i < n, step, (zero(), z, z.real.contiguous()))


def decided_by_magnitude(z: Tensor, _n: Tensor) -> Any:
    return while_loop(lambda z: z.abs().sum() > 20, lambda z: (z * (0.5 + 0.25j),), (z,))


def mandelbrot(z: Tensor, n: Tensor) -> Any:
    def step(i: Tensor, w: Tensor, c: Tensor, count: Tensor) -> Any:
        w = torch.where(w.abs() < 2, w * w + c, w)
        return i + 1, w, c.clone(), count + (w.abs() < 2)

    start = torch.zeros_like(z), z / 3, torch.zeros_like(z.real)
    return while_loop(lambda i, *_: i < n, step, (zero(), *start))[-1]


def branch_in_a_loop(z: Tensor, n: Tensor) -> Any:
    def step(i: Tensor, z: Tensor) -> Any:
        return i + 1, torch.cond(i % 2 == 0, lambda z: z * 1j, lambda z: z.conj().resolve_conj(), (z,))

    return while_loop(lambda i, _z: i < n, step, (zero(), z))


def spectrum_of_one_branch(z: Tensor, n: Tensor) -> Any:
    return torch.cond(n > 2, lambda z: torch.fft.fft(z), lambda z: z * 16, (z,))


def scanned(z: Tensor, _n: Tensor) -> Any:
    return scan(lambda c, row: (c * row, c + row), z[0] * 1j, z)


def of_each_row(z: Tensor, n: Tensor) -> Any:
    return mapped(lambda row, n: row * TURN + n, z, n)


def of_two_views_of_one_tensor(z: Tensor, n: Tensor) -> Any:
    return torch.cond(n > 2, lambda z: z.real * 2, lambda z: z.imag + 1, (z,))


PROGRAMS: tuple[Callable[..., Any], ...] = (
    given_and_returned, inside_alone, returned_alone, beside_real_results, carried, carried_unchanged,
    decided_by_magnitude, mandelbrot, branch_in_a_loop, spectrum_of_one_branch, scanned, of_each_row,
    of_two_views_of_one_tensor,
)  # fmt: skip


@pytest.fixture(autouse=True)
def compiled_anew() -> None:
    """Eager control flow is compiled by Dynamo, which gives up after some."""
    torch._dynamo.reset()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_every_level_is_eager(program: Callable[..., Any]) -> None:
    check_levels(program, (UP, DOWN), **EXACT)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_torch_compile(program: Callable[..., Any]) -> None:
    check_torch_compile(program, (UP, DOWN), **EXACT)


def test_a_loop_carries_both_parts_on_the_device() -> None:
    compiled = spyre_mlir.compile(FunctionModel(carried), UP, **EXACT)
    text = compiled.mlir("aten")
    assert "control.while_loop" in text
    (body,) = (line for line in text.splitlines() if "func private @while_loop_body" in line)
    assert "x2xf32" not in body, body


def test_from_disk(tmp_path: Path) -> None:
    model = FunctionModel(beside_real_results)
    folder = spyre_mlir.compile(model, UP, **EXACT).save(tmp_path / "bundle")
    for args in (UP, DOWN):
        close(results(spyre_mlir.load(folder, numerics="exact"), args), eager(model, args))


def test_the_host_calls_what_has_no_form_in_a_branch() -> None:
    def program(z: Tensor, n: Tensor) -> Any:
        return torch.cond(n > 2, lambda z: torch.acos(z), lambda z: z + 1, (z,)) * 2

    with pytest.raises(UnsupportedError, match=r"aten\.acos has no form for complex numbers on the device") as caught:
        spyre_mlir.compile(FunctionModel(program), UP, **EXACT)
    assert "test_complex_control_flow.py:" in str(caught.value.where)
    model = FunctionModel(program)
    compiled = spyre_mlir.compile(model, UP, numerics="exact")
    for args in (UP, DOWN):
        close(results(compiled, args), eager(model, args))

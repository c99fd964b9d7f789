"""Programs with complex numbers: every level against eager, both entry points, saved and bound."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.errors import InputError
from tests.end_to_end.importing.against_eager import model_of
from tests.functions import FunctionModel

EXACT: dict[str, Any] = {"numerics": "exact", "host_fallback": "error"}


def spread(*shape: int) -> Tensor:
    """Complex numbers of all quadrants, of magnitudes from 0.3 to 2."""
    count = torch.Size(shape).numel()
    return torch.polar(torch.linspace(0.3, 2, count), torch.linspace(0, 9, count)).reshape(shape)


Z, W = spread(4, 6), spread(6, 5).conj_physical() - 0.5
X = Z.real.contiguous()


def rotated(x: Tensor, freqs_cis: Tensor) -> Tensor:
    """Rotary embedding, as Meta's Llama applies it."""
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    shape = [d if i in (1, pairs.ndim - 1) else 1 for i, d in enumerate(pairs.shape)]
    return torch.view_as_real(pairs * freqs_cis.view(*shape)).flatten(3).type_as(x)


def angles(length: int, size: int) -> Tensor:
    rates = 1.0 / (10000.0 ** (torch.arange(0, size, 2).float() / size))
    table = torch.outer(torch.arange(length).float(), rates)
    return torch.polar(torch.ones_like(table), table)


class Attention(nn.Module):
    """Attention with a rotary table of complex numbers in a buffer."""

    def __init__(self, *, persistent: bool) -> None:
        super().__init__()
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(16, 16, bias=False) for _ in range(4))
        self.register_buffer("freqs_cis", angles(32, 8), persistent=persistent)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (w(x).view(*x.shape[:2], 2, 8) for w in (self.wq, self.wk, self.wv))
        freqs = self.get_buffer("freqs_cis")[: x.shape[1]]
        q, k = rotated(q, freqs), rotated(k, freqs)
        out = nn.functional.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True
        )
        return self.wo(out.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """A linear layer of complex weights."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(spread(3, 6)), nn.Parameter(spread(3))

    def forward(self, z: Tensor) -> Tensor:
        return torch.tanh(nn.functional.linear(z, self.weight, self.bias))


class Phase(nn.Module):
    """Writes to a complex buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("state", spread(4, 6))

    def forward(self, z: Tensor) -> Tensor:
        state = self.get_buffer("state")
        state.mul_(1j).add_(z)
        return state.abs()


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "rotary input": (rotated, (X.repeat(2, 1, 2).view(2, 4, 2, 6), angles(4, 6))),
    "rotary buffer": (Attention(persistent=False), (torch.linspace(-1, 1, 160).view(1, 10, 16),)),
    "rotary weights": (Attention(persistent=True), (torch.linspace(-1, 1, 160).view(1, 10, 16),)),
    "complex weights": (Layer(), (Z,)),
    "products": (lambda z, w: (z * z.conj(), z @ w, w.mH @ w, 2j * z), (Z, W)),
    "quotients": (lambda z: (z / (z + 2), 1 / z, z / 3j, z / z.abs()), (Z,)),
    "polar form": (lambda z: (z.abs(), z.angle(), torch.polar(z.abs(), z.angle()), z.exp()), (Z,)),
    "parts": (lambda x: torch.view_as_real(torch.complex(x, -x) + torch.view_as_complex(x.view(4, 3, 2)).sum()), (X,)),
    "moves": (lambda z: torch.cat([z.T, z.mH, z[:, :4].flip(0).roll(1, 0)])[1::2].reshape(-1, 2), (Z[:, :4].clone(),)),
    "choices": (lambda z: torch.where(z.real > 0, z, -1j).masked_fill(z.imag > 1, 2 + 1j).cumsum(0), (Z,)),
    "statistics": (lambda z: (z.mean(0), z.var(1), z.norm(), z[:3].prod(0)), (Z,)),
    "constants": (
        lambda x: x * torch.tensor([1j, 2, 3 - 1j]).view(3, 1, 1) + torch.ones(6, dtype=torch.complex64),
        (X,),
    ),
    "roots": (lambda z: (z.sqrt(), z.log(), z**2.5, torch.sin(z)), (Z,)),
}


def check(got: Any, wanted: Any, tolerance: float = 1e-5) -> None:
    pairs = zip(got, wanted, strict=True) if isinstance(wanted, tuple) else [(got, wanted)]
    for ours, theirs in pairs:
        assert (ours.dtype, ours.stride()) == (theirs.dtype, theirs.stride())
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", PROGRAMS)
@torch.no_grad()
def test_every_level_agrees_with_eager(name: str) -> None:
    model, inputs = model_of(PROGRAMS, name)
    compiled = spyre_mlir.compile(model, inputs, **EXACT)
    assert (outcome := compiled.verify(*inputs)), outcome
    check(compiled(*inputs), model(*inputs))


@pytest.mark.parametrize("name", PROGRAMS)
@torch.no_grad()
def test_torch_compile_agrees_with_eager(name: str) -> None:
    model, inputs = model_of(PROGRAMS, name)
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="spyre", options=EXACT, fullgraph=True)
    check(compiled(*inputs), model(*inputs))


@torch.no_grad()
def test_device_numerics_stay_near() -> None:
    model, inputs = model_of(PROGRAMS, "rotary buffer")
    compiled = spyre_mlir.compile(model, inputs)
    check(compiled(*inputs), model(*inputs), 1e-2)
    assert compiled.accuracy(*inputs).worst < 1e-2


def test_tables_of_a_buffer_are_constants_of_their_own() -> None:
    """A buffer that no checkpoint has is taken apart on the host: the program reads cosines and sines."""
    model, inputs = model_of(PROGRAMS, "rotary buffer")
    text = spyre_mlir.compile(model, inputs, **EXACT).mlir("aten")
    assert "aten.complex" not in text
    assert "x2xf32>, %constant" not in text


def test_a_complex_buffer_is_written() -> None:
    ours, theirs = Phase(), Phase()
    compiled = spyre_mlir.compile(ours, (Z,), **EXACT)
    for _ in range(3):
        check(compiled(Z), theirs(Z))
    check(ours.state, theirs.state)


def test_a_complex_input_is_written() -> None:
    model = FunctionModel(lambda z: z.mul_(1j))
    a, b = Z.clone(), Z.clone()
    compiled = spyre_mlir.compile(model, (Z,), **EXACT)
    check(compiled(a), model(b))
    check(a, b)
    with pytest.raises(InputError, match="is the conjugate of what its memory holds"):
        compiled(Z.clone().conj())


def test_a_conjugated_input_is_read_as_what_it_is() -> None:
    model = FunctionModel(lambda z: z * 2)
    check(spyre_mlir.compile(model, (Z,), **EXACT)(Z.conj()), model(Z.conj()))


def test_other_inputs_are_refused() -> None:
    compiled = spyre_mlir.compile(FunctionModel(lambda z: z * 2), (Z,), **EXACT)
    with pytest.raises(InputError, match=r"expected complex64\[4, 6\], got float32\[4, 6\]"):
        compiled(X)


@torch.no_grad()
def test_saved_and_bound(tmp_path: Path) -> None:
    model, inputs = model_of(PROGRAMS, "rotary weights")
    compiled = spyre_mlir.compile(model, inputs, **EXACT)
    compiled.save(tmp_path / "saved")
    check(spyre_mlir.load(tmp_path / "saved", numerics="exact")(*inputs), model(*inputs))
    other = Attention(persistent=True)
    other.freqs_cis.mul_(1j)
    bound = compiled.bind(other.state_dict())
    check(bound(*inputs), other(*inputs))
    assert bound.verify(*inputs)
    doubled = spyre_mlir.compile(FunctionModel(lambda z: (z, z * 2)), (Z,), **EXACT)
    doubled.save(tmp_path / "input")
    check(spyre_mlir.load(tmp_path / "input", numerics="exact")(Z), (Z, Z * 2))


def test_any_length() -> None:
    class Turned(nn.Module):
        def forward(self, z: Tensor) -> Tensor:
            turned = torch.polar(z.real, z.imag) @ torch.eye(6, dtype=torch.complex64) + 1j
            return (z * z).reshape(-1, 2).reshape(z.shape[0], -1) + turned

    model = Turned()
    rows = ({0: torch.export.Dim("rows", max=64)},)
    compiled = spyre_mlir.compile(model, (Z,), dynamic_shapes=rows, numerics="exact", buckets=[8])
    for count in (3, 5, 8):
        check(compiled(spread(count, 6)), model(spread(count, 6)))


@pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")
def test_double_precision_runs_on_the_host() -> None:
    model, z = FunctionModel(lambda z: z * z + 1j), Z.to(torch.complex128)
    check(spyre_mlir.compile(model, (z,))(z), model(z), 1e-12)


def test_a_size_is_a_number() -> None:
    model = FunctionModel(lambda z: z / z.shape[0])
    compiled = spyre_mlir.compile(model, (Z,), dynamic_shapes=(({0: torch.export.Dim("rows", max=64)},),), **EXACT)
    check(compiled(Z[:3]), model(Z[:3]))


@torch.no_grad()
def test_a_call_without_a_form_on_pairs_is_a_step_of_the_host(tmp_path: Path) -> None:
    model = FunctionModel(lambda z: torch.linalg.inv(z @ z.mH + torch.eye(4)) @ z * torch.randn(6, dtype=z.dtype))
    compiled = spyre_mlir.compile(model, (Z,), numerics="exact", host_fallback="allow")
    reasons = [step.reason for step in compiled.host_steps if step.op == "host::on_complex"]
    assert reasons == ["aten.linalg_inv has no form for complex numbers on the device"]
    saved = spyre_mlir.load(compiled.save(tmp_path / "saved"), numerics="exact")
    torch.manual_seed(5)
    wanted = model(Z)
    for ours in (compiled, saved):
        torch.manual_seed(5)
        check(ours(Z), wanted)
    assert compiled.verify(Z)

"""Programs with Fourier transforms: every level against eager, FNet, and a transform that the host computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.transforms.utils.host_fallback import HostStepWarning
from tests.end_to_end.importing.against_eager import model_of
from tests.functions import FunctionModel

fft = torch.fft
EXACT: dict[str, Any] = {"numerics": "exact", "host_fallback": "error"}
X = torch.sin(torch.arange(2 * 12 * 20.0)).reshape(2, 12, 20)
Z = torch.polar(X.abs() + 0.2, X * 3)


class Mixing(nn.Module):
    """A layer of FNet (Lee-Thorp et al.): tokens and features are mixed by a transform, not by attention."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(20), nn.LayerNorm(20)
        self.feed = nn.Sequential(nn.Linear(20, 40), nn.GELU(), nn.Linear(40, 20))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x + fft.fft2(x).real)
        return self.second(x + self.feed(x))


def convolved(x: Tensor, kernel: Tensor) -> Tensor:
    """A long convolution by its spectrum."""
    size = 2 * x.shape[-1]
    return fft.irfft(fft.rfft(x, n=size) * fft.rfft(kernel, n=size), n=size)[..., : x.shape[-1]]


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "fft": (fft.fft, (Z,)),
    "ifft": (lambda z: fft.ifft(z, dim=1, norm="ortho"), (Z,)),
    "rfft": (lambda x: fft.rfft(x, n=16).abs(), (X,)),
    "irfft": (lambda z: fft.irfft(z, n=25), (Z,)),
    "fft2": (lambda x: fft.fft2(x, norm="forward"), (X,)),
    "fftn": (lambda z: fft.fftn(z, s=(3, 10), dim=(0, 2)), (Z,)),
    "rfftn": (lambda x: fft.irfftn(fft.rfftn(x) * 2, s=x.shape), (X,)),
    "hfft": (fft.hfft, (Z,)),
    "shift": (lambda z: fft.fftshift(fft.fft2(z), dim=(1, 2)).imag, (Z,)),
    "convolution": (convolved, (X, X[:1])),
    "spectrogram": (
        lambda x: torch.stft(x.reshape(2, -1), 32, 16, window=torch.hann_window(32), return_complex=True).abs() ** 2,
        (X,),
    ),
    "mixing": (Mixing(), (X,)),
}


@pytest.mark.parametrize("name", PROGRAMS)
@torch.no_grad()
def test_every_level_agrees_with_eager(name: str) -> None:
    model, inputs = model_of(PROGRAMS, name)
    compiled = spyre_mlir.compile(model, inputs, **EXACT)
    assert (outcome := compiled.verify(*inputs)), outcome
    torch.testing.assert_close(compiled(*inputs), model(*inputs), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", PROGRAMS)
@torch.no_grad()
def test_torch_compile_agrees_with_eager(name: str) -> None:
    model, inputs = model_of(PROGRAMS, name)
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="spyre", options=EXACT, fullgraph=True)
    torch.testing.assert_close(compiled(*inputs), model(*inputs), rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_fnet_of_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64}
    torch.manual_seed(0)
    config = transformers.FNetConfig(**sizes, max_position_embeddings=24, tpu_short_seq_length=24)
    model = transformers.FNetModel(config).eval()
    ids = torch.arange(24)[None] * 7 % 50
    compiled = spyre_mlir.compile(model, (ids,), **EXACT)
    assert compiled.verify(ids)
    got, wanted = compiled(ids).last_hidden_state, model(ids).last_hidden_state
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)
    near = spyre_mlir.compile(model, (ids,))(ids).last_hidden_state
    assert (near - wanted).abs().max() < 0.03 * wanted.abs().max()


def test_a_long_prime_number_of_elements_is_a_host_step() -> None:
    x = torch.sin(torch.arange(2053.0))[None]
    with pytest.warns(HostStepWarning, match=r"1 x fourier::along"):
        compiled = spyre_mlir.compile(FunctionModel(fft.fft), (x,), numerics="exact")
    assert compiled.verify(x)
    torch.testing.assert_close(compiled(x), fft.fft(x), rtol=1e-4, atol=1e-3)

"""Fourier transforms on parts against eager torch: dimensions, sizes, norms, and every way in which one is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from spyre_mlir.frontend.capture.complex_pairs import fourier
from tests.unit.frontend.capture.complex_pairs.paired import agrees, finite, targets

fft = torch.fft
X = torch.linspace(-1, 2, 90).reshape(3, 5, 6)
Z = torch.polar(X + 1.5, X * 3)
CASES: dict[str, Callable[..., Any]] = {
    "complex": lambda x, z: (fft.fft(z), fft.ifft(z), fft.fft(z, dim=0), fft.ifft(z, dim=1)),
    "real": lambda x, z: (fft.fft(x), fft.rfft(x), fft.rfft(x, dim=1), fft.ihfft(x), fft.ifft(x)),
    "to real": lambda x, z: (fft.irfft(z), fft.irfft(z, n=9), fft.irfft(z, n=4, dim=0), fft.hfft(z), fft.hfft(z, 7)),
    "several dimensions": lambda x, z: (fft.fft2(z), fft.fftn(x), fft.ifftn(z, dim=(0, 2)), fft.rfft2(x), fft.rfftn(x)),
    "several to real": lambda x, z: (fft.irfft2(z), fft.irfftn(z, s=(4, 7)), fft.irfftn(z, dim=(2, 0))),
    "sizes": lambda x, z: (fft.fft(z, n=9), fft.fft(x, n=4), fft.rfft(x, n=7, dim=1), fft.fftn(z, s=(2, 8))),
    "norms": lambda x, z: tuple(
        f(v, norm=n)
        for n in ("forward", "backward", "ortho")
        for f, v in ((fft.fft, z), (fft.ifft, x), (fft.rfft, x), (fft.irfft, z), (fft.fft2, x), (fft.irfft2, z))
    ),
    "shifts": lambda x, z: (fft.fftshift(fft.fft2(x)), fft.ifftshift(z)),
    "one element": lambda x, z: (fft.fft(z[..., :1]), fft.rfft(x[..., :1]), fft.irfft(z[..., :1], n=1)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_eager(name: str) -> None:
    agrees(CASES[name], X, Z, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("name", CASES)
def test_rows_and_columns_agree_with_eager(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with prime factors that are longer than one product, which are left to the host."""
    monkeypatch.setattr(fourier, "MOST_DENSE", 2)
    agrees(CASES[name], X, Z, rtol=1e-4, atol=2e-5)


def test_a_transform_is_one_product_a_table_or_a_host_step_by_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fourier, "MOST_DENSE", 8)

    def calls(count: int) -> tuple[int, int]:
        made = targets(fft.fft, finite(count))
        return made.count("aten.matmul.default"), made.count("fourier.along.default")

    assert calls(8) == (4, 0)
    assert calls(12) == (8, 0)
    assert calls(11) == (0, 1)
    assert calls(22) == (4, 1)


def test_real_numbers_cost_half() -> None:
    assert targets(fft.rfft, X).count("aten.matmul.default") == 2
    assert targets(lambda x: fft.fft(x.to(torch.complex64)), X).count("aten.matmul.default") == 2


def test_matrices_are_computed_in_double_precision() -> None:
    """The last angle of a long transform has no digit left in float32."""
    agrees(lambda z: fft.fft(z), torch.polar(torch.ones(1, 499), torch.linspace(0, 2000, 499)[None]), atol=2e-4)


def test_short_time_transforms() -> None:
    x, window = torch.sin(torch.arange(64.0) ** 1.3), torch.hann_window(16)
    agrees(lambda x: torch.stft(x, 16, 4, window=window, return_complex=True), x, rtol=1e-4, atol=2e-5)
    z = torch.stft(x, 16, 4, window=window, return_complex=True)
    agrees(lambda z: torch.istft(z, 16, 4, window=window), z, rtol=1e-4, atol=2e-5)

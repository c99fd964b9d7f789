"""The transform that the host computes, on pairs."""

from __future__ import annotations

import pytest
import torch

from spyre_mlir.frontend.capture.complex_pairs.host_transforms import ALONG
from tests.unit.frontend.capture.complex_pairs.paired import finite

Z = finite().reshape(4, 6)


@pytest.mark.parametrize("dim", [-1, -2])
def test_agrees_with_torch(dim: int) -> None:
    re, im = ALONG(Z.real, Z.imag, dim, True, 0.5)
    torch.testing.assert_close(torch.complex(re, im), torch.fft.fft(Z, dim=dim) / 2)
    re, im = ALONG(Z.real, Z.imag, dim, False, 1 / 4)
    torch.testing.assert_close(torch.complex(re, im), torch.fft.ifft(Z, dim=dim, norm="forward") / 4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_parts_keep_their_type(dtype: torch.dtype) -> None:
    re, im = ALONG(Z.real.to(dtype), Z.imag.to(dtype), -1, True, 1.0)
    assert (re.dtype, im.dtype, re.shape) == (dtype, dtype, Z.shape)
    assert re.is_contiguous()
    torch.testing.assert_close(re.float(), torch.fft.fft(Z).real, atol=0.1, rtol=0.02)


def test_shapes_are_known_without_values() -> None:
    re, im = ALONG(Z.real.to("meta"), Z.imag.to("meta"), -1, True, 1.0)
    assert (re.shape, im.dtype) == (Z.shape, torch.float32)

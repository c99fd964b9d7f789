"""The operator ``fourier::along``: a transform of one dimension that the host computes, on pairs."""

from __future__ import annotations

from typing import Any, cast

import torch

Tensor = torch.Tensor
NAMESPACE = "fourier"


def _along(re: Tensor, im: Tensor, dim: int, forward: bool, scale: float) -> tuple[Tensor, Tensor]:
    wide = torch.promote_types(re.dtype, torch.float32)  # torch has no transforms of 16-bit floats on the CPU
    transforms = cast(Any, torch.fft)
    transform = transforms.fft if forward else transforms.ifft
    made: Tensor = (
        transform(torch.complex(re.to(wide), im.to(wide)), dim=dim, norm="backward" if forward else "forward") * scale
    )
    return made.real.to(re.dtype, copy=True), made.imag.to(re.dtype, copy=True)


def _shaped(re: Tensor, im: Tensor, dim: int, forward: bool, scale: float) -> tuple[Tensor, Tensor]:  # noqa: ARG001
    return torch.empty_like(re), torch.empty_like(im)


def _define() -> Any:
    library = cast(Any, torch.library).Library(NAMESPACE, "FRAGMENT")
    library.define("along(Tensor re, Tensor im, int dim, bool forward, float scale) -> (Tensor re, Tensor im)")
    library.impl("along", _along, "CPU")
    cast(Any, torch.library).register_fake(f"{NAMESPACE}::along", _shaped, lib=library)
    return library


LIBRARY = _define()
ALONG: Any = cast(Any, torch.ops).fourier.along.default

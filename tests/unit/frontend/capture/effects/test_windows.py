"""Windows of `istft` that leave a sample without weight: refused as in eager, at import or at the call."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.errors import ImportProgramError, SpyreError
from spyre_mlir.torch_compile import forget
from tests.functions import FunctionModel

HANN, ONES = torch.hann_window(16), torch.ones(16)
SPECTRUM = torch.stft(torch.sin(torch.arange(64.0)), 16, 16, window=ONES, center=False, return_complex=True)
LESS = r"istft: the windows of 4 frames leave a sample without weight, n_fft=16, hop_length=16"


def inverse(spectrum: Tensor, window: Tensor | None) -> Tensor:
    return torch.istft(spectrum, 16, 16, window=window, center=False)


class Held(nn.Module):
    window: Tensor

    def __init__(self, window: Tensor) -> None:
        super().__init__()
        self.register_buffer("window", window)

    def forward(self, spectrum: Tensor) -> Tensor:
        return inverse(spectrum, self.window)


KNOWN: dict[str, nn.Module] = {
    "a buffer": Held(HANN),
    "a constant": FunctionModel(lambda s: inverse(s, HANN)),
    "a function": FunctionModel(lambda s: inverse(s, torch.hann_window(16))),
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_known_window_is_refused_at_import(name: str) -> None:
    with pytest.raises(RuntimeError, match="window overlap add min"):
        KNOWN[name](SPECTRUM)
    with pytest.raises(ImportProgramError, match=LESS) as met:
        spyre_mlir.compile(KNOWN[name], (SPECTRUM,))
    assert "hop_length" in str(met.value.hint)


def test_known_windows_that_cover_all_samples_take_no_step() -> None:
    for model in (Held(ONES), FunctionModel(lambda s: inverse(s, None))):
        made = spyre_mlir.compile(model, (SPECTRUM,), numerics="exact")
        assert made.host_steps == ()
        torch.testing.assert_close(made(SPECTRUM), model(SPECTRUM), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("door", ["compile", "torch.compile"])
def test_another_window_is_checked_at_the_call(door: str) -> None:
    forget()
    made: Any = (
        spyre_mlir.compile(FunctionModel(inverse), (SPECTRUM, ONES), numerics="exact", host_fallback="allow")
        if door == "compile"
        else torch.compile(inverse, backend="spyre", options={"numerics": "exact", "host_fallback": "allow"})
    )
    torch.testing.assert_close(made(SPECTRUM, ONES), inverse(SPECTRUM, ONES), rtol=1e-4, atol=1e-5)
    with pytest.raises(SpyreError, match=LESS):
        made(SPECTRUM, HANN)

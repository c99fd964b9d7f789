"""`mode` and `options` of torch.compile: meant, or refused with the names there are."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch._inductor import list_mode_options

from spyre_mlir import torch_compile
from spyre_mlir.errors import InputError
from spyre_mlir.torch_compile.settings import Settings

_MODES = [mode for mode in list_mode_options() if mode != "default"]


@pytest.mark.parametrize("mode", [None, "default"])
def test_the_default_mode_is_the_only_one(mode: str | None) -> None:
    assert Settings.of(mode, None) == Settings({}, training=False)


@pytest.mark.parametrize("mode", _MODES)
def test_every_other_mode_of_torch_is_refused_with_a_reason_of_its_own(mode: str) -> None:
    with pytest.raises(InputError, match=f"has no mode '{mode}': ") as caught:
        Settings.of(mode, None)
    assert "none of that name" not in str(caught.value)
    assert '"default" is the only one' in str(caught.value)
    assert "options= takes training, numerics, " in str(caught.value)


def test_a_mode_that_torch_gains_is_refused_as_one_of_inductor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spyre_mlir.torch_compile.settings.inductor_modes", lambda: {"eager-ish": {"a": True}})
    with pytest.raises(InputError, match="settings of Inductor, which has no part here"):
        Settings.of("eager-ish", None)


def test_a_mode_that_nobody_has() -> None:
    with pytest.raises(InputError, match=r"has no mode 'fast': torch\.compile has none of that name either"):
        Settings.of("fast", None)


def test_a_refused_mode_reaches_the_caller_of_torch_compile() -> None:
    with pytest.raises(Exception, match="has no mode 'max-autotune': kernels are not measured, the pass plan"):
        torch.compile(nn.ReLU(), backend=torch_compile.spyre, mode="max-autotune")(torch.randn(3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"numeric": "exact"}, r"no option numeric\n.*did you mean numerics\?"),
        ({"trainin": True}, r"no option trainin\n.*did you mean training\?"),
        ({"max_autotune": True}, r"no option max_autotune\n.*the options are training, numerics, "),
        ({"training": 1}, r"training must be True or False, got 1"),
        ({"numerics": "exakt"}, r"numerics must be one of exact, device, none, got 'exakt'"),
    ],
)
def test_options_that_are_not_there_are_refused_with_those_that_are(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Settings.of(None, options)


def test_options_are_those_of_compile_and_training() -> None:
    assert Settings.of(None, {"tile": False, "training": True}) == Settings({"tile": False}, training=True)


def test_a_refused_option_reaches_the_caller_of_torch_compile() -> None:
    with pytest.raises(Exception, match=r"no option numeric\n.*did you mean numerics"):
        torch.compile(nn.ReLU(), backend=torch_compile.spyre, options={"numeric": "exact"})(torch.randn(3))

"""`torch.spyre`: what PyTorch asks a device module for."""

from __future__ import annotations

import pytest
import torch

from spyre_mlir.errors import InputError
from spyre_mlir.torch_device.module import DeviceModule

SPYRE = DeviceModule()


def test_settings_at_the_start() -> None:
    assert (SPYRE.numerics, SPYRE.on_overflow) == ("device", "warn")
    assert not SPYRE.host_steps
    SPYRE.host_steps["aten.sin.default"] += 1
    assert SPYRE.host_steps["aten.sin.default"] == 1
    assert not DeviceModule().host_steps, "every module counts its own"


def test_it_says_who_it_is_and_how_it_is_switched_on() -> None:
    assert repr(SPYRE) == "the device of spyre-mlir (on by `import spyre_mlir.device` or SPYRE_MLIR_DEVICE=1)"


def test_there_is_one_device_always() -> None:
    assert SPYRE.is_initialized() is True
    assert SPYRE.is_available() is True
    assert SPYRE.device_count() == 1
    assert SPYRE.current_device() == 0
    assert SPYRE._is_in_bad_fork() is False
    assert not any(isinstance(each, torch.dtype) for each in SPYRE.get_amp_supported_dtype())


@pytest.mark.parametrize("device", [None, 0, "spyre", "spyre:0"])
def test_device_0_is_taken(device: object) -> None:
    SPYRE.set_device(device)
    SPYRE.synchronize(device)
    SPYRE.empty_cache()


@pytest.mark.parametrize(
    ("device", "shown"),
    [(1, "spyre:1"), ("spyre:1", "spyre:1"), ("cpu", "cpu"), (torch.device("cpu", 0), "cpu:0"), (-1, "spyre:-1")],
)
def test_another_device_is_refused(device: object, shown: str) -> None:
    for call in (SPYRE.set_device, SPYRE.get_rng_state, lambda d: SPYRE.set_rng_state(torch.get_rng_state(), d)):
        with pytest.raises(InputError) as refused:
            call(device)
        assert refused.value.message == f"there is no device {shown}"
        assert refused.value.hint == "the only one is spyre:0"


def test_random_numbers_are_the_hosts() -> None:
    before = torch.get_rng_state()
    try:
        torch.manual_seed(3)
        state = SPYRE.get_rng_state()
        assert torch.equal(state, torch.get_rng_state())
        first = torch.rand(2)
        SPYRE.set_rng_state(state)
        assert torch.equal(torch.rand(2), first)
        SPYRE.manual_seed_all(4)
        SPYRE.set_rng_state(SPYRE.get_rng_state(0), "spyre")
        assert not torch.equal(torch.rand(2), first), "the host's seed is not set"
    finally:
        torch.set_rng_state(before)

"""`torch.spyre`: the device module that PyTorch expects, and the settings of the device."""

from __future__ import annotations

from collections import Counter
from typing import Any

from spyre_mlir.choices import OnOverflow
from spyre_mlir.errors import InputError
from spyre_mlir.torch_device.names import DEVICE, VARIABLE


class _NoType:
    """Stands in the list of types for autocast, which torch prints: what to do instead."""

    def __str__(self) -> str:
        return "none (float32 is computed in 16 bits there anyway; model.half() gives float16 results)"


class DeviceModule:
    """One device, always present; its memory is the host's and its arithmetic the hardware model's.

    Attributes:
        numerics: ``device`` rounds what operations compute to the hardware's formats, ``exact`` as eager does, ``none``
            does neither, and looks for no fault that depends on data.
        on_overflow: what an operation does whose results go beyond DLFloat16, as for `spyre_mlir.compile`.
        host_steps: how often each operator ran on the host, because the device cannot do it or only moves memory.
    """

    def __init__(self) -> None:
        """Starts in device numerics, with nothing counted."""
        self.numerics = "device"
        self.on_overflow: OnOverflow = "warn"
        self.host_steps: Counter[str] = Counter()

    def __repr__(self) -> str:
        """Name the owner of the device: torch shows it to any package that registers another one."""
        return f"the device of spyre-mlir (on by `import spyre_mlir.device` or {VARIABLE}=1)"

    def is_initialized(self) -> bool:
        """Return whether the device can be used."""
        return True

    def is_available(self) -> bool:
        """Return whether there is a device."""
        return True

    def device_count(self) -> int:
        """Return the number of devices: one."""
        return 1

    def current_device(self) -> int:
        """Return the number of the current device: 0."""
        return 0

    def set_device(self, device: Any) -> None:
        """Accept device 0, as a number, a device or its name.

        Raises:
            InputError: another one.
        """
        if device not in (None, 0) and str(device) not in (DEVICE, f"{DEVICE}:0"):
            shown = f"{DEVICE}:{device}" if isinstance(device, int) else device
            raise InputError(f"there is no device {shown}", hint=f"the only one is {DEVICE}:0")

    def synchronize(self, device: Any = None) -> None:
        """Return at once: every operation has finished when it returns."""

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed_all(self, seed: int) -> None:
        """Do nothing: random numbers are the host's, which torch seeds itself."""

    def get_rng_state(self, device: Any = None) -> Any:
        """Return the state of the host's generator, which the device shares; `torch.random.fork_rng` asks for it."""
        import torch

        self.set_device(device)
        return torch.get_rng_state()

    def set_rng_state(self, new_state: Any, device: Any = None) -> None:
        """Set the state of the host's generator."""
        import torch

        self.set_device(device)
        torch.set_rng_state(new_state)

    def empty_cache(self) -> None:
        """Do nothing: the host frees unreferenced memory."""

    def get_amp_supported_dtype(self) -> list[Any]:
        """Return the element types that autocast may choose: none, so torch prints this one and switches it off."""
        return [_NoType()]

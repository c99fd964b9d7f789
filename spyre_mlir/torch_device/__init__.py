"""The `spyre` device for eager PyTorch: ``x.to("spyre")``, one program per operation, run on the hardware model.

It is off until `spyre_mlir.device` is imported. Nothing of the compiler is loaded before a tensor goes there.
"""

from spyre_mlir.torch_device.registration import is_on, register, switch_on

__all__ = ["is_on", "register", "switch_on"]

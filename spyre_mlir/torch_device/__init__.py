"""The `spyre` device for eager PyTorch: ``x.to("spyre")``, one program per operation, run on the hardware model.

Nothing here is imported until a tensor goes there: `register` is what `import torch` calls, by its entry point.
"""

from spyre_mlir.torch_device.registration import register

__all__ = ["register"]

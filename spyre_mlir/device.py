"""Enable the device: after ``import spyre_mlir.device``, ``x.to("spyre")`` works.

PyTorch has room for one device from outside in a process, so nothing else in this package takes it: neither
``import torch`` nor ``import spyre_mlir`` does. Programs that cannot be changed are run with ``SPYRE_MLIR_DEVICE=1``.

With the device on, `torch.compile` without a back end brings graphs on the device to this compiler.

Raises:
    RegistrationError: another package has the device; ``torch.compile(model, backend="spyre")`` works all the same.

Decision: docs/decisions/0106-the-device-is-switched-on.md
"""

from spyre_mlir.torch_device import switch_on

switch_on()

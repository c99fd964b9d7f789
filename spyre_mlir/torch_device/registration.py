"""Tells PyTorch that the device exists. Its interfaces for that are private or experimental; all uses are here.

Used: `torch.utils.backend_registration._setup_privateuseone_for_python_backend` (name, module, hooks and guard without
C++), `torch.library` kernels for the dispatch key PrivateUse1.
"""

from __future__ import annotations

from typing import Any

DEVICE = "spyre"
_state: dict[str, Any] = {}


def register() -> None:
    """Registers the device once; called by `import torch` through the entry point group ``torch.backends``."""
    if _state:
        return
    import torch
    from torch.utils import backend_registration

    from spyre_mlir.torch_device.module import DeviceModule

    _state["module"] = DeviceModule()
    registration: Any = backend_registration  # torch does not type what follows
    registration._setup_privateuseone_for_python_backend(rename=DEVICE, backend_module=_state["module"])
    library: Any = torch.library
    kernels = library.Library("aten", "IMPL")
    for name in ("empty.memory_format", "empty_strided", "copy_"):  # `torch.tensor` copies where no subclass is asked
        kernels.impl(name, _factory(name), "PrivateUse1")
    fallback = library.Library("_", "IMPL")
    fallback.fallback(_any_factory, "PrivateUse1")
    _state["libraries"] = (kernels, fallback)


def _factory(name: str) -> Any:
    def run(*args: Any, **kwargs: Any) -> Any:
        import torch

        packet, _, overload = name.partition(".")
        return _any_factory(getattr(getattr(torch.ops.aten, packet), overload or "default"), *args, **kwargs)

    return run


def _any_factory(operator: Any, *args: Any, **kwargs: Any) -> Any:
    """An operator that has no tensor of ours to be dispatched by: it makes one."""
    from spyre_mlir.torch_device.dispatch import dispatch

    return dispatch(operator, args, kwargs)

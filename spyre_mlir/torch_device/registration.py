"""Registration of the device with PyTorch, and every use of its private or experimental interfaces for devices.

Used: `torch.utils.backend_registration._setup_privateuseone_for_python_backend` (name, module, hooks and guard without
C++), `torch.library` kernels for the dispatch key PrivateUse1, `torch._C._get_privateuse1_backend_name` and
`_dispatch_has_kernel_for_dispatch_key` (who has the device already), `torch._TorchCompileInductorWrapper` (what
`torch.compile` calls without a back end).
"""

from __future__ import annotations

import os
import warnings
from functools import wraps
from pkgutil import resolve_name
from typing import Any

from spyre_mlir.torch_device.names import DEVICE, VARIABLE

# By name: the compiler is a room above, and loads when a graph on the device is compiled.
_COMPILER = "spyre_mlir.torch_compile.default:compile_on_device"
_UNNAMED = "privateuseone"
_state: dict[str, Any] = {}


def register() -> None:
    """Enable the device if ``SPYRE_MLIR_DEVICE`` is 1; `import torch` calls this by its entry point.

    An error would end the import of torch, so it becomes a warning.
    """
    asked = os.environ.get(VARIABLE, "")
    if asked in ("", "0"):
        return
    if asked != "1":
        warnings.warn(f"{VARIABLE} is 1 or 0, got {asked!r}: the device stays off", stacklevel=2)
    elif (owner := _owner()) is not None:
        warnings.warn(f"{VARIABLE}=1: {_taken(owner)}; {_HINT}", stacklevel=2)
    else:
        switch_on()


def is_on() -> bool:
    """Return whether the device ``spyre`` of this process is ours."""
    return bool(_state)


def switch_on() -> None:
    """Register the device, once per process.

    Raises:
        RegistrationError: another package has the device, or its name.
    """
    if _state:
        return
    if (owner := _owner()) is not None:
        from spyre_mlir.errors import RegistrationError

        raise RegistrationError(_taken(owner), hint=_HINT)
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
    _take_graphs_from_inductor()


_HINT = 'torch.compile(model, backend="spyre") needs no device; or import spyre_mlir.device in another process'


def _owner() -> str | None:
    """Return the present owner of PyTorch's external device or of our device name; None if both are free or ours."""
    import torch

    if _state:
        return None
    core: Any = torch._C  # pyright: ignore[reportPrivateUsage]
    name = core._get_privateuse1_backend_name()
    if name == _UNNAMED and hasattr(torch, DEVICE):
        return f"a module torch.{DEVICE}, {getattr(torch, DEVICE)!r},"
    if name != _UNNAMED:
        return f"'{name}'" + (f", {module!r}," if (module := getattr(torch, name, None)) is not None else "")
    has_kernel = core._dispatch_has_kernel_for_dispatch_key("aten::empty.memory_format", "PrivateUse1")
    return "an extension without a name" if has_kernel else None


def _taken(owner: str) -> str:
    return f"PyTorch has room for one device from outside, and {owner} is there already"


def _take_graphs_from_inductor() -> None:
    """Brings graphs on the device to our compiler where no back end is named; Inductor would run them on the host."""
    import torch

    wrapper: Any = torch._TorchCompileInductorWrapper  # pyright: ignore[reportPrivateUsage]
    inductor = wrapper.__call__

    @wraps(inductor)
    def compiled(self: Any, model_: Any, inputs_: Any, *, config_patches: Any = None) -> Any:
        from spyre_mlir.torch_device.graphs import is_on_device

        if not is_on_device(model_):
            return inductor(self, model_, inputs_, config_patches=config_patches)
        return resolve_name(_COMPILER)(model_, {**self.config, **(config_patches or {})})

    wrapper.__call__ = compiled


def _factory(name: str) -> Any:
    def run(*args: Any, **kwargs: Any) -> Any:
        import torch

        packet, _, overload = name.partition(".")
        return _any_factory(getattr(getattr(torch.ops.aten, packet), overload or "default"), *args, **kwargs)

    return run


def _any_factory(operator: Any, *args: Any, **kwargs: Any) -> Any:
    """An operator that has no tensor of ours to be dispatched by: it makes one."""
    from spyre_mlir.torch_device.tensor import dispatch

    return dispatch(operator, args, kwargs)

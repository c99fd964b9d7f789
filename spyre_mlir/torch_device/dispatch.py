"""One operator on tensors of the device: views and copies are the host's, everything else is a program."""

from __future__ import annotations

from typing import Any, cast

import torch

from spyre_mlir.errors import InputError
from spyre_mlir.frontend.torch_private import is_fake, return_and_correct_aliasing, schema_of, tree_flatten, tree_map
from spyre_mlir.torch_device.fused import FUSED
from spyre_mlir.torch_device.registration import DEVICE
from spyre_mlir.torch_device.run import run_operator
from spyre_mlir.torch_device.tensor import SpyreTensor, as_device_tensor, as_host_tensor

aten = torch.ops.aten
_CPU = torch.device("cpu")
# Between devices by their nature; every other operator wants its tensors on one.
_TRANSFERS = (aten._to_copy.default, aten.copy_.default, aten.copy.default)


def dispatch(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What an operator gives for tensors of the device.

    Raises:
        InputError: tensors of the device and of the host together, or another device than the first.
    """
    if operator is aten._has_compatible_shallow_copy_type.default:  # asked by module.to() in inference mode
        return isinstance(args[0], SpyreTensor) == isinstance(args[1], SpyreTensor)
    _check_one_device(operator, args, kwargs)
    if operator in FUSED:
        return FUSED[operator](*args, **kwargs)
    leaves = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)]
    wanted = kwargs.get("device")
    elsewhere = wanted is not None and torch.device(wanted).type != DEVICE
    onto_host = operator is aten.copy_.default and not isinstance(args[0], SpyreTensor)
    if wanted is not None and torch.device(wanted).type == DEVICE:
        cast(Any, torch).spyre.set_device(torch.device(wanted))
        kwargs = kwargs | {"device": _CPU}
    host_args, host_kwargs = tree_map(as_host_tensor, (args, kwargs))
    traced = any(is_fake(as_host_tensor(x)) for x in leaves)
    result = operator(*host_args, **host_kwargs) if traced else run_operator(operator, host_args, host_kwargs)
    if elsewhere or onto_host:
        return args[0] if onto_host else result
    # In inference mode too, a view of an ordinary tensor is an ordinary one: they count their writes together.
    with torch.inference_mode(torch.is_inference_mode_enabled() and all(x.is_inference() for x in leaves)):
        wrapped = tree_map(as_device_tensor, result)
        return return_and_correct_aliasing(operator, args, kwargs, wrapped)


def _check_one_device(operator: Any, args: Any, kwargs: Any) -> None:
    tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)]
    foreign = [x for x in tensors if x.device.type != DEVICE and x.dim() > 0]
    if foreign and len(foreign) < len(tensors) and operator not in _TRANSFERS:
        name = schema_of(operator).name
        raise InputError(
            f"{name} got tensors on {DEVICE}:0 and on {foreign[0].device}",
            hint=f'bring them to one device, e.g. x.to("{DEVICE}")',
        )

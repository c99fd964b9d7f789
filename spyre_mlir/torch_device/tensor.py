"""The device tensor: a wrapper whose elements are stored in a host tensor.

Its views and copies are the host's; everything else that an operator makes of it is a program.

Decision: docs/decisions/0072-device-in-python.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, cast

import torch

from spyre_mlir.errors import InputError
from spyre_mlir.frontend.torch_private import is_fake, return_and_correct_aliasing, schema_of, tree_flatten, tree_map
from spyre_mlir.runtime.residence import CARD
from spyre_mlir.torch_device.fused import FUSED
from spyre_mlir.torch_device.names import DEVICE
from spyre_mlir.torch_device.run import run_operator

aten = torch.ops.aten
_CPU = torch.device("cpu")
# Between devices by their nature; every other operator wants its tensors on one.
_TRANSFERS = (aten._to_copy.default, aten.copy_.default, aten.copy.default)
# They change the sizes of the tensor that they are given, which torch redoes for a wrapper on no device but meta.
_RESIZING = (aten.resize_.default, aten.resize_as_.default)


def as_host_tensor(value: Any) -> Any:
    """Return a device tensor's elements as a host tensor; other values unchanged."""
    if not isinstance(value, torch.Tensor) or value.device.type != DEVICE:
        return value
    if not isinstance(value, SpyreTensor):
        return value.to("cpu")  # factories make plain ones while tracing
    if isinstance(value, torch.nn.Parameter) and not is_fake(value.host):
        CARD.expect(value.host)  # itself and its transpose are read again; the host's tensor is no parameter
    return value.host


def as_device_tensor(value: Any) -> Any:
    """Return a host tensor as a device tensor; other values unchanged."""
    return SpyreTensor(value) if isinstance(value, torch.Tensor) else value


class SpyreTensor(torch.Tensor):
    """A tensor on the device.

    Attributes:
        host: its elements; views share them, as views of any tensor do.
    """

    host: torch.Tensor

    @staticmethod
    def __new__(cls: type[SpyreTensor], host: torch.Tensor) -> SpyreTensor:
        """Wraps a tensor of the host, which must not be one of ours."""
        made = cast(Any, torch.Tensor)._make_wrapper_subclass(
            cls,
            host.size(),
            strides=host.stride(),
            storage_offset=host.storage_offset(),
            dtype=host.dtype,
            layout=host.layout,
            device=torch.device(DEVICE, 0),
            requires_grad=host.requires_grad,
        )
        made = cast(SpyreTensor, made)
        made.host = host.detach()
        return made

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        """The elements as torch prints them, and the device."""
        shown = repr(self.host)
        grad = ", requires_grad=True" if self.requires_grad else ""
        return f"{shown[:-1]}, device='{self.device}'{grad})"

    def __format__(self, spec: str) -> str:
        """A number as Python formats it, other tensors as text."""
        return format(self.host.item() if self.dim() == 0 else str(self), spec)

    @property
    def data(self) -> torch.Tensor:  # pyright: ignore[reportIncompatibleVariableOverride] - torch has a descriptor
        """The tensor without its history."""
        return self.detach()

    @data.setter
    def data(self, value: torch.Tensor) -> None:
        """Take over the elements of another device tensor, not only its shape.

        Raises:
            InputError: it is on another device.
        """
        if not isinstance(value, SpyreTensor):
            raise InputError(f"the data of a tensor on {self.device} cannot be on {value.device}", hint='x.to("spyre")')
        cast(Any, torch.Tensor).data.__set__(self, value)
        self.host = value.host

    def take_after_host(self) -> None:
        """Take over the sizes and strides that `host` has now: an operator may have changed them to write there."""
        if (self.shape, self.stride()) != (self.host.shape, self.host.stride()):
            cast(Any, torch.Tensor).data.__set__(self, SpyreTensor(self.host))

    def tolist(self) -> Any:
        """Return the elements as Python numbers."""
        return cast(Any, self.host).tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """Return the elements as an array, if forced; as with every device, they are brought to the host first.

        Raises:
            InputError: it is not forced.
        """
        if not force:
            raise InputError(f"a tensor on {self.device} is no array", hint="x.cpu().numpy()")
        return self.host.numpy(force=True)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """A tensor with elements of its own, and so its gradient.

        Torch copies the memory of tensors that begin inside of it, and a wrapper has none: the process ended.

        Raises:
            RuntimeError: it has been computed from tensors with gradients, as for every tensor.
        """
        if not self.is_leaf:
            return cast(Any, super()).__deepcopy__(memo)
        if id(self) not in memo:
            attributes = deepcopy({name: held for name, held in vars(self).items() if name != "host"}, memo)
            memo[id(self)] = made = _rebuilt(deepcopy(self.host, memo), self.requires_grad, attributes)
            made.grad = deepcopy(self.grad, memo)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """The host's tensor and the attributes, of which `copy.copy` and pickles make it again."""
        return _rebuilt, (self.host, self.requires_grad, {n: held for n, held in vars(self).items() if n != "host"})

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        """The inner tensors, for tracing."""
        return ["host"], None

    @staticmethod
    def __tensor_unflatten__(
        inner: Mapping[str, torch.Tensor], context: None, size: Sequence[int], stride: Sequence[int]
    ) -> SpyreTensor:
        """The wrapper of inner tensors, for tracing."""
        return SpyreTensor(inner["host"])

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Runs one operator; see `dispatch`."""
        return dispatch(func, tuple(args), dict(kwargs or {}))


def _rebuilt(host: torch.Tensor, requires_grad: bool, attributes: Mapping[str, object]) -> SpyreTensor:
    """A device tensor from its parts, a parameter if the attributes say so."""
    made = SpyreTensor(host)
    made.requires_grad_(requires_grad)
    vars(made).update(attributes)
    return made


def dispatch(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of an operator on device tensors.

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
    if not traced:
        for written in _written(operator, args, kwargs):
            written.take_after_host()
    if operator in _RESIZING:
        return args[0]
    # In inference mode too, a view of an ordinary tensor is an ordinary one: they count their writes together.
    with torch.inference_mode(torch.is_inference_mode_enabled() and all(x.is_inference() for x in leaves)):
        wrapped = tree_map(as_device_tensor, result)
        return return_and_correct_aliasing(operator, args, kwargs, wrapped)


def _written(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[SpyreTensor]:
    """The device tensors that an operator writes its results to, unless it only changes how they look at memory."""
    if torch.Tag.inplace_view in operator.tags and operator not in _RESIZING:
        return []  # torch changes the wrapper itself
    arguments = schema_of(operator).arguments
    given = [*zip(arguments, args, strict=False), *((a, kwargs[a.name]) for a in arguments if a.name in kwargs)]
    values = [value for a, value in given if a.alias_info is not None and a.alias_info.is_write]
    return [x for x in tree_flatten(values)[0] if isinstance(x, SpyreTensor)]


def _check_one_device(operator: Any, args: Any, kwargs: Any) -> None:
    tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)]
    foreign = [x for x in tensors if x.device.type != DEVICE and x.dim() > 0]
    if foreign and len(foreign) < len(tensors) and operator not in _TRANSFERS:
        name = schema_of(operator).name
        raise InputError(
            f"{name} got tensors on {DEVICE}:0 and on {foreign[0].device}",
            hint=f'bring them to one device, e.g. x.to("{DEVICE}")',
        )

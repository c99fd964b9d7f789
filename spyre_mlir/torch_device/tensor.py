"""The tensor of the device: a wrapper whose elements lie in a tensor of the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from torch.fx.node import map_aggregate

from spyre_mlir.errors import InputError
from spyre_mlir.torch_device.registration import DEVICE


def as_host_tensor(value: Any) -> Any:
    """The elements of a tensor of the device, as a tensor of the host; other values as they are."""
    if not isinstance(value, torch.Tensor) or value.device.type != DEVICE:
        return value
    return value.host if isinstance(value, SpyreTensor) else value.to("cpu")  # factories make plain ones while tracing


def as_device_tensor(value: Any) -> Any:
    """A tensor of the host as one of the device; other values as they are."""
    return SpyreTensor(value) if isinstance(value, torch.Tensor) else value


def on_host(graph: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """A captured graph that runs on tensors of the host; what it moves from device to device stays a copy."""

    def moved(value: Any) -> Any:
        return torch.device("cpu") if isinstance(value, torch.device) and value.type == DEVICE else value

    for node in list(graph.graph.nodes):
        node.args, node.kwargs = cast(Any, map_aggregate((node.args, node.kwargs), moved))
        operands = {device_of(n) for n in node.all_input_nodes} - {None}
        if node.op != "output" and operands and device_of(node) not in (None, *operands):
            with graph.graph.inserting_after(node):
                copy = graph.graph.call_function(torch.clone, (node,))
            copy.meta = dict(node.meta)
            node.replace_all_uses_with(copy)
            copy.args = (node,)
    graph.recompile()
    return graph


def results_on_device(graph: torch.fx.GraphModule) -> list[bool]:
    """Which results of a captured graph are tensors of the device."""
    results = next(iter(graph.graph.find_nodes(op="output"))).args[0]
    return [isinstance(r, torch.fx.Node) and device_of(r) == DEVICE for r in cast("Sequence[object]", results)]


def is_on_device(graph: torch.fx.GraphModule) -> bool:
    """Whether a captured graph takes, makes or gives tensors of the device."""
    return any(device_of(node) == DEVICE for node in graph.graph.nodes)


def device_of(node: torch.fx.Node) -> str | None:
    """The kind of device of a tensor, as Dynamo noted it."""
    value = node.meta.get("example_value")
    return value.device.type if isinstance(value, torch.Tensor) else None


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
        """Takes the elements of another tensor of the device, not only its shape.

        Raises:
            InputError: it is on another device.
        """
        if not isinstance(value, SpyreTensor):
            raise InputError(f"the data of a tensor on {self.device} cannot be on {value.device}", hint='x.to("spyre")')
        cast(Any, torch.Tensor).data.__set__(self, value)
        self.host = value.host

    def tolist(self) -> Any:
        """The elements as Python numbers."""
        return cast(Any, self.host).tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """The elements as an array, if forced: as with every device, they are brought to the host first.

        Raises:
            InputError: it is not forced.
        """
        if not force:
            raise InputError(f"a tensor on {self.device} is no array", hint="x.cpu().numpy()")
        return self.host.numpy(force=True)

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
        from spyre_mlir.torch_device.dispatch import dispatch

        return dispatch(func, tuple(args), dict(kwargs or {}))

"""Nodes that the aten level says with other ops: parts of a split, indexing with ranges, strides through memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

import torch
from torch.fx import Node
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from spyre_mlir.dialects.aten import broadcast_shapes
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.arguments import bind
from spyre_mlir.frontend.element_types import tensor_type
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.torch_private import OpOverload, schema_of

aten = torch.ops.aten


class Values(Protocol):
    """What a rewrite may ask for and do."""

    def ssa(self, node: Node) -> SSAValue:
        """The value of a node."""
        ...

    def known_value(self, node: Node) -> torch.Tensor | None:
        """The tensor a node stands for, if no call can change it."""
        ...

    def from_host(self, node: Node) -> bool:
        """Whether the host provides the value of a node as it is."""
        ...

    def emit(self, overload: str, *operands: SSAValue, **attributes: object) -> SSAValue:
        """Adds an op of the table and gives its result."""
        ...

    def emit_as(
        self, result: TensorType[Attribute], overload: str, *operands: SSAValue, **attributes: object
    ) -> SSAValue:
        """Adds an op of the table that says nothing of the shape of its result, and gives it."""
        ...


Rewritten = Mapping[int, SSAValue] | SSAValue | None


def rewrite(node: Node, values: Values) -> Rewritten:
    """The value of a node by other ops, one by index if it has several; None if the node stays what it is."""
    function = _REWRITES.get(cast(Any, node.target))
    if function is None:
        return None
    return function(node, {name: b.value for name, b in bind(node).items()}, values)


def _parts(source: Node, dim: int, extents: list[int], values: Values) -> dict[int, SSAValue]:
    base, start, parts = values.ssa(source), 0, dict[int, SSAValue]()
    for number, extent in enumerate(extents):
        parts[number] = values.emit("slice.Tensor", base, dim=dim, start=start, end=start + extent)
        start += extent
    return parts


def _split_with_sizes(node: Node, a: dict[str, Any], values: Values) -> Rewritten:
    return _parts(a["self"], a["dim"], list(a["split_sizes"]), values)


def _split(node: Node, a: dict[str, Any], values: Values) -> Rewritten:
    return _parts(a["self"], a["dim"], [v.shape[a["dim"]] for v in node.meta["val"]], values)


def _unbind(node: Node, a: dict[str, Any], values: Values) -> Rewritten:
    base = values.ssa(a["self"])
    return {i: values.emit("select.int", base, dim=a["dim"], index=i) for i in range(len(node.meta["val"]))}


def _index(node: Node, a: dict[str, Any], values: Values) -> Rewritten:
    """Indexing with tensors: a view if they are known ranges, a choice of entries if there is one."""
    source, indices = cast(Node, a["self"]), cast("list[Node | None]", a["indices"])
    used = {d: i for d, i in enumerate(indices) if i is not None}
    if any(i.meta["val"].dtype in (torch.bool, torch.uint8) for i in used.values()):
        return None
    known = {d: v for d, i in used.items() if (v := values.known_value(i)) is not None}
    if len(known) == len(used) and (view := _as_view(values.ssa(source), known, values)) is not None:
        return view
    if len(used) != 1:
        return None
    ((dim, index),) = used.items()
    # The hardware gathers whole rows of what the host provides; negative indices are wrapped as they are sent.
    if dim or len(source.meta["val"].shape) < 2 or not all(values.from_host(n) for n in (source, index)):
        return None
    rows = values.emit("index_select", values.ssa(source), _flat(values.ssa(index), values), dim=dim)
    return values.emit("view", rows, size=tuple(node.meta["val"].shape))


def _flat(index: SSAValue, values: Values) -> SSAValue:
    return index if len(shape_of(index)) == 1 else values.emit("view", index, size=(-1,))


def _as_view(base: SSAValue, indices: Mapping[int, torch.Tensor], values: Values) -> SSAValue | None:
    """Indexing with ranges as slices and a permutation; None if the indices are anything else.

    torch puts the dimensions of the indices where the first indexed dimension was if the indexed ones stand
    side by side, else in front.
    """
    shape = shape_of(base)
    common = broadcast_shapes([tuple(i.shape) for i in indices.values()])
    ranges: dict[int, tuple[int, range]] = {}
    for dim, index in indices.items():
        wrapped = torch.where(index < 0, index + shape[dim], index).expand(common)
        found = _range_of(wrapped)
        if found is None or (found[0] >= 0 and any(found[0] == axis for axis, _ in ranges.values())):
            return None
        ranges[dim] = found
    for dim, (_, places) in ranges.items():
        base = values.emit(
            "slice.Tensor", base, dim=dim, start=places.start, end=places[-1] + 1, step=max(places.step, 1)
        )
    return _arranged(base, ranges, common, values)


def _range_of(index: torch.Tensor) -> tuple[int, range] | None:
    """The only axis along which indices change (-1 for none), and their values along it, if they ascend evenly."""
    if index.numel() == 0:
        return None
    first = index[(0,) * index.dim()].item()
    changing = [a for a in range(index.dim()) if bool((index != index.narrow(a, 0, 1)).any())]
    if not changing:
        return -1, range(int(first), int(first) + 1)
    if len(changing) > 1:
        return None
    column = index.movedim(changing[0], 0).reshape(index.shape[changing[0]], -1)[:, 0]
    line = [int(column[i].item()) for i in range(len(column))]
    step = line[1] - line[0]
    expected = range(line[0], line[0] + step * len(line), step) if step > 0 else range(0)
    return (changing[0], expected) if list(expected) == line else None


def _arranged(
    base: SSAValue, ranges: Mapping[int, tuple[int, range]], common: tuple[int, ...], values: Values
) -> SSAValue:
    rank, dims = len(shape_of(base)), sorted(ranges)
    by_axis = {axis: dim for dim, (axis, _) in ranges.items() if axis >= 0}
    fixed = [d for d in dims if ranges[d][0] < 0]
    at = dims[0] if dims == list(range(dims[0], dims[-1] + 1)) else 0
    others = [d for d in range(rank) if d not in ranges]
    at = sum(d < at for d in others)
    order = (*others[:at], *(by_axis[a] for a in sorted(by_axis)), *others[at:], *fixed)
    if order != tuple(range(rank)):
        base = values.emit("permute", base, dims=order)
    if fixed:
        base = values.emit("squeeze.dims", base, dim=tuple(range(rank - len(fixed), rank)))
    for axis in range(len(common)):
        if axis not in by_axis:
            base = values.emit("unsqueeze", base, dim=at + axis)
    wanted = (*shape_of(base)[:at], *common, *shape_of(base)[at + len(common) :])
    return base if shape_of(base) == wanted else values.emit("expand", base, size=wanted)


_FOLDS = ("sum.dim_IntList", "mean.dim", "amax")


def _embedding_bag(node: Node, a: dict[str, Any], values: Values) -> Rewritten:
    """Bags of one size, if that is all they are: rows, and a reduction over those of a bag."""
    offsets = values.known_value(a["offsets"])
    further = [u for u in node.users if u.args[1] != 0]
    special = a["padding_idx"] >= 0 or a["per_sample_weights"] is not None or a["include_last_offset"]
    if offsets is None or further or special or offsets.numel() == 0:
        return None
    count, bags = int(a["indices"].meta["val"].shape[0]), offsets.numel()
    if count % bags or not bool((offsets == torch.arange(bags) * (count // bags)).all()):
        return None
    rows = values.emit("embedding", values.ssa(a["weight"]), values.ssa(a["indices"]))
    grouped = values.emit("view", rows, size=(bags, count // bags, shape_of(rows)[1]))
    return {0: values.emit(_FOLDS[int(a["mode"])], grouped, dim=(1,))}


def _as_strided(node: Node, a: dict[str, Any], values: Values) -> Rewritten:
    """Strides walk through memory, which only a tensor that lies there row by row has as its elements."""
    holder = cast(Node, a["self"])
    offset, reach = _walk(a)
    if node.meta["val"].numel() == 0:
        return None
    while (order := _order_in_memory(holder, offset, reach)) is None:
        if not _is_view(holder):
            raise _beyond(node)
        holder = holder.all_input_nodes[0]
    first = int(offset - holder.meta["val"].storage_offset())
    walk = {"size": tuple(a["size"]), "stride": tuple(a["stride"]), "storage_offset": first}
    dense = _permuted(values.ssa(holder), order, values)
    return values.emit_as(tensor_type(node.meta["val"]), "as_strided", dense, **walk)


def _as_strided_scatter(node: Node, a: dict[str, Any], values: Values) -> Rewritten:
    """As `_as_strided`, writing; the result is the tensor, so the walk must stay inside of it."""
    holder, written = cast(Node, a["self"]), cast(Node, a["src"])
    offset, reach = _walk(a)
    if written.meta["val"].numel() == 0:
        return None
    if (order := _order_in_memory(holder, offset, reach)) is None:
        raise _beyond(node)
    first = int(offset - holder.meta["val"].storage_offset())
    walk = {"size": tuple(a["size"]), "stride": tuple(a["stride"]), "storage_offset": first}
    dense = _permuted(values.ssa(holder), order, values)
    kind = cast("TensorType[Attribute]", dense.type)
    after = values.emit_as(kind, "as_strided_scatter", dense, values.ssa(written), **walk)
    return _permuted(after, tuple(order.index(dim) for dim in range(len(order))), values)


def _walk(a: dict[str, Any]) -> tuple[int, int]:
    """Where strides start in memory, and how much further they go."""
    offset = a["self"].meta["val"].storage_offset() if a["storage_offset"] is None else a["storage_offset"]
    return offset, sum((extent - 1) * step for extent, step in zip(a["size"], a["stride"], strict=True))


def _order_in_memory(node: Node, offset: int, reach: int) -> tuple[int, ...] | None:
    """The dimensions of a tensor as they lie in memory, outermost first.

    None if there are gaps between its elements, or some of the walk from `offset` on by `reach` lies outside of it.
    """
    value = node.meta["val"]
    order = tuple(sorted(range(value.dim()), key=lambda dim: (-value.stride(dim), -value.shape[dim])))
    first = offset - value.storage_offset()
    if not value.permute(order).is_contiguous() or first < 0 or first + reach >= value.numel():
        return None
    return order


def _permuted(value: SSAValue, order: tuple[int, ...], values: Values) -> SSAValue:
    return value if order == tuple(range(len(order))) else values.emit("permute", value, dims=order)


def _is_view(node: Node) -> bool:
    """Whether a node gives another look at the memory of its only operand."""
    if not isinstance(cast(object, node.target), OpOverload) or len(node.all_input_nodes) != 1:
        return False
    first = schema_of(cast(Any, node.target)).arguments[0].alias_info
    return first is not None and not first.is_write and isinstance(node.meta["val"], torch.Tensor)


def _beyond(node: Node) -> UnsupportedError:
    return UnsupportedError(
        "a part of this model cannot be expressed\n"
        f"  1 x {str(node.target).removesuffix('.default')}: its strides leave the tensor they start in",
        where=place_of(node),
        hint="call contiguous() first, or index by tensors",
    )


_REWRITES: dict[object, Callable[[Node, dict[str, Any], Values], Rewritten]] = {
    aten.split_with_sizes.default: _split_with_sizes,
    aten.split.Tensor: _split,
    aten.unbind.int: _unbind,
    aten._embedding_bag_forward_only.default: _embedding_bag,
    aten.as_strided.default: _as_strided,
    aten.as_strided_scatter.default: _as_strided_scatter,
    aten.index.Tensor: _index,
    aten._unsafe_index.Tensor: _index,
}

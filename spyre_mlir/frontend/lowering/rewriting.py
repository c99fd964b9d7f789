"""Nodes expressed by other ops at the aten level: parts of a split, indexing with ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

import torch
from torch.fx import Node
from xdsl.ir import Attribute, SSAValue

from spyre_mlir.dialects.aten_types import broadcast_shapes
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.frontend.arguments import bind
from spyre_mlir.frontend.capture.as_strided import walked
from spyre_mlir.frontend.element_types import tensor_type
from spyre_mlir.ops.composed.nn.grouped_mm import GROUPED_MM

aten = torch.ops.aten


class GraphValues(Protocol):
    """Interface of a rewrite to the graph."""

    def ssa(self, node: Node) -> SSAValue:
        """Return the value of a node."""
        ...

    def known_value(self, node: Node) -> torch.Tensor | None:
        """Return the tensor value of a node, if no call can change it."""
        ...

    def from_host(self, node: Node) -> bool:
        """Return whether the host provides the value of a node unchanged."""
        ...

    def emit(
        self, overload: str, *operands: SSAValue, result: Attribute | None = None, **attributes: object
    ) -> SSAValue:
        """Add an op of the table and return its result; the table infers its type unless it is given."""
        ...


Rewritten = Mapping[int, SSAValue] | SSAValue | None


def rewrite(node: Node, values: GraphValues) -> Rewritten:
    """Return a node's value built from other ops, by index if it has several; None if the node stays unchanged."""
    function = _REWRITES.get(cast(Any, node.target))
    if function is None:
        return None
    return function(node, {name: b.value for name, b in bind(node).items()}, values)


def _parts(source: Node, dim: int, extents: list[int], values: GraphValues) -> dict[int, SSAValue]:
    base, start, parts = values.ssa(source), 0, dict[int, SSAValue]()
    for number, extent in enumerate(extents):
        parts[number] = values.emit("slice.Tensor", base, dim=dim, start=start, end=start + extent)
        start += extent
    return parts


def _split_with_sizes(_node: Node, a: dict[str, Any], values: GraphValues) -> Rewritten:
    return _parts(a["self"], a["dim"], list(a["split_sizes"]), values)


def _split(node: Node, a: dict[str, Any], values: GraphValues) -> Rewritten:
    return _parts(a["self"], a["dim"], [v.shape[a["dim"]] for v in node.meta["val"]], values)


def _unbind(node: Node, a: dict[str, Any], values: GraphValues) -> Rewritten:
    base = values.ssa(a["self"])
    return {i: values.emit("select.int", base, dim=a["dim"], index=i) for i in range(len(node.meta["val"]))}


def _index(node: Node, a: dict[str, Any], values: GraphValues) -> Rewritten:
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


def _flat(index: SSAValue, values: GraphValues) -> SSAValue:
    return index if len(shape_of(index)) == 1 else values.emit("view", index, size=(-1,))


def _as_view(base: SSAValue, indices: Mapping[int, torch.Tensor], values: GraphValues) -> SSAValue | None:
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
    base: SSAValue, ranges: Mapping[int, tuple[int, range]], common: tuple[int, ...], values: GraphValues
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


def _as_strided(node: Node, a: dict[str, Any], values: GraphValues) -> Rewritten:
    """A walk through memory as one through a tensor whose elements lie in row-major order."""
    memory = walked(node)
    if memory is None:
        return None
    offset = 0 if a["storage_offset"] is None else a["storage_offset"]
    if memory.node is a["self"] and memory.in_order and memory.start == offset:
        return None
    base = values.ssa(memory.node)
    if not memory.in_order:
        base = values.emit("permute", base, dims=memory.order)
    walk = {"size": tuple(a["size"]), "stride": tuple(a["stride"]), "storage_offset": memory.start}
    if "src" not in a:
        return values.emit("as_strided", base, result=tensor_type(node.meta["val"]), **walk)
    written = values.emit("as_strided_scatter", base, values.ssa(a["src"]), result=base.type, **walk)
    return written if memory.in_order else values.emit("permute", written, dims=memory.back)


_FOLDS = ("sum.dim_IntList", "mean.dim", "amax")


def _embedding_bag(node: Node, a: dict[str, Any], values: GraphValues) -> Rewritten:
    """Bags of one size, if that is all they are: rows, and a reduction over those of a bag."""
    offsets = values.known_value(a["offsets"])
    further = [u for u in node.users if u.args[1] != 0]
    special = a["padding_idx"] >= 0 or a["per_sample_weights"] is not None or a["include_last_offset"]
    if offsets is None or further or special or offsets.numel() == 0:
        return None
    count, bags = int(a["indices"].meta["val"].shape[0]), offsets.numel()
    if count == 0 or count % bags or not bool((offsets == torch.arange(bags) * (count // bags)).all()):
        return None
    rows = values.emit("embedding", values.ssa(a["weight"]), values.ssa(a["indices"]))
    grouped = values.emit("view", rows, size=(bags, count // bags, shape_of(rows)[1]))
    return {0: values.emit(_FOLDS[int(a["mode"])], grouped, dim=(1,))}


def _grouped_mm(node: Node, a: dict[str, Any], values: GraphValues) -> Rewritten:
    """A product of rows with the matrices of their groups, as transformers spells it for types other than bfloat16."""
    rows, weight = cast(Node, a["self"]), cast(Node, a["mat2"])
    dims = rows.meta["val"].dim(), weight.meta["val"].dim()
    if dims != (2, 3) or a["offs"] is None or a["bias"] is not None or a["out_dtype"] is not None:
        return None
    operands = values.ssa(rows), values.ssa(weight), values.ssa(a["offs"])
    return values.emit(GROUPED_MM, *operands, result=tensor_type(node.meta["val"]))


_REWRITES: dict[object, Callable[[Node, dict[str, Any], GraphValues], Rewritten]] = {
    aten.split_with_sizes.default: _split_with_sizes,
    aten.split.Tensor: _split,
    aten.unbind.int: _unbind,
    aten._embedding_bag_forward_only.default: _embedding_bag,
    aten.index.Tensor: _index,
    aten._unsafe_index.Tensor: _index,
    aten._grouped_mm.default: _grouped_mm,
    aten.as_strided.default: _as_strided,
    aten.as_strided_copy.default: _as_strided,
    aten.as_strided_scatter.default: _as_strided,
}

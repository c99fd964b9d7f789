"""Places that the integers of arguments have to name, because operators of the model take them for indices.

Eager refuses an index outside. The device cannot, so what is asked of an argument is noted on it, and checked at calls.
Indices are followed up to the argument through operators that keep all numbers of a tensor, through sums with a known
number, through the count from one index (`arange(n) + start`), and through the usual choice that counts negative
numbers from the end. Of other arithmetic on arguments the note has the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, cast

import torch
from torch.fx import Node
from xdsl.dialects.builtin import ArrayAttr

from spyre_mlir.dialects.argument_notes import NamedPlaces, places_attribute
from spyre_mlir.dialects.places import source_of
from spyre_mlir.errors import NoSuchPlaceError
from spyre_mlir.frontend.arguments import bind, overload_name
from spyre_mlir.frontend.locations import location_of
from spyre_mlir.frontend.lowering.index_steps import steps_to
from spyre_mlir.frontend.lowering.signature import Signature
from spyre_mlir.frontend.symbolic.sizes import Sizes, same_extent
from spyre_mlir.frontend.torch_private import free_unbacked_symbols
from spyre_mlir.ops.composed.nn.paged_attention import COMPUTE, COMPUTE_WITH_SINKS, STORE

aten = torch.ops.aten
Arguments = Mapping[str, Any]


@dataclass(frozen=True)
class _Asked:
    """What an operator asks of a tensor of indices, and on the way to an argument of those that it is made from.

    Attributes:
        index: the tensor.
        size: how many places there are.
        from_end: how often the size is added to negative numbers.
        plus: what is added to the numbers of the tensor.
        but: a number that is passed over.
        by: steps that make the numbers asked for of those of the tensor.
    """

    index: Node
    size: Any
    from_end: int = 0
    plus: int = 0
    but: int | None = None
    by: ArrayAttr[Any] | None = None


@dataclass(frozen=True)
class _Arguments:
    """Names of the arguments of a program, by node.

    Attributes:
        names: of all of them.
        noted: of those that may have notes.
        inputs: those that calls give.
    """

    names: Mapping[Node, str]
    noted: Mapping[Node, str]
    inputs: frozenset[Node]

    @classmethod
    def of(cls, signature: Signature) -> _Arguments:
        names = {slot.node: slot.argument.name for slot in signature.slots}
        names |= {tied: names[first] for tied, first in signature.ties.items() if first in names}
        constants = {slot.argument.name for slot in signature.slots if slot.argument.kind == "constant"}
        noted = {node: name for node, name in names.items() if name not in constants}
        return cls(names, noted, frozenset(s.node for s in signature.slots if s.argument.kind == "input"))


def check_known_places(
    live: Sequence[Node], sizes: Sizes, known: Callable[[Node], torch.Tensor | None], *, is_again: bool
) -> list[str]:
    """Refuse indices that the model knows and that name no entry, and return the sizes that they need, as conditions.

    Args:
        live: the nodes that make the results.
        sizes: the symbols of the program.
        known: gives the value of a node, if it is known without a call.
        is_again: whether an import has looked already, and knows the sizes of a call now; operators may be others.

    Raises:
        NoSuchPlaceError: an index names none.
    """
    needed = dict[str, None]()
    for node, asked in _demands(live):
        value = known(asked.index)
        if value is None or not value.numel():
            continue
        if isinstance(asked.size, int):
            one = replace(asked, from_end=max(asked.from_end, 1)) if is_again else asked
            _check(_noted(node, one, sizes), value)
        elif not free_unbacked_symbols(asked.size) and asked.but is None:
            if int(value.min()) < 0 and not (asked.from_end or is_again):
                raise _error(_noted(node, asked, sizes), value, value < 0, "0 and more")
            least, size = int(value.max()) + 1, sizes.text(asked.size)
            least = max(least, -int(value.min())) if asked.from_end else least
            if size not in sizes.ranges or sizes.ranges[size].least < least:
                needed[f"{size} >= {least}"] = None
    return list(needed)


def _demands(live: Sequence[Node]) -> Iterator[tuple[Node, _Asked]]:
    """What operators ask of their indices, with the operators."""
    for node in live:
        rule = _rule_of(node) if node.op == "call_function" else None
        if rule is not None and _makes_something(node):
            yield from ((node, asked) for asked in rule(_arguments(node)))


def _rule_of(node: Node) -> Callable[[Arguments], Iterator[_Asked]] | None:
    if (packet := getattr(node.target, "overloadpacket", None)) is None:
        return None
    return _RULES.get(packet) or _RULES_OF_PACKAGES.get(overload_name(cast(Any, node.target)))


def named_places(live: Sequence[Node], signature: Signature, sizes: Sizes) -> dict[str, ArrayAttr[Any]]:
    """Return the notes on arguments, by name.

    Args:
        live: the nodes that make the results.
        signature: the arguments.
        sizes: the symbols of the program.
    """
    arguments = _Arguments.of(signature)
    found: dict[str, dict[NamedPlaces, NamedPlaces]] = {}
    for node, asked in _demands(live):
        for origin in _origins(asked, sizes, arguments):
            if origin.index in arguments.noted:
                one = _noted(node, origin, sizes)
                found.setdefault(arguments.noted[origin.index], {}).setdefault(one.rule, one)
    return {name: places_attribute(list(places.values())) for name, places in found.items()}


def _check(asked: NamedPlaces, indices: torch.Tensor) -> None:
    low, high = asked.limits({})
    wrong = asked.outside(indices, low, high)
    if wrong.any():
        raise _error(asked, indices, wrong, asked.taken(low, high))


def _error(asked: NamedPlaces, indices: torch.Tensor, wrong: torch.Tensor, taken: str) -> NoSuchPlaceError:
    at: list[int] = cast(Any, wrong.nonzero()[0]).tolist()
    number = int(indices[tuple(at)])
    return NoSuchPlaceError(
        f"an index of the model is {number:,}{f' at {at}' if at else ''}, and {asked.op} takes {taken}",
        where=asked.at or None,
        hint="index entries that are there; every call of this model fails in eager mode",
    )


def _noted(node: Node, asked: _Asked, sizes: Sizes) -> NamedPlaces:
    name = overload_name(cast(Any, node.target))
    name = name if "::" in name else f"aten.{name}"
    size = cast(Any, sizes.spelled(asked.size))
    source = source_of(location_of(node))
    # The name of the file alone: the note is part of the program's text, which says the same on every machine.
    source = source if source.file is None else replace(source, file=Path(source.file).name)
    return NamedPlaces(name, str(source), size, asked.from_end, asked.plus, asked.but, asked.by)


def _arguments(node: Node) -> dict[str, Any]:
    return {name: b.value for name, b in bind(node).items()}


def _makes_something(node: Node) -> bool:
    """Whether a call has a result with elements; eager looks at no index if it has none."""
    value = node.meta["val"]
    values = [value] if isinstance(value, torch.Tensor) else list(value)
    return any(isinstance(v, torch.Tensor) and not _is_empty(v) for v in values)


def _is_empty(tensor: torch.Tensor) -> bool:
    return any(isinstance(extent, int) and extent == 0 for extent in cast("Sequence[object]", tensor.shape))


# What operators ask.


def _extent(tensor: Node, dim: int) -> Any:
    shape = tensor.meta["val"].shape
    return shape[dim] if len(shape) else 1


def _along(index: str = "index", *, from_end: int = 0) -> Callable[[Arguments], Iterator[_Asked]]:
    """Rule of operators whose indices name places along a dimension; of all elements in order if none is given."""

    def rule(given: Arguments) -> Iterator[_Asked]:
        tensor, dim = given["self"], given.get("dim")
        size = prod(tensor.meta["val"].shape) if dim is None else _extent(tensor, dim)
        yield _Asked(given[index], size, from_end)

    return rule


def _several(given: Arguments) -> Iterator[_Asked]:
    """Indexing with several tensors; masks choose what is there."""
    indices = {dim: index for dim, index in enumerate(given["indices"]) if index is not None}
    if any(i.meta["val"].dtype in (torch.bool, torch.uint8) or _is_empty(i.meta["val"]) for i in indices.values()):
        return
    for dim, index in indices.items():
        yield _Asked(index, _extent(given["self"], dim), 1)


def _take_along_dim(given: Arguments) -> Iterator[_Asked]:
    yield from _along("indices", from_end=int(given["dim"] is not None))(given)


def _rows(given: Arguments) -> Iterator[_Asked]:
    yield _Asked(given["indices"], _extent(given["weight"], 0))


def _classes(given: Arguments) -> Iterator[_Asked]:
    if given["num_classes"] >= 0:
        yield _Asked(given["self"], given["num_classes"])


def _targets(given: Arguments) -> Iterator[_Asked]:
    """Losses: a target is a class, or the number that is passed over."""
    scores = given["self"]
    if not given["target"].meta["val"].is_floating_point():
        yield _Asked(
            given["target"], _extent(scores, 1 if scores.meta["val"].dim() > 1 else 0), but=given["ignore_index"]
        )


def _slots(given: Arguments) -> Iterator[_Asked]:
    """Places of all pages of a cache, in which tokens are stored."""
    yield _Asked(given["slot_mapping"], prod(given["key_cache"].meta["val"].shape[:2]), 1)


def _ends(given: Arguments) -> Iterator[_Asked]:
    """Numbers of places of sequences: at most those of the pages that the table has for each."""
    places = _extent(given["block_table"], 1) * _extent(given["key_cache"], 1)
    yield _Asked(given["current_tkv_mask"], places + 1)


_RULES: dict[object, Callable[[Arguments], Iterator[_Asked]]] = {
    **dict.fromkeys((aten.index, aten._unsafe_index, aten.index_put, aten._unsafe_index_put), _several),
    **dict.fromkeys((aten.gather, aten.scatter, aten.scatter_add, aten.scatter_reduce), _along()),
    **dict.fromkeys((aten.index_select, aten.index_copy, aten.index_add, aten.index_reduce), _along()),
    **dict.fromkeys((aten.index_fill, aten.take, aten.put), _along(from_end=1)),
    aten.take_along_dim: _take_along_dim,
    **dict.fromkeys((aten.embedding, aten._embedding_bag, aten._embedding_bag_forward_only), _rows),
    aten.one_hot: _classes,
    **dict.fromkeys((aten.cross_entropy_loss, aten.nll_loss, aten.nll_loss_nd, aten.nll_loss2d), _targets),
    **dict.fromkeys((aten.nll_loss_forward, aten.nll_loss2d_forward), _targets),
}
# Operators of packages that may be missing.
_RULES_OF_PACKAGES = {STORE: _slots, COMPUTE: _ends, COMPUTE_WITH_SINKS: _ends}

# Where indices come from.

# Operators with all numbers of their operands, and no others, as long as they have a result with elements.
_KEEPING = {
    *(aten.view, aten.reshape, aten._unsafe_view, aten.flatten, aten.unflatten, aten._reshape_alias),
    *(aten.unsqueeze, aten.squeeze, aten.permute, aten.transpose, aten.t, aten.movedim, aten.expand, aten.repeat),
    *(aten.alias, aten.detach, aten.contiguous, aten.clone, aten.lift_fresh_copy, aten.flip, aten.roll),
    *(aten.view_copy, aten.unsqueeze_copy, aten.squeeze_copy, aten.permute_copy, aten.transpose_copy),
    aten.expand_copy,
}
_JOINING = {aten.cat, aten.stack}


def _origins(asked: _Asked, sizes: Sizes, arguments: _Arguments) -> Iterator[_Asked]:
    """What is asked of arguments, if it can be followed up to them."""
    left, seen = [asked], set[tuple[Node, int, int]]()
    while left:
        one = left.pop()
        if (key := (one.index, one.from_end, one.plus)) in seen or _is_empty(one.index.meta["val"]):
            continue
        seen.add(key)
        if one.index.op == "placeholder":
            yield one
        elif one.index.op == "call_function" and (before := list(_before(one))):
            left += reversed(before)
        else:
            yield from _computed(asked, one, sizes, arguments)


def _computed(asked: _Asked, met: _Asked, sizes: Sizes, arguments: _Arguments) -> Iterator[_Asked]:
    """What is asked of arguments that indices are computed from: of the indices themselves, if sums lie between."""
    for one in (met,) if met.plus == asked.plus else (_before_views(asked), met):
        if (made := steps_to(one.index, sizes, arguments.names, arguments.inputs)) is not None:
            yield replace(one, index=made.carrier, by=made.by)
            return


def _before_views(asked: _Asked) -> _Asked:
    """The same demand on the tensor that views are made of, which has fewer numbers."""
    while asked.index.op == "call_function" and (before := list(_before(asked))):
        if before != [replace(asked, index=before[0].index)]:
            break
        asked = before[0]
    return asked


def _before(asked: _Asked) -> Iterator[_Asked]:
    """What is asked of the operands of a call that makes indices; nothing if its numbers are others."""
    node = asked.index
    packet = getattr(node.target, "overloadpacket", None)
    given = _arguments(node) if packet is not None else {}
    if packet in _KEEPING or (packet in (aten._to_copy, aten.to) and _is_kept(given["self"], node)):
        yield replace(asked, index=given["self"])
    elif packet in _JOINING:
        yield from (replace(asked, index=part) for part in given["tensors"])
    elif packet in (aten.add, aten.sub) and not _is_wide(node):
        return
    elif packet in (aten.add, aten.sub) and isinstance(given["self"], Node) and type(given["other"]) is int:
        more = given["other"] * given["alpha"] if packet is aten.add else -given["other"] * given["alpha"]
        if type(more) is int and asked.but is None and _is_integer(given["self"]):
            yield replace(asked, index=given["self"], plus=asked.plus + more)
    elif packet is aten.add and asked.but is None and (counted := _counted_from(given)) is not None:
        start, numbers = counted
        yield from (replace(asked, index=start, plus=asked.plus + more) for more in numbers)
    elif packet is aten.where and not asked.plus and asked.but is None and _counts_from_end(given, asked.size):
        yield replace(asked, index=given["other"], from_end=asked.from_end + 1)


def _counted_from(given: Arguments) -> tuple[Node, set[int]] | None:
    """An index of one element to which ``arange`` is added, as positions in a cache are, with its ends; else None."""
    one, other = given["self"], given["other"]
    if not isinstance(one, Node) or not isinstance(other, Node) or given["alpha"] != 1:
        return None
    for start, counted in ((one, other), (other, one)):
        if not isinstance(start.meta["val"], torch.Tensor):
            continue  # a size
        is_one = _is_integer(start) and all(type(e) is int and e == 1 for e in start.meta["val"].shape)
        if is_one and (numbers := _range_of(counted)) is not None:
            return start, {numbers[0], numbers[-1]}
    return None


def _range_of(node: Node) -> Sequence[int] | None:
    """The numbers of a tensor that is an ``arange``, or a view of one; None if it is not, or empty, or has a symbol."""
    packet = getattr(node.target, "overloadpacket", None)
    given = _arguments(node) if packet is not None else {}
    if packet in _KEEPING or (packet in (aten._to_copy, aten.to) and _is_kept(given["self"], node)):
        return _range_of(given["self"])
    ends = [_number(given.get(name, default)) for name, default in (("start", 0), ("end", 0), ("step", 1))]
    if packet is not aten.arange or not _is_integer(node):
        return None
    return range(*ends) or None if all(type(number) is int for number in ends) else None


def _number(value: Any) -> Any:
    """The number that a node stands for: one that a call gives, and that the program was made for."""
    return value.meta.get("val") if isinstance(value, Node) else value


def _is_integer(node: Node) -> bool:
    dtype = node.meta["val"].dtype
    return not (dtype.is_floating_point or dtype.is_complex or dtype is torch.bool)


def _is_wide(node: Node) -> bool:
    """Whether integers are wide enough for sums of indices; narrow ones wrap around, which steps repeat."""
    return node.meta["val"].dtype in (torch.int32, torch.int64)


def _is_kept(before: Node, after: Node) -> bool:
    """Whether a conversion has all numbers of a type of integers."""
    old, new = before.meta["val"].dtype, after.meta["val"].dtype
    return (
        _is_integer(before)
        and _is_integer(after)
        and new.is_signed
        and new.itemsize >= old.itemsize + (not old.is_signed)
    )


def _counts_from_end(given: Arguments, size: Any) -> bool:
    """Whether a choice is ``where(i < 0, i + size, i)``."""
    condition, wrapped, index = given.get("condition"), given.get("self"), given.get("other")
    if not all(isinstance(n, Node) and n.op == "call_function" for n in (condition, wrapped)):
        return False
    below, more = (cast(Node, n) for n in (condition, wrapped))
    if getattr(below.target, "overloadpacket", None) is not aten.lt:
        return False
    if getattr(more.target, "overloadpacket", None) is not aten.add:
        return False
    compared, added = map(_arguments, (below, more))
    if compared["self"] is not index or added["self"] is not index or compared["other"] != 0 or added["alpha"] != 1:
        return False
    other = added["other"].meta.get("val") if isinstance(added["other"], Node) else added["other"]
    return same_extent(other, size)


__all__ = ["check_known_places", "named_places"]

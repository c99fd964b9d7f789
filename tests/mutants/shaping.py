"""Mutants of splits, of extents, and of layouts; see `placing` for what a function returns."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, Operand, core_slices, start_offsets
from tests.mutants.image import LX, Draft, Json, Node, Place
from tests.mutants.lifetimes import STICK


def _dsc(value: Json) -> Any:
    return next(iter(value["dscs_"][0].values()))


def _placed(node: Node, view: Descriptor) -> Node:
    """A launch of another descriptor, its operands from their old first byte on, each core where its slice begins."""
    made: list[tuple[Place, ...]] = []
    for operand, places in zip(view.operands, node.places, strict=True):
        first = places[0] if places[0].base == LX else min(places, key=lambda p: p.offset)
        offsets = start_offsets(view.dims, operand, view.op_class)
        made.append(tuple(replace(first, offset=first.offset + n) for n in offsets))
    return replace(node, view=view, places=tuple(made))


def _divided(view: Descriptor, splits: Sequence[int]) -> Descriptor:
    """Another work division; buffers in LX grow or shrink with the slices."""
    dims = tuple(replace(dim, split=n) for dim, n in zip(view.dims, splits, strict=True))
    old, new = {d.label: d.per_core for d in view.dims}, {d.label: d.per_core for d in dims}
    operands = [
        replace(o, extents=tuple(e + new[d] - old[d] for d, e in zip(o.order, o.extents, strict=True)))
        if o.component == LX
        else o
        for o in view.operands
    ]
    return replace(view, dims=dims, operands=tuple(operands), slices=core_slices(dims, view.op_class))


def _splits(view: Descriptor, rng: random.Random) -> tuple[int, ...] | None:
    """Another division that the sizes allow, over at most as many cores."""
    lanes = {o.stick: o.elements_per_stick for o in view.operands if o.stick is not None}
    choices = [
        [n for n in (1, 2, 4, 8, 16, 32) if d.extent % n == 0 and d.extent // n % lanes.get(d.label, 1) == 0]
        for d in view.dims
    ]
    found = [s for s in itertools.product(*choices) if _product(s) <= view.cores and s != _now(view)]
    return rng.choice(found) if found else None


def _now(view: Descriptor) -> tuple[int, ...]:
    return tuple(d.split for d in view.dims)


def _product(numbers: Sequence[int]) -> int:
    result = 1
    for n in numbers:
        result *= n
    return result


def other_division(draft: Draft, rng: random.Random) -> str | None:
    """A kernel is divided otherwise; splits, map, cores and addresses agree."""
    node = rng.choice(draft.nodes)
    splits = _splits(node.view, rng)
    if splits is None:
        return None
    draft.change(_placed(node, _divided(node.view, splits)))
    return f"{node.file}: splits {splits} for {_now(node.view)}"


def division_alone(draft: Draft, rng: random.Random) -> str | None:
    """Splits and map change together, addresses do not."""
    node = rng.choice(draft.nodes)
    splits = _splits(node.view, rng)
    if splits is None:
        return None
    view = _divided(node.view, splits)
    places = tuple(p[: view.cores] for p in node.places)
    if view.cores > node.view.cores or _product(splits) != view.cores:
        return None
    draft.change(replace(node, view=view, places=places))
    return f"{node.file}: splits {splits} for {_now(node.view)}, addresses as before"


def other_map(draft: Draft, rng: random.Random) -> str | None:
    """The slices go to other cores; addresses go along."""
    node = rng.choice(draft.nodes)
    order = list(range(node.view.cores))
    if len(order) < 2:
        return None
    match rng.randrange(3):
        case 0:
            order = order[1:] + order[:1]
        case 1:
            order.reverse()
        case _:
            rng.shuffle(order)
    if order == list(range(len(order))):
        return None
    view = replace(node.view, slices=tuple(node.view.core_slices[n] for n in order))
    places = tuple(tuple(p[n] for n in order) for p in node.places)
    draft.change(replace(node, view=view, places=places))
    return f"{node.file}: slices of cores {order[:4]} on cores 0 to 3"


def map_alone(draft: Draft, rng: random.Random) -> str | None:
    """Two cores have each other's slices in the map, or one the slice of another."""
    node = rng.choice(draft.nodes)
    if node.view.cores < 2:
        return None
    table = draft.json(node)["coreIdToWkSlice_"]
    one, other = rng.sample(sorted(table), 2)
    both = rng.random() < 0.5
    table[one], table[other] = table[other], table[one] if both else table[other]
    return f"{node.file}: core {one} has the slices of {other}" + (", and the other way round" if both else "")


def map_number(draft: Draft, rng: random.Random) -> str | None:
    """One slice number of one core is another."""
    node = rng.choice(draft.nodes)
    table = draft.json(node)["coreIdToWkSlice_"]
    core = rng.choice(sorted(table))
    label = rng.choice(sorted(table[core]))
    table[core][label] += rng.choice((-1, 1, 2))
    return f"{node.file}: core {core} has slice {table[core][label]} of {label}"


def split_number(draft: Draft, rng: random.Random) -> str | None:
    """The number of slices of a dim is another."""
    node = rng.choice(draft.nodes)
    table = draft.json(node)["numWkSlicesPerDim_"]
    label = rng.choice(sorted(table))
    new = rng.choice([n for n in (1, 2, 4, 8, 16, 32) if n != table[label]])
    table[label] = new
    return f"{node.file}: {new} slices of {label}"


def core_count(draft: Draft, rng: random.Random) -> str | None:
    """A number of cores used is another, in one of the places that say it."""
    node = rng.choice(draft.nodes)
    value = draft.json(node)
    owner = rng.choice((value, _dsc(value)))
    owner["numCoresUsed_"] += rng.choice((-1, 1))
    return f"{node.file}: numCoresUsed_ {owner['numCoresUsed_']}"


def _extent(dim: Dim, rng: random.Random, lanes: int) -> int | None:
    new = rng.choice((dim.extent // 2, dim.extent * 2, dim.extent + lanes, dim.extent - lanes, dim.extent + dim.split))
    whole = new > 0 and new % dim.split == 0 and new != dim.extent
    return new if whole else None


def _resized(node: Node, rng: random.Random) -> tuple[int, int] | None:
    at = rng.randrange(len(node.view.dims))
    dim = node.view.dims[at]
    lanes = max((o.elements_per_stick for o in node.view.operands if o.stick == dim.label), default=1)
    new = _extent(dim, rng, lanes)
    return None if new is None else (at, new)


def iteration(draft: Draft, rng: random.Random) -> str | None:
    """A kernel runs over more or fewer elements of a dim, and everything in its file agrees."""
    node = rng.choice(draft.nodes)
    drawn = _resized(node, rng)
    if drawn is None:
        return None
    at, new = drawn
    old = node.view.dims[at]
    dims = tuple(replace(d, extent=new) if n == at else d for n, d in enumerate(node.view.dims))
    own, apart = dims[at].per_core - old.per_core, new - old.extent
    operands = [_grown(o, old.label, own if o.component == LX else apart) for o in node.view.operands]
    if any(min(o.extents, default=1) < 1 for o in operands):
        return None
    view = replace(node.view, dims=dims, operands=tuple(operands))
    follow = rng.random() < 0.5
    draft.change(_placed(node, view) if follow else replace(node, view=view))
    return f"{node.file}: {old.label} {new} for {old.extent}, addresses {'follow' if follow else 'as before'}"


def _grown(operand: Operand, label: str, by: int) -> Operand:
    extents = tuple(e + by if d == label else e for d, e in zip(operand.order, operand.extents, strict=True))
    return replace(operand, extents=extents)


def iteration_in_place(draft: Draft, rng: random.Random) -> str | None:
    """A kernel runs over fewer elements of a dim, in buffers that are what they were."""
    node = rng.choice(draft.nodes)
    drawn = _resized(node, rng)
    if drawn is None or drawn[1] > node.view.dims[drawn[0]].extent:
        return None
    at, new = drawn
    old = node.view.dims[at]
    dims = tuple(replace(d, extent=new) if n == at else d for n, d in enumerate(node.view.dims))
    view = replace(node.view, dims=dims)
    follow = rng.random() < 0.5
    draft.change(_placed(node, view) if follow else replace(node, view=view))
    return f"{node.file}: {old.label} {new} of {old.extent}, addresses {'follow' if follow else 'as before'}"


def buffer_size(draft: Draft, rng: random.Random) -> str | None:
    """An operand's buffer is larger along a dim than it is: a gap where there is none."""
    node = rng.choice(draft.nodes)
    at = rng.randrange(len(node.view.operands))
    operand = node.view.operands[at]
    place = rng.randrange(len(operand.order))
    step = operand.elements_per_stick if operand.order[place] == operand.stick else 1
    extents = list(operand.extents)
    extents[place] += step * rng.choice((1, 2, 8))
    operands = [replace(o, extents=tuple(extents)) if n == at else o for n, o in enumerate(node.view.operands)]
    view = replace(node.view, operands=tuple(operands))
    follow = rng.random() < 0.5
    draft.change(_placed(node, view) if follow else replace(node, view=view))
    text = f"{operand.order[place]} {extents[place]} for {operand.extents[place]}"
    return f"{node.file} operand {at}: {text} in its buffer, addresses {'follow' if follow else 'as before'}"


def gap(draft: Draft, rng: random.Random) -> str | None:
    """The gap behind a dim of an operand is another."""
    node = rng.choice(draft.nodes)
    nodes = [n for n in _dsc(draft.json(node))["scheduleTree_"] if n.get("backGapCore_")]
    if not nodes:
        draft.raw.clear()
        draft.touched.clear()
        return None
    chosen = rng.choice(nodes)
    label = rng.choice(sorted(chosen["backGapCore_"]))
    table = chosen["backGapCore_"][label]
    core = rng.choice(sorted(table))
    table[core] = int(table[core]) + rng.choice((-32, -1, 1, 32, 64))
    return f"{node.file} operand {chosen['ldsIdx_']}: gap of {label} {table[core]}"


def size_number(draft: Draft, rng: random.Random) -> str | None:
    """One size in a file is another."""
    node = rng.choice(draft.nodes)
    dsc = _dsc(draft.json(node))
    tables = [dsc["N_"], dsc["dataStageParam_"]["0"]["ss_"], dsc["dataStageParam_"]["0"]["el_"]]
    which = rng.randrange(3)
    label = rng.choice(sorted(k for k, v in tables[which].items() if isinstance(v, int)))
    old = tables[which][label]
    tables[which][label] = rng.choice([n for n in (old + 1, old - 1, old * 2, old // 2, old + 64) if n != old])
    return f"{node.file}: {('N_', 'ss_', 'el_')[which]} {label} {tables[which][label]} for {old}"


def masked(draft: Draft, rng: random.Random) -> str | None:
    """The last elements of a dim count as padding."""
    node = rng.choice(draft.nodes)
    at = rng.randrange(len(node.view.dims))
    dim = node.view.dims[at]
    if dim.extent < 2:
        return None
    valid = dim.extent - rng.choice((1, 3, 17))
    if valid < 1:
        return None
    dims = tuple(replace(d, valid=valid) if n == at else d for n, d in enumerate(node.view.dims))
    draft.change(replace(node, view=replace(node.view, dims=dims)))
    return f"{node.file}: {valid} of {dim.extent} of {dim.label} valid"


def pool(draft: Draft, rng: random.Random) -> str | None:
    """Scratch memory is smaller than what is used of it."""
    draft.pool_bytes -= rng.choice((STICK, 8 * STICK, draft.pool_bytes // 2))
    return f"{draft.pool_bytes} bytes of scratch memory"


def other_order(draft: Draft, rng: random.Random) -> str | None:
    """Two dims of an operand's layout change places, and its addresses may follow."""
    node = rng.choice(draft.nodes)
    at = rng.randrange(len(node.view.operands))
    operand = node.view.operands[at]
    if len(operand.order) < 2:
        return None
    one, other = rng.sample(range(len(operand.order)), 2)
    order, extents = list(operand.order), list(operand.extents)
    order[one], order[other] = order[other], order[one]
    extents[one], extents[other] = extents[other], extents[one]
    return _relaid(draft, node, at, replace(operand, order=tuple(order), extents=tuple(extents)), rng)


def other_stick(draft: Draft, rng: random.Random) -> str | None:
    """Another dim of an operand lies in the sticks, or none does."""
    node = rng.choice(draft.nodes)
    at = rng.randrange(len(node.view.operands))
    operand = node.view.operands[at]
    others = [label for label in (*operand.order, None) if label != operand.stick]
    if not others:
        return None
    new = rng.choice(others)
    return _relaid(draft, node, at, replace(operand, stick=new), rng)


def other_format(draft: Draft, rng: random.Random) -> str | None:
    """An operand has another format."""
    node = rng.choice(draft.nodes)
    at = rng.randrange(len(node.view.operands))
    operand = node.view.operands[at]
    new = rng.choice(("IEEE_FP32", "BFLOAT16", "SEN143_FP8", "SENINT16", "SENUINT32"))
    return None if new == operand.format else _relaid(draft, node, at, replace(operand, format=new), rng)


def _relaid(draft: Draft, node: Node, at: int, operand: Operand, rng: random.Random) -> str | None:
    operands = [operand if n == at else o for n, o in enumerate(node.view.operands)]
    view = replace(node.view, operands=tuple(operands))
    follow = rng.random() < 0.5
    draft.change(_placed(node, view) if follow else replace(node, view=view))
    how = f"order {operand.order}, stick {operand.stick}, {operand.format}"
    return f"{node.file} operand {at}: {how}, addresses {'follow' if follow else 'as before'}"


def layout_text(draft: Draft, rng: random.Random) -> str | None:
    """One list of a layout has two entries exchanged, or a stick dim is another."""
    node = rng.choice(draft.nodes)
    dsc = _dsc(draft.json(node))
    name = rng.choice(sorted(dsc["primaryDsInfo_"]))
    lists = [dsc["primaryDsInfo_"][name]["layoutDimOrder_"], rng.choice(dsc["scheduleTree_"])["layoutDimOrder_"]]
    order = rng.choice(lists)
    if len(order) < 2 or rng.random() < 0.3:
        stick = dsc["primaryDsInfo_"][name]["stickDimOrder_"]
        others = [label for label in order if label not in stick]
        if not others:
            return None
        stick[0] = rng.choice(others)
        return f"{node.file}: stick dim of {name} {stick[0]}"
    one, other = rng.sample(range(len(order)), 2)
    order[one], order[other] = order[other], order[one]
    return f"{node.file}: a layoutDimOrder_ of {name} or a node {order}"


def scale_or_class(draft: Draft, rng: random.Random) -> str | None:
    """A scale, a format or the class of an operand is another in one place."""
    node = rng.choice(draft.nodes)
    dsc = _dsc(draft.json(node))
    entry = rng.choice(dsc["labeledDs_"])
    which = rng.randrange(4)
    if which < 2:
        place = rng.randrange(len(entry["scale_"]))
        old = entry["scale_"][place]
        entry["scale_"][place] = rng.choice([n for n in (1, -1, -2) if n != old])
        return f"{node.file} operand {entry['ldsIdx_']}: scale {entry['scale_']}"
    if which == 2:
        entry["dataFormat_"] = rng.choice(("IEEE_FP32", "BFLOAT16", "SEN143_FP8"))
        return f"{node.file} operand {entry['ldsIdx_']}: {entry['dataFormat_']}"
    others = sorted(set(dsc["primaryDsInfo_"]) - {entry["dsType_"]})
    if not others:
        return None
    entry["dsType_"] = rng.choice(others)
    return f"{node.file} operand {entry['ldsIdx_']}: class {entry['dsType_']}"


SPLIT = (other_division, other_division, division_alone, other_map, map_alone, map_number, split_number, core_count)
EXTENT = (iteration, iteration, iteration_in_place, iteration_in_place, buffer_size, buffer_size, gap, size_number,
          masked, pool)  # fmt: skip
LAYOUT = (other_order, other_order, other_stick, other_format, layout_text, scale_or_class)

"""Hints on their way through the levels: told apart by operation, then said of each kernel and buffer they concern.

An operation becomes several kernels. Slices of a dimension, and trips over it, concern those of its kernels that have a
loop along it; the place of its results concerns the buffers that other operations read. Copies and changes of layout
that were made for it beside other kernels are concerned by none of them.

Decision: docs/decisions/0140-hints-are-notes.md
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.places import placed, source_of
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import DeviceTensorType
from spyre_mlir.dialects.spyre.hints import HINT, Hint, HintError, hint_of
from spyre_mlir.dialects.spyre.loop import LoopGatherOp, NestOp
from spyre_mlir.dialects.spyre.static_loop import enclosing_loops, loop_bounds
from spyre_mlir.dialects.tensors import as_tensor_type
from spyre_mlir.errors import frames_of_ours
from spyre_mlir.hw.division import Refusal, divisors, judged_divisions
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.ops.hardware_functions import COPY
from spyre_mlir.transforms.utils.kernels.loops import footprints, loops_of, whole_loops

_BEARERS = (AtenOp, NestOp, LoopGatherOp, kernel.KernelOp)


def inherit_hint(new: Operation, old: Operation) -> None:
    """Give an op the hint of the op that it is made for."""
    if (said := old.attributes.get(HINT)) is not None and isinstance(new, _BEARERS):
        new.attributes.setdefault(HINT, said)


def number_hints(module: ModuleOp) -> None:
    """Number the operations with hints, so that what they become is told apart.

    Raises:
        HintError: an attribute is no hint.
    """
    for number, op in enumerate(op for op in module.walk() if isinstance(op, AtenOp)):
        hint = hint_of(op)
        if hint is None or hint.op is not None:
            continue
        tensor = as_tensor_type(op.results[0].type) if op.results else None
        rank = None if tensor is None else len(tensor.get_shape())
        division, tile = _counted(hint.division, rank), _counted(hint.tile, rank)
        replace(hint, op=number, rank=rank, division=division, tile=tile).put(op)


def _counted(counts: Mapping[str, int], rank: int | None) -> dict[str, int]:
    """The same numbers with dimensions counted from the front."""
    return {_from_front(key, rank): count for key, count in counts.items()}


def _from_front(key: str, rank: int | None) -> str:
    return str(int(key) + rank) if key.startswith("-") and key[1:].isdigit() and rank is not None else key


def settle_hints(kernels: Sequence[kernel.KernelOp], spec: SpyreSpec) -> None:
    """Say of each kernel how its loops are divided, and of each buffer where it is, as hints ask for it.

    Raises:
        HintError: a kernel cannot be divided so, or no kernel of an operation has such a loop.
    """
    groups: dict[Attribute, list[kernel.KernelOp]] = {}
    for op in kernels:
        if (said := op.attributes.get(HINT)) is not None:
            groups.setdefault(said, []).append(op)
    for said, group in groups.items():
        hint = hint_of(group[0])
        if hint is not None:
            _settle(hint, said, group, spec)


def _settle(hint: Hint, said: Attribute, group: Sequence[kernel.KernelOp], spec: SpyreSpec) -> None:
    computing = [op for op in group if not _only_moves(op)] or group
    for op in group:
        results = op.output
        if hint.place and _is_read_elsewhere(results, said) and isinstance(results.owner, kernel.AllocOp):
            Hint(place=hint.place).put(results.owner)
    met, cut = set[str](), set[str]()
    for op in group:
        concerned = op in computing
        slices = _by_loop(op, hint.division, hint.rank) if concerned else {}
        trips = _by_loop(op, hint.tile, hint.rank) if concerned else {}
        met.update(key for key, _ in slices.values())
        cut.update(key for key, _ in trips.values())
        tile = {name: n for name, (_, n) in trips.items()}
        if _is_in_loop(op):  # the loop may have taken a whole dimension, so that no loop of the kernel is left for it
            tile = dict(hint.tile)
            cut.update(tile)
            _check_trips(op, tile)
        laid_out = hint.layout if _is_read_elsewhere(op.output, said) else None
        Hint({name: n for name, (_, n) in slices.items()}, layout=laid_out, tile=tile).put(op)
        # A trip may have divisions that the whole has not.
        if slices and all(n == 1 for n in tile.values()) and not hinted_divisions(op, spec):
            raise refused_division(op, spec)
        _check_given(op)
    _refuse_unknown("divides", [key for key in hint.division if key not in met], computing)
    _refuse_unknown("tiles", [key for key in hint.tile if key not in cut], computing)


def _by_loop(op: kernel.KernelOp, counts: Mapping[str, int], rank: int | None) -> dict[str, tuple[str, int]]:
    """The numbers of a hint by the loop of a kernel that they concern, with what names it there."""
    return {name: (key, n) for key, n in counts.items() for name in _loop(op, key, rank)}


def _refuse_unknown(asked: str, unknown: Sequence[str], kernels: Sequence[kernel.KernelOp]) -> None:
    if unknown:
        have = "; ".join(f"{op.function_name}: {_loops_text(op)}" for op in kernels)
        raise HintError(
            f"a hint {asked} {unknown[0]}, and no kernel of the operation has such a loop",
            where=placed(kernels[0].function_name, kernels[0].location),
            hint=f"name a dimension of the result or a loop; the kernels are {have}",
        )


def _check_given(op: kernel.KernelOp) -> None:
    """Refuse a hint that the text of the program contradicts."""
    hint, given = hint_of(op), op.space_splits()
    if hint is None or all(n == 1 for n in given.values()):
        return
    for name, count in hint.division.items():
        if given[name] != count:
            raise HintError(
                f"a hint divides {name} over {count}, and the program has it over {given[name]}",
                where=placed(op.function_name, op.location),
                hint="take away one of them",
            )


def _is_in_loop(op: kernel.KernelOp) -> bool:
    return next(enclosing_loops(op), None) is not None


def _check_trips(op: kernel.KernelOp, tile: Mapping[str, int]) -> None:
    """Refuse a hint that the loops around a kernel contradict."""
    wanted = sorted(n for n in tile.values() if n > 1)
    given = sorted(loop_bounds(loop).trips for loop in enclosing_loops(op))
    if tile and given != wanted:
        said, has = " x ".join(map(str, wanted)) or "no", " x ".join(map(str, given))
        raise HintError(
            f"a hint asks for {said} trips, and the program has loops of {has} trips around the kernel",
            where=placed(op.function_name, op.location),
            hint="take away the hint, or change it with the loop",
        )


def hinted_tile(op: kernel.KernelOp) -> Mapping[str, int]:
    """Return the trips over loops of a kernel that a hint asks for; empty without a hint about it."""
    hint = hint_of(op)
    return {} if hint is None else hint.tile


def has_tile(op: kernel.KernelOp) -> bool:
    """Return whether a hint says in which loops a kernel runs, or that it runs in none."""
    return bool(hinted_tile(op))


def refuse_untiled(kernels: Iterable[kernel.KernelOp], why: str) -> None:
    """Refuse kernels that a hint wants in loops, and that are in none.

    Raises:
        HintError: there is one; `why` says what is missing.
    """
    for op in kernels:
        if any(n > 1 for n in hinted_tile(op).values()) and not _is_in_loop(op):
            said = ", ".join(f"{n} trips over {name}" for name, n in hinted_tile(op).items())
            where = placed(op.function_name, op.location)
            raise HintError(f"a hint asks for {said}, and the kernel is in no loop", where=where, hint=why)


def _only_moves(op: kernel.KernelOp) -> bool:
    return not isinstance(op, kernel.ComputeOp) or op.function_name == COPY


def _is_read_elsewhere(buffer: SSAValue, said: Attribute) -> bool:
    """Return whether an op reads a buffer that is not of the operation with this hint."""
    users = (use.operation for use in buffer.uses if not isinstance(use.operation, kernel.FreeOp))
    return any(user.attributes.get(HINT) != said for user in users)


def _loop(op: kernel.KernelOp, key: str, rank: int | None) -> Iterable[str]:
    """The loop of a kernel that a hint names; none if it has no such loop, or several walk the dimension."""
    if not key.isdigit():
        return [key] if key in op.space.extents else []
    index = op.maps.data[-1].data
    if (rank is not None and len(index) != rank) or int(key) >= len(index):
        return []
    names = [name for name, _ in index[int(key)].terms]
    return names if len(names) == 1 else []


def hinted_divisions(op: kernel.KernelOp, spec: SpyreSpec) -> list[dict[str, int]] | None:
    """Return the legal divisions that a hint allows; None without a hint about it.

    Those over most cores come first, of equals those that divide sums least.
    """
    hint = hint_of(op)
    if hint is None or not hint.division:
        return None
    loops = loops_of(op)
    found = [
        splits
        for splits, refusal in judged_divisions(loops, footprints(op, loops), spec)
        if refusal is None and all(splits.get(name) == n for name, n in hint.division.items())
    ]
    summed = [lp.name for lp in loops if not lp.kept]
    return sorted(found, key=lambda splits: (-prod(splits.values()), prod(splits[name] for name in summed)))


def refused_division(op: kernel.KernelOp, spec: SpyreSpec) -> HintError:
    """Return the error about a kernel that cannot be divided as its hint asks for it."""
    hint, whole = hint_of(op), whole_loops(op)
    wanted = {} if hint is None else dict(hint.division)
    loops = loops_of(op)
    allowed = {lp.name: divisors(lp.units, spec.cores_per_card) if lp.divisible else [1] for lp in loops}
    text = ", ".join(f"{name} over {n}" for name, n in wanted.items())
    wrong = next((name for name, n in wanted.items() if n not in allowed[name]), None)
    if wrong is not None:
        why = whole.get(
            wrong, f"equal slices of its {_units(op, wrong)} are needed, on at most {spec.cores_per_card} cores"
        )
    elif prod(wanted.values()) > spec.cores_per_card:
        why = f"that is {prod(wanted.values())} slices, and the card has {spec.cores_per_card} cores"
    else:
        near = [r for s, r in judged_divisions(loops, footprints(op, loops), spec) if _agrees(s, wanted)]
        why = next((r.value for r in near if r is not None), Refusal.SPAN.value)
    choices = "; ".join(f"{name}: {', '.join(map(str, allowed[name]))}" for name in wanted)
    return HintError(
        f"a hint divides {text}: {why}", where=placed(op.function_name, op.location), hint=f"allowed are {choices}"
    )


def _agrees(splits: Mapping[str, int], wanted: Mapping[str, int]) -> bool:
    return all(splits[name] == n for name, n in wanted.items())


def _units(op: kernel.KernelOp, name: str) -> str:
    units = next(lp.units for lp in loops_of(op) if lp.name == name)
    return f"{units} elements" if units == op.space.extents[name] else f"{units} pieces, sticks in the lanes"


def _loops_text(op: kernel.KernelOp) -> str:
    return ", ".join(f"{name} = {extent}" for name, extent in op.space.extents.items()) or "no loops"


class HintWarning(UserWarning):
    """Hints that concern no kernel."""


def warn_of_unmet_hints(aten: ModuleOp, kernels: ModuleOp) -> None:
    """Warn of operations with hints that no kernel was made for, as views and host steps.

    Args:
        aten: the program at the aten level.
        kernels: the same at the kernel level.
    """
    asked = [op for op in aten.walk() if isinstance(op, AtenOp) and HINT in op.attributes]
    met = {_line(op) for op in kernels.walk() if HINT in op.attributes} if asked else set[object]()
    if unmet := [placed(op.name, op.location) for op in asked if _line(op) not in met]:
        more = f" and {len(unmet) - 1} more" if len(unmet) > 1 else ""
        warnings.warn(f"a hint concerns no kernel: {unmet[0]}{more}", HintWarning, stacklevel=frames_of_ours())


def _line(op: Operation) -> object:
    source = source_of(op.location)
    return source.file, source.line


def hinted_place(buffer: SSAValue) -> str:
    """Return where a hint asks a buffer to be; empty if none does."""
    hint = hint_of(buffer.owner) if isinstance(buffer.owner, kernel.AllocOp) else None
    return "" if hint is None else hint.place


def follow_hbm_hints(ops: Iterable[Operation]) -> None:
    """Move the buffers to device memory that a plan has in the scratchpads and a hint in the text wants there.

    Raises:
        HintError: the text gives such a buffer an address in the scratchpads.
    """
    for op in ops:
        if not isinstance(op, kernel.AllocOp) or hinted_place(op.result) != "hbm":
            continue
        tensor = kernel.device_tensor(op.result)
        if tensor.space == "hbm":
            continue
        if op.offset is not None:
            raise HintError(
                f"a hint asks for a buffer in HBM, and the program has it at {op.offset.value.data} of the scratchpads",
                where=placed(op.name, op.location),
                hint="take away one of them",
            )
        Rewriter.replace_value_with_new_type(op.result, DeviceTensorType(replace(tensor, space="hbm")))


__all__ = [
    "HintWarning",
    "follow_hbm_hints",
    "has_tile",
    "hinted_divisions",
    "hinted_place",
    "hinted_tile",
    "inherit_hint",
    "number_hints",
    "refuse_untiled",
    "refused_division",
    "settle_hints",
    "warn_of_unmet_hints",
]

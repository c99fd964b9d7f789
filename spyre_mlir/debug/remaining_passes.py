"""The passes that a printed program has not been through yet, so that a reader may print it, change it and go on.

A text does not name the passes that made it. Its ops say at which level it is, and what passes leave behind says how
far within the level: layouts at nests, divided kernels and loops, offsets in the scratchpads and in the pool.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from spyre_mlir.dialects.ir.modules import ops_in
from spyre_mlir.dialects.spyre.kernel import AllocOp, KernelOp, device_tensor
from spyre_mlir.dialects.spyre.layout_choices import LAYOUT
from spyre_mlir.errors import InputError, LoweringError
from spyre_mlir.options import PassOptions
from spyre_mlir.pipeline import LEVELS, STAGES, made_passes, passes_to
from spyre_mlir.text.render import verify_module
from spyre_mlir.transforms.plan_notes.notes import PLAN


@dataclass(frozen=True)
class _Trace:
    """A trace that passes leave in a program.

    Attributes:
        level: of the program.
        following: the pass to go on with.
        left: whether an op shows it.
    """

    level: str
    following: str
    left: Callable[[Operation], bool]


def _is_placed(op: Operation, space: str) -> bool:
    return isinstance(op, AllocOp) and op.offset is not None and device_tensor(op.result).space == space


def _is_planned(op: Operation) -> bool:
    if isinstance(op, scf.ForOp) or PLAN in op.attributes:
        return True
    return isinstance(op, KernelOp) and any(n > 1 for n in op.space_splits().values())


# The last traces first. What a pass finds done already it keeps, so that going on one pass too early changes nothing.
_TRACES = (
    _Trace("spyre.kernel", "convert-spyre-kernel-to-superdsc", lambda op: _is_placed(op, "hbm")),
    _Trace("spyre.kernel", "forward-results", lambda op: _is_placed(op, "lx")),
    _Trace("spyre.kernel", "materialize-plan", _is_planned),
    _Trace("spyre.kernel", "keep-on-device", lambda op: isinstance(op, KernelOp)),
    _Trace("spyre.loop", "choose-layouts", lambda op: LAYOUT in op.attributes),
)


def level_of(module: ModuleOp) -> str:
    """Return the level that a program is at: the first at which all of its ops are legal.

    Raises:
        InputError: there is none.
    """
    for stage in STAGES:
        try:
            stage.legal.check(module)
        except LoweringError:
            continue
        return stage.level
    raise InputError(
        "the program has ops of several levels, or of none",
        hint=f"the levels are {', '.join(LEVELS)}; -p runs passes by their names",
    )


def remaining_passes(module: ModuleOp, to: str, after: str | None = None) -> list[str]:
    """Return the names of the passes that bring a program to a level, or that follow up to a pass.

    Args:
        module: as it was printed, at any point of the pipeline.
        to: the level, or the last pass.
        after: the last pass that has run; if that is not said, the program shows it.

    Raises:
        InputError: the program is beyond that, there is no such level or pass, or the program is of no level.
    """
    names = passes_to(LEVELS[-1]).split(",")
    if to in LEVELS:
        end = len(passes_to(to).split(",")) if passes_to(to) else 0
    else:
        end = _place(to, names, (*LEVELS, *names)) + 1
    start = _start(module, names) if after is None else _place(after, names, names) + 1
    if start > end or (start == end and to not in LEVELS):
        reached = level_of(module) if after is None else f"behind {after}"
        raise InputError(
            f"the program is beyond {to} already: it is {'at the level ' if after is None else ''}{reached}",
            hint=f"it can go on to {', '.join([*dict.fromkeys(names[start:]), LEVELS[-1]])}",
        )
    return names[start:end]


def lower_on(module: ModuleOp, context: Context, to: str, options: PassOptions | None = None) -> None:
    """Bring a program to a level, or through a pass, in place; it verifies at each level.

    Args:
        module: as for `remaining_passes`.
        context: dialects and the card.
        to: the level or the pass.
        options: fields of passes, as for `pipeline.lower`.

    Raises:
        InputError: as `remaining_passes`.
        UnsupportedError, LoweringError: the program cannot be lowered.
    """
    ends = {passes_to(level).split(",")[-1] for level in LEVELS}
    for one in made_passes(remaining_passes(module, to), options or {}):
        one.apply(context, module)
        if one.name in ends:
            verify_module(module)
    verify_module(module)


def _start(module: ModuleOp, names: list[str]) -> int:
    """The number of the first pass that the program has not been through."""
    level, ops = level_of(module), ops_in(module)
    for trace in _TRACES:
        if trace.level == level and any(trace.left(op) for op in ops):
            return names.index(trace.following)
    return len(passes_to(level).split(",")) if passes_to(level) else 0


def _place(name: str, names: list[str], known: tuple[str, ...] | list[str]) -> int:
    """The number of a pass.

    Raises:
        InputError: there is no such pass on the way.
    """
    if name in names:
        return names.index(name)
    near = [one for one in known if one.endswith(f".{name}")] or get_close_matches(name, known, 3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
    raise InputError(f"no level or pass of the pipeline is called '{name}'", hint=hint)


__all__ = ["level_of", "lower_on", "remaining_passes"]

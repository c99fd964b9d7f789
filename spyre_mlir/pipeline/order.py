"""The levels in order, the passes that lead to each, and the ops that are legal there; no other file defines the order.

Decision: docs/decisions/0016-two-families-one-dialect.md
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields

from xdsl.passes import ModulePass

from spyre_mlir import legality
from spyre_mlir.errors import InputError
from spyre_mlir.legality import LegalForms
from spyre_mlir.options import ENABLED, PassOptions
from spyre_mlir.plugins import registry
from spyre_mlir.transforms import get_all_passes


@dataclass(frozen=True)
class Stage:
    """One level: the passes that reach it from the previous level, and the ops that are legal there.

    Attributes:
        passes: the pipeline that leads to it, as `spyre-opt -p` takes it; `name?` runs only when asked for,
            and at `@point` the passes of plugins run.
        legal: its ops and types.
    """

    passes: str
    legal: LegalForms

    @property
    def level(self) -> str:
        """The name of the level."""
        return self.legal.level


OUTLINE = "outline-regions"
# Passes that run before equal layers are looked for: launches end at the steps of the host that they put in.
BEFORE_OUTLINE = ("take-experts",)
OPTIONAL = "?"
POINT = "@"
OFF: Mapping[str, object] = {ENABLED: False}

STAGES = (
    Stage(f"{OUTLINE}?", legality.ATEN),
    Stage(
        "@aten,place-inputs,reuse-inputs,put-pages,put-entries,part-caches,turn-loops,fold-sinks,slice-columns,turn-heads,part-columns,take-experts,spread-experts,pad-heads,convolve-patches,shift-rows,fold-padding,join-places,order-channels,part-sums,convolve-rows,group-channels,decompose-aten,cse,@aten-decomposed,"
        "convert-aten-to-spyre-loop,scale-results,split-products,update-in-place,forward-copies,join-parts,pack-weights,schedule-host-steps,@spyre.loop",
        legality.LOOP,
    ),
    Stage(
        "join-lanes,cut-copies,part-rows,pad-rows,cut-rows,cut-columns,choose-layouts,convert-spyre-loop-to-spyre-kernel,keep-on-device,share-trips,carry-in-place,@spyre.kernel,"
        "view-copies,choose-rows,order-batches,plan,materialize-plan,divide-work,inline-loops,place-lx,forward-results,stage-transfers,assign-pool",
        legality.KERNEL,
    ),
    Stage("convert-spyre-kernel-to-superdsc", legality.SUPERDSC),
)

LEVELS = tuple(stage.level for stage in STAGES)

# Passes to the loop level that choose a quicker form by the extents of tensors: without them, programs that differ in
# sizes alone have the same ops. Passes that look at channels alone, which no size of a call changes, need not be here.
QUICKER_FORMS = (
    "put-pages",
    "put-entries",
    "part-caches",
    "part-columns",
    "take-experts",
    "spread-experts",
    "pad-heads",
    "convolve-patches",
    "shift-rows",
    "fold-padding",
    "convolve-rows",
    "group-channels",
    "scale-results",
    "split-products",
    "update-in-place",
    "forward-copies",
    "join-parts",
    "pack-weights",
)

KTIR = Stage("convert-spyre-kernel-to-ktdp", legality.KTIR)


def check_level(level: str) -> str:
    """Return the level, after checking that it exists.

    Raises:
        InputError: there is no level of this name.
    """
    if level not in LEVELS:
        raise InputError(f"no level is called '{level}'", hint=f"the levels are {', '.join(LEVELS)}")
    return level


def passes_to(level: str) -> str:
    """Return the pipeline from aten to a level, as `spyre-opt -p` takes it.

    Raises:
        InputError: there is no level of this name.
    """
    stages = STAGES[: LEVELS.index(check_level(level)) + 1]
    return ",".join(name for stage in stages for name in names_of(stage))


def names_of(stage: Stage, options: PassOptions | None = None) -> Iterator[str]:
    """Return the names of the passes that lead to a level, in order, those of plugins among them.

    Args:
        stage: leads to the level.
        options: fields of passes by name of the pass; optional passes that are named here are included.
    """
    for entry in stage.passes.split(","):
        name = entry.removesuffix(OPTIONAL)
        if entry.startswith(POINT):
            yield from (r.op for r in registry.passes_at(entry.removeprefix(POINT)))
        elif name and (name == entry or name in (options or {})):
            yield name


def pass_factories() -> dict[str, Callable[[], type[ModulePass]]]:
    """Return passes by name: ours, and those of xDSL that lead to a level."""

    def cse() -> type[ModulePass]:
        from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination

        return CommonSubexpressionElimination

    return {**get_all_passes(), "cse": cse}


def made_passes(names: Iterable[str], options: PassOptions) -> Iterator[ModulePass]:
    """Make passes with their options; those that are `OFF` are left out.

    Args:
        names: of the passes.
        options: fields of passes by name of the pass.
    """
    factories = pass_factories()
    for name in names:
        values = dict(options.get(name, {}))
        if values.pop(ENABLED, True):
            yield factories[name]()(**values)


def check_options(options: PassOptions) -> None:
    """Check that passes and their options exist.

    Raises:
        InputError: one does not; the error lists those that do.
    """
    known = {name: pass_factories()[name]() for stage in STAGES for name in names_of(stage, options)}
    for name, values in options.items():
        if name not in known:
            raise InputError(f"no level is reached by a pass '{name}'", hint=f"the passes are {', '.join(known)}")
        taken = [*OFF, *(f.name for f in fields(known[name]))]
        if unknown := [option for option in values if option not in taken]:
            raise InputError(f"{name} has no option {unknown[0]}", hint=f"its options are {', '.join(taken)}")


__all__ = [
    "BEFORE_OUTLINE",
    "KTIR",
    "LEVELS",
    "OFF",
    "OUTLINE",
    "QUICKER_FORMS",
    "STAGES",
    "Stage",
    "check_level",
    "check_options",
    "made_passes",
    "names_of",
    "pass_factories",
    "passes_to",
]

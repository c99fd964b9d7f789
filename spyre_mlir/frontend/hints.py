"""`hint`: wishes for the plan of the operations in a part of a model, which exported programs keep."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, cast

import torch
from torch.fx.traceback import annotate, has_preserved_node_meta, preserve_node_meta
from xdsl.ir import Operation

from spyre_mlir.dialects.places import placed
from spyre_mlir.dialects.spyre.hints import HINT, Hint, HintError, checked, hint_of
from spyre_mlir.frontend.locations import location_of

_FORM = 'for example hint(division={0: 4}) or hint(place="lx")'
_MOST_DIMENSIONS = 64  # of a tensor of torch; what a layout counts from the end is known at the operation
NOTES = "custom"  # where torch keeps what `annotate` says
_TAKEN_OVER = ("stack_trace", "nn_module_stack", NOTES)


def hint(
    *,
    division: Mapping[int | str, int] | None = None,
    place: str | None = None,
    layout: Mapping[str, Any] | None = None,
    tile: Mapping[int | str, int] | None = None,
) -> AbstractContextManager[None]:
    """Mark the operations that a part of `forward` calls with wishes for their plan, which override the planner.

    ```python
    with spyre_mlir.hint(division={0: 8, 1: 4}, place="lx"):
        y = self.linear(x)
    ```

    The marks survive `torch.export.export`, `torch.export.save` and `torch.compile`, and do nothing in eager mode. Of
    hints inside each other the innermost counts.

    Args:
        division: over how many cores loops of the kernels are divided: by number of a dimension of the result, from
            the end if negative, or by name of a loop of the kernel (``m``, ``n``, ``k`` of a product). Loops that are
            not named are left to the planner.
        place: where results are kept that operations outside of the part read: ``lx``, the scratchpads, or ``hbm``.
        layout: how the result of each operation lies on the card: ``stick``, the dimension along its sticks (from the
            end if negative, or ``"unit"`` for one element per stick), ``order``, its dimensions with the outermost
            first, ``lanes``, the name of the loop in the lanes. Parts that are not named are left to the planner.
        tile: in how many trips of a loop the kernels run, each on an equal block: by dimension or loop, as in a
            division. One or two have more than 1; 1 is no loop, and dimensions that are not named have none, either.
            Kernels in a row that are to run in the same trips share the loop.

    Raises:
        InputError: none is given, or one has no such value. Whether the kernels can be divided, put into loops, laid
            out and placed so is checked when the program is compiled.
    """
    given = (("division", division), ("place", place), ("layout", layout), ("tile", tile))
    said = {name: value for name, value in given if value is not None}
    made = checked(said, _FORM, _MOST_DIMENSIONS)
    if not made:
        raise HintError("a hint says nothing", hint=_FORM)
    kept = {"layout": dict(layout)} if layout is not None else {}
    noted = annotate({HINT: {"division": dict(made.division), "place": made.place, "tile": dict(made.tile), **kept}})
    # Dynamo keeps notes by itself, and knows this context alone.
    return cast("AbstractContextManager[None]", noted if torch.compiler.is_dynamo_compiling() else _kept(noted))


@contextmanager
def _kept(noted: Any) -> Generator[None]:
    """A context in which traced nodes keep their notes; entered twice, torch would not take an inner note back."""
    with nullcontext() if has_preserved_node_meta() else preserve_node_meta(), noted:
        yield


def hint_at(node: torch.fx.Node) -> Hint | None:
    """Return the hint that a node was traced under; None without one.

    Raises:
        HintError: a saved program has something else in its place.
    """
    notes, value = cast("dict[str, Any]", node.meta.get(NOTES) or {}), node.meta.get("val")
    rank = value.dim() if isinstance(value, torch.Tensor) else None
    if HINT not in notes:
        return None
    try:
        return checked(notes[HINT], rank=rank)
    except HintError as error:
        raise HintError(error.message, where=placed(node.name, location_of(node)), hint=error.hint) from error


def place_and_hint(node: torch.fx.Node) -> dict[str, Any]:
    """Return what torch has noted of the place in the model and of the hint of a node, for calls that stand for it."""
    return {key: node.meta[key] for key in _TAKEN_OVER if key in node.meta}


def note_hint(node: torch.fx.Node, op: Operation) -> None:
    """Note the hint of an op at the node that stands for it, where `hint_at` finds it."""
    if (found := hint_of(op)) is not None:
        node.meta[NOTES] = {HINT: found.noted}


__all__ = ["NOTES", "hint", "hint_at", "note_hint", "place_and_hint"]

"""One pass per file; the file is named after the pass, and some are in a folder of their kind."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.errors import RegistrationError
from spyre_mlir.plugins import registry
from spyre_mlir.text.render import verify_module

PASSES = (
    "specialize-shapes",
    "outline-regions",
    "inline-regions",
    "place-inputs",
    "fold-sinks",
    "turn-heads",
    "part-columns",
    "take-experts",
    "spread-experts",
    "pad-heads",
    "fold-padding",
    "convolve-rows",
    "decompose-aten",
    "convert-aten-to-spyre-loop",
    "scale-results",
    "split-products",
    "pack-weights",
    "update-in-place",
    "forward-copies",
    "join-parts",
    "schedule-host-steps",
    "cut-rows",
    "cut-columns",
    "choose-layouts",
    "convert-spyre-loop-to-spyre-kernel",
    "keep-on-device",
    "view-copies",
    "order-batches",
    "plan",
    "materialize-plan",
    "divide-work",
    "forward-results",
    "place-lx",
    "assign-pool",
    "convert-spyre-kernel-to-ktdp",
    "convert-spyre-kernel-to-superdsc",
)
"""Names of our passes. `place-lx` is `PlaceLxPass` of `place_lx.py`; `spyre_mlir.pipeline` says which run, and when."""

_FOLDERS: dict[str, str] = {
    **dict.fromkeys(
        ("place-inputs", "choose-layouts", "view-copies", "order-batches", "forward-results"), "buffer_layouts"
    ),
    **dict.fromkeys(("cut-rows", "cut-columns", "split-products", "join-parts"), "cut_nests"),
    **dict.fromkeys(
        (
            "fold-sinks",
            "turn-heads",
            "part-columns",
            "take-experts",
            "spread-experts",
            "pad-heads",
            "fold-padding",
            "convolve-rows",
        ),
        "aten_forms",
    ),
}


def _load(name: str) -> type[ModulePass]:
    place = ".".join(filter(None, (__name__, _FOLDERS.get(name), name.replace("-", "_"))))
    module = import_module(place)
    pass_: type[ModulePass] = getattr(module, f"{name.title().replace('-', '')}Pass")
    return pass_


def get_all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Return loaders of our passes and of plugin passes, by name."""
    ours = {name: partial(_load, name) for name in PASSES}
    for registered in registry.all_passes():
        if registered.op in PASSES:
            raise RegistrationError(
                f"the pass {registered.op} is claimed by both spyre_mlir and {registered.owner}",
                hint="give yours another name",
            )
    return ours | {r.op: partial(_of_plugin, r) for r in registry.all_passes()}


def _of_plugin(registered: registry.Registered) -> type[ModulePass]:
    """A pass as its author wrote it; mistakes in it, and IR that does not verify, are told with the author's name."""
    theirs = cast("type[ModulePass]", registered.function)

    class Blamed(theirs):
        def apply(self, ctx: Context, op: ModuleOp) -> None:
            with registered.blamed():
                cast(Any, super()).apply(ctx, op)
            try:
                verify_module(op)
            except VerifyException as error:
                message = f"the pass {registered.op} of {registered.owner} leaves IR that does not verify: {error}"
                raise RegistrationError(message, where=str(getattr(error, "op", op).location)) from error

    return Blamed

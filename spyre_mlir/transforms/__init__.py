"""One pass per file; the file is named after the pass."""

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

PASSES: dict[str, str] = {
    "specialize-shapes": "SpecializeShapesPass",
    "outline-regions": "OutlineRegionsPass",
    "inline-regions": "InlineRegionsPass",
    "decompose-aten": "DecomposeAtenPass",
    "convert-aten-to-spyre-loop": "ConvertAtenToSpyreLoopPass",
    "schedule-host-steps": "ScheduleHostStepsPass",
    "convert-spyre-loop-to-spyre-kernel": "ConvertSpyreLoopToSpyreKernelPass",
    "coarse-tile": "CoarseTilePass",
    "divide-work": "DivideWorkPass",
    "place-lx": "PlaceLxPass",
    "assign-pool": "AssignPoolPass",
    "convert-spyre-kernel-to-ktdp": "ConvertSpyreKernelToKtdpPass",
    "convert-spyre-kernel-to-superdsc": "ConvertSpyreKernelToSuperdscPass",
}


def _loader(name: str, class_name: str) -> Callable[[], type[ModulePass]]:
    def load() -> type[ModulePass]:
        module = import_module(f"spyre_mlir.transforms.{name.replace('-', '_')}")
        pass_: type[ModulePass] = getattr(module, class_name)
        return pass_

    return load


def get_all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Return loaders of our passes and of plugin passes, by name."""
    ours = {name: _loader(name, class_name) for name, class_name in PASSES.items()}
    for registered in registry.all_passes():
        if registered.op in PASSES:
            raise RegistrationError(
                f"the pass {registered.op} is claimed by both spyre_mlir and {registered.owner}",
                hint="give yours another name",
            )
    return ours | {r.op: partial(_of_plugin, r) for r in registry.all_passes()}


def _of_plugin(registered: registry.Registered[type[ModulePass]]) -> type[ModulePass]:
    """A pass as its author wrote it; mistakes in it, and IR that does not verify, are told with the author's name."""

    class Blamed(registered.function):
        def apply(self, ctx: Context, op: ModuleOp) -> None:
            with registered.blamed():
                cast(Any, super()).apply(ctx, op)
            try:
                verify_module(op)
            except VerifyException as error:
                message = f"the pass {registered.op} of {registered.owner} leaves IR that does not verify: {error}"
                raise RegistrationError(message, where=str(getattr(error, "op", op).location)) from error

    return Blamed

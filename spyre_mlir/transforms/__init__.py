"""One pass per file; the file is named as the pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module

from xdsl.passes import ModulePass

from spyre_mlir import registry

PASSES: dict[str, str] = {
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
    """Loaders of our passes and of those that plugins registered, by name."""
    ours = {name: _loader(name, class_name) for name, class_name in PASSES.items()}
    return ours | {r.op: partial(_given, r.function) for r in registry.all_passes()}


def _given(pass_type: type[ModulePass]) -> type[ModulePass]:
    return pass_type

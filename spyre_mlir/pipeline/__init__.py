"""The pipeline from aten to SuperDSC: the order of levels and passes, and lowering through it."""

from spyre_mlir.pipeline.lowering import Lowered, has_calls, lower, lower_last, lower_to_ktir
from spyre_mlir.pipeline.observers import ModulesBefore, PassWatcher
from spyre_mlir.pipeline.order import (
    KTIR,
    LEVELS,
    OFF,
    QUICKER_FORMS,
    STAGES,
    check_level,
    made_passes,
    pass_factories,
    passes_to,
)
from spyre_mlir.pipeline.records import StageRecord

__all__ = [
    "KTIR",
    "LEVELS",
    "OFF",
    "QUICKER_FORMS",
    "STAGES",
    "Lowered",
    "ModulesBefore",
    "PassWatcher",
    "StageRecord",
    "check_level",
    "has_calls",
    "lower",
    "lower_last",
    "lower_to_ktir",
    "made_passes",
    "pass_factories",
    "passes_to",
]

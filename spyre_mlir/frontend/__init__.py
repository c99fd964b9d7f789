"""From torch programs to the aten level: the only room that imports torch."""

from __future__ import annotations

from spyre_mlir.frontend.calls import finish_call, is_complete, signature_of
from spyre_mlir.frontend.export import load_pt2
from spyre_mlir.frontend.importer import import_program
from spyre_mlir.frontend.program import Argument, Constant, Program
from spyre_mlir.frontend.reference import double_reference, shown_as_numpy, to_numpy, torch_reference
from spyre_mlir.frontend.spyre_ops import LIBRARY as SPYRE_OPERATORS
from spyre_mlir.frontend.steps import Steps
from spyre_mlir.frontend.stepwise import run_host_step, torch_values
from spyre_mlir.frontend.values import HostValues

__all__ = [
    "SPYRE_OPERATORS",
    "Argument",
    "Constant",
    "HostValues",
    "Program",
    "Steps",
    "double_reference",
    "finish_call",
    "import_program",
    "is_complete",
    "load_pt2",
    "run_host_step",
    "shown_as_numpy",
    "signature_of",
    "to_numpy",
    "torch_reference",
    "torch_values",
]

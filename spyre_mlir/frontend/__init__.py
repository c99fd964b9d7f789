"""Import of torch programs to the aten level: the only package that imports torch."""

from __future__ import annotations

try:
    from torch import Tensor
except ModuleNotFoundError as absent:
    if absent.name != "torch":
        raise
    text = "models need torch, and it is not installed\n  try: pip install torch"
    raise ModuleNotFoundError(text, name="torch") from absent

from spyre_mlir.dialects import operator_calls
from spyre_mlir.frontend.calling.call import finish_call, is_complete, signature_of
from spyre_mlir.frontend.calling.given_values import GivenValues
from spyre_mlir.frontend.calling.model_state import ModelChangedWarning, autocast_now
from spyre_mlir.frontend.calling.program_tensors import HostValues
from spyre_mlir.frontend.calling.random_inputs import random_inputs
from spyre_mlir.frontend.calling.tensor_states import (
    TensorState,
    assign,
    copied_as_numpy,
    fills_memory,
    holds,
    is_parameter,
    place_of,
    reader_of,
    storage_of,
)
from spyre_mlir.frontend.calling.untraced import untraced
from spyre_mlir.frontend.capture.archive import load_pt2
from spyre_mlir.frontend.data_sizes.calls import import_divided
from spyre_mlir.frontend.data_sizes.files import exported_now, read_exported, write_exported
from spyre_mlir.frontend.data_sizes.padded import size_makers
from spyre_mlir.frontend.importer import import_program
from spyre_mlir.frontend.process_groups import (
    rank_and_count,
    unless_ranks_end,
    wait_for_ranks,
    without_exchange,
    work_of_a_rank,
)
from spyre_mlir.frontend.program.described import described_program
from spyre_mlir.frontend.program.program import Argument, Program, TreeConstant
from spyre_mlir.frontend.reference.eager import double_reference, shown_as_numpy, to_numpy, torch_reference
from spyre_mlir.frontend.reference.generator import seed_generator
from spyre_mlir.frontend.reference.op_runner import run_host_step, torch_values
from spyre_mlir.frontend.reference.operator_schemas import call_by_schema
from spyre_mlir.frontend.reference.own_draws import OwnDraws
from spyre_mlir.frontend.reference.rounding_steps import RoundingSteps
from spyre_mlir.frontend.specializing import static_program
from spyre_mlir.frontend.spyre_ops import LIBRARY as SPYRE_OPERATORS
from spyre_mlir.frontend.symbolic.call_sizes import sizes_of_call
from spyre_mlir.frontend.symbolic.padded_calls import first_elements, has_gaps, padded_inputs
from spyre_mlir.frontend.weights.binding import bind
from spyre_mlir.frontend.weights.files import read_checkpoint

operator_calls.provide(call_by_schema)

__all__ = [
    "SPYRE_OPERATORS",
    "Argument",
    "GivenValues",
    "HostValues",
    "ModelChangedWarning",
    "OwnDraws",
    "Program",
    "RoundingSteps",
    "Tensor",
    "TensorState",
    "TreeConstant",
    "assign",
    "autocast_now",
    "bind",
    "copied_as_numpy",
    "described_program",
    "double_reference",
    "exported_now",
    "fills_memory",
    "finish_call",
    "first_elements",
    "has_gaps",
    "holds",
    "import_divided",
    "import_program",
    "is_complete",
    "is_parameter",
    "load_pt2",
    "padded_inputs",
    "place_of",
    "random_inputs",
    "rank_and_count",
    "read_checkpoint",
    "read_exported",
    "reader_of",
    "run_host_step",
    "seed_generator",
    "shown_as_numpy",
    "signature_of",
    "size_makers",
    "sizes_of_call",
    "static_program",
    "storage_of",
    "to_numpy",
    "torch_reference",
    "torch_values",
    "unless_ranks_end",
    "untraced",
    "wait_for_ranks",
    "without_exchange",
    "work_of_a_rank",
    "write_exported",
]

"""The passes over exported graphs, in order: from what torch exports to a functional ATen graph.

A whole program and one that data divides go the same way; a whole one has its checks made explicit in between.
"""

from __future__ import annotations

from torch.export import ExportedProgram

from spyre_mlir.frontend.capture.control_flow.carried_numbers import with_numbers_as_tensors
from spyre_mlir.frontend.capture.control_flow.kept import check_writes
from spyre_mlir.frontend.capture.control_flow.known_numbers import with_known_numbers
from spyre_mlir.frontend.capture.control_flow.own_operands import with_own_operands
from spyre_mlir.frontend.capture.control_flow.unrolled import unroll_loops
from spyre_mlir.frontend.capture.decomposition import decompose
from spyre_mlir.frontend.capture.effects.prints import explicit_prints
from spyre_mlir.frontend.capture.effects.writing_calls import explicit_writes
from spyre_mlir.frontend.capture.functional_graph import FunctionalProgram
from spyre_mlir.frontend.capture.graph_passes import passed_export, passed_functional
from spyre_mlir.frontend.capture.indices.bags import plain_bags
from spyre_mlir.frontend.capture.indices.gathers import with_tensor_indices
from spyre_mlir.frontend.capture.indices.repeated import with_repeated_rows
from spyre_mlir.frontend.capture.random_draws.explicit import explicit_draws


def unrolled_export(exported: ExportedProgram, *, symbolic: bool = False) -> ExportedProgram:
    """Return a program after the passes of plugins, without loops over slices, and with tensors for carried numbers.

    Args:
        exported: the program, which stays as it is.
        symbolic: whether loops over a number of slices that is a symbol stay.

    Raises:
        UnsupportedError: a loop cannot be unrolled, or carries what no tensor can be.
    """
    known = with_known_numbers(passed_export(exported))
    return with_numbers_as_tensors(unroll_loops(known, symbolic=symbolic))


def functional_form(unrolled: ExportedProgram) -> tuple[ExportedProgram, FunctionalProgram]:
    """Return a program with explicit effects and draws and operands of its own graphs, and the same in functional form.

    Args:
        unrolled: the result of `unrolled_export`, which stays as it is.

    Raises:
        UnsupportedError: a graph of control flow writes to what it reads, or an operator has no functional form.
        ImportProgramError: torch cannot write without side effects what the model does to memory.
    """
    exported = explicit_draws(with_own_operands(explicit_writes(explicit_prints(unrolled))))
    check_writes(exported.graph)
    indexed = plain_bags(with_tensor_indices(decompose(exported)))
    return exported, passed_functional(with_repeated_rows(indexed))


__all__ = ["functional_form", "unrolled_export"]

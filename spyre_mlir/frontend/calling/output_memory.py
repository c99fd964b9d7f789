"""Memory placement of an exported program's outputs, for the inputs of a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, InputSpec, OutputKind, SymIntArgument
from torch.fx import Node

from spyre_mlir.frontend.calling.memory_run import memory_run
from spyre_mlir.frontend.capture.tracing.torch_errors import NEEDS_VALUES, REFUSED
from spyre_mlir.frontend.lowering.signature import Signature
from spyre_mlir.frontend.program.complex_tensors import as_complex
from spyre_mlir.frontend.program.program import Argument, OutputMemory, TreeConstant
from spyre_mlir.frontend.program.result_memory import ResultMemories, ResultMemory

Given = Mapping[str, torch.Tensor]


def output_memory(exported: ExportedProgram, signature: Signature) -> OutputMemory:
    """Find the outputs' memory from the program as exported, because decompositions choose other strides.

    Args:
        exported: the program before decompositions.
        signature: how its inputs are called.
    """
    specs = exported.graph_signature.output_specs
    places = [
        number
        for number, spec in enumerate(specs)
        if spec.kind is OutputKind.USER_OUTPUT and not isinstance(spec.arg, (ConstantArgument, SymIntArgument))
    ]

    run_all = cache(lambda: memory_run(exported.graph_module))

    def run(*inputs: Any) -> list[Any]:
        results = run_all()(*inputs)
        return [results[number] for number in places]

    memories = ResultMemories(run)
    of_pairs = {slot.argument.name for slot in signature.slots if slot.argument.is_complex}

    def found(given: Given) -> tuple[ResultMemory, list[Any]]:
        given = {name: as_complex(value) if name in of_pairs else value for name, value in given.items()}
        queue = iter(signature.input_leaves)
        inputs = [_value(exported, spec, queue, given) for spec in exported.graph_signature.input_specs]
        try:
            return memories(inputs), inputs
        except (*NEEDS_VALUES, *REFUSED):  # the model does not take such strides: as for the examples
            return ResultMemory.of([_examples(exported)[number] for number in places], []), inputs

    return found


def _value(exported: ExportedProgram, spec: InputSpec, leaves: Iterator[Argument | TreeConstant], given: Given) -> Any:
    """Return a placeholder's value in a call: an input, the constant in its place, or a tensor of the model."""
    if spec.kind is InputKind.USER_INPUT or isinstance(spec.arg, ConstantArgument):
        leaf = next(leaves)
        return leaf.value if isinstance(leaf, TreeConstant) else given[leaf.name]
    target = spec.target or ""
    return given.get(target, exported.state_dict.get(target, exported.constants.get(target)))


def _examples(exported: ExportedProgram) -> list[Any]:
    """The results that torch noted while it exported; None for what is no tensor."""
    nodes = cast("Sequence[object]", exported.graph.output_node().args[0])
    return [node.meta["val"] if isinstance(node, Node) else None for node in nodes]

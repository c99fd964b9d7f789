"""Calls of a divided program: its inputs, what its steps give, its results, and its pieces as models."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch.export import Dim, ExportedProgram
from torch.fx import GraphModule, Node
from torch.fx.traceback import preserve_node_meta

from spyre_mlir.choices import EXAMPLE_STEP
from spyre_mlir.errors import InputError
from spyre_mlir.frontend.calling.tensor_states import write
from spyre_mlir.frontend.capture.archive import load_pt2
from spyre_mlir.frontend.capture.functional_form import functional_form, unrolled_export
from spyre_mlir.frontend.capture.tracing.assumed import assumed_by, condition_of
from spyre_mlir.frontend.capture.tracing.torch_errors import REFUSED, first_line
from spyre_mlir.frontend.capture.unsupported import op_name
from spyre_mlir.frontend.data_sizes.branches import draws, note_sizes_of_branches
from spyre_mlir.frontend.data_sizes.dividing import DividedProgram, Piece, SizingCall, divided, evaluated
from spyre_mlir.frontend.data_sizes.equal_sizes import note_lengths_of_attentions, size_expression
from spyre_mlir.frontend.data_sizes.failed_checks import failed_check
from spyre_mlir.frontend.data_sizes.whole_runs import results_of_torch
from spyre_mlir.frontend.element_types import describe
from spyre_mlir.frontend.graph_runs import KnownNumbers
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.program.call_places import in_places
from spyre_mlir.frontend.program.dataclass_trees import flat_dataclasses
from spyre_mlir.frontend.program.program import TreeConstant
from spyre_mlir.frontend.reference.generator import generator_kept
from spyre_mlir.frontend.symbolic.call_sizes import sizes_of_leaves
from spyre_mlir.frontend.symbolic.guards import guards_of
from spyre_mlir.frontend.symbolic.sizes import Sizes
from spyre_mlir.frontend.torch_private import hint_of_symbol, tree_flatten
from spyre_mlir.ops.checks import REMEDY


def import_divided(name: str, exported: ExportedProgram) -> DividedProgram:
    """Import a program in which data decides sizes, divided into pieces.

    Args:
        name: of the program.
        exported: the program, which stays as it is.

    Raises:
        UnsupportedError: it cannot be divided.
    """
    spec = exported.call_spec
    with flat_dataclasses(spec.in_spec, spec.out_spec):
        _, functional = functional_form(unrolled_export(exported, symbolic=True))
        note_sizes_of_branches(functional.graph)
        note_lengths_of_attentions(functional.graph)
        sizes = Sizes.of(exported)
        guards = guards_of(exported, sizes) if sizes.names else ()
        return divided(name, functional, sizes, guards, assumed_by(exported))


class OtherSizesError(Exception):
    """A call has sizes that the trace of its program leaves out.

    Args:
        condition: what the trace takes for granted, `u0 >= 1`.
    """


class DividedCall:
    """One call of a divided program.

    Args:
        program: the program.
        args: positional inputs.
        kwargs: keyword inputs.

    Attributes:
        sizes: values of the symbols.

    Raises:
        InputError: the inputs are not those that the program was made for; ranges of symbols are not checked.
    """

    def __init__(self, program: DividedProgram, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._program = program
        names = [node.name for node in program.inputs]
        args, kwargs = in_places(args, kwargs, program.call_spec.in_spec, names)
        self._given = args, kwargs
        drawing = any(draws(step.node) for step in program.steps if isinstance(step, SizingCall))
        self._generator = torch.get_rng_state() if drawing else None
        with flat_dataclasses(args, kwargs):
            leaves, tree = tree_flatten((args, kwargs))
        if tree != program.call_spec.in_spec:
            raise InputError(
                f"the call has inputs {tree}", hint=f"call it as it was compiled, with {program.call_spec.in_spec}"
            )
        for node, leaf in zip(program.inputs, leaves, strict=True):
            _check_input(node, leaf, program.sizes)
        self.sizes = sizes_of_leaves(program.inputs, leaves, program.sizes)
        self._known: dict[Node, Any] = {**program.tensors, **dict(zip(program.inputs, leaves, strict=True))}

    def run_on_host(self, step: SizingCall) -> None:
        """Run a call that makes or checks a size with torch's operator.

        Raises:
            OtherSizesError: a check fails of what the trace takes for granted.
            InputError: another check fails, or the operator refuses the values.
        """
        try:
            with torch.no_grad():
                evaluated(step.node, self._known)
        except (RuntimeError, IndexError, ValueError) as error:
            if (condition := condition_of(step.node)) in self._program.assumed:
                raise OtherSizesError(condition) from error
            if (refused := failed_check(step.node, self._known)) is not None:
                raise refused from error
            said, _, remedy = str(error).splitlines()[0].partition(REMEDY)
            raise InputError(
                f"{op_name(step.node)} refuses the values of this call: {said}",
                where=place_of(step.node),
                hint=remedy or "eager torch refuses them, too",
            ) from error

    def whole_on_host(self, exported: ExportedProgram) -> Any:
        """Run the whole call by torch's operators, without what the trace takes for granted; as if no step had run.

        Args:
            exported: the program that was divided.

        Raises:
            InputError: torch refuses the values.
        """
        if self._generator is not None:
            torch.set_rng_state(self._generator)
        return results_of_torch(exported, *self._given)

    def inputs_of(self, piece: Piece) -> tuple[Any, ...]:
        """Return the arguments of a piece."""
        return tuple(evaluated(node, self._known) for node in piece.inputs)

    def keep(self, piece: Piece, results: Sequence[Any]) -> None:
        """Take what a piece gave."""
        self._known.update(zip(piece.outputs, results, strict=True))

    def results(self) -> Any:
        """Write to inputs and buffers what the model writes, and return what it gives, nested as the model nests it."""
        leaves = [evaluated(r, self._known) if isinstance(r, Node) else r for r in self._program.results]
        written = [(self._known[node], evaluated(value, self._known)) for node, value in self._program.writes]
        for tensor, value in written:
            write(tensor, value)
        tree = self._program.call_spec.out_spec
        with flat_dataclasses(tree):
            return tree.unflatten(leaves)


def _check_input(node: Node, leaf: object, sizes: Sizes) -> None:
    wanted = node.meta.get("val")
    if isinstance(wanted, torch.SymInt):
        if type(leaf) is not int:
            raise InputError(f"argument '{node.name}' is {leaf!r}, expected a whole number")
        return
    if not isinstance(wanted, torch.Tensor):
        TreeConstant(node.name, wanted).check(leaf)
        return
    extents = sizes.extents(wanted)
    if isinstance(leaf, torch.Tensor) and leaf.dtype is wanted.dtype and leaf.dim() == len(extents):
        pairs = zip(extents, leaf.shape, strict=True)
        if all(isinstance(extent, str) or extent == value for extent, value in pairs):
            return
    expected = describe(extents, wanted.dtype)
    got = describe(leaf.shape, leaf.dtype) if isinstance(leaf, torch.Tensor) else type(leaf).__name__
    raise InputError(
        f"argument '{node.name}': expected {expected}, got {got}",
        hint="compile the model again for these, or for any size (dynamic_shapes)",
    )


class _PieceModel(torch.nn.Module):
    """A piece as a model; calls keep the lines of the model that they come from."""

    def __init__(self, graph: GraphModule) -> None:
        super().__init__()
        self._calls = graph  # not `_graph`: a module that torch makes of an export has that name for its own graph

    def forward(self, *inputs: Any) -> Any:
        with preserve_node_meta():
            return KnownNumbers(self._calls).run(*inputs)


def piece_model(piece: Piece, name: str) -> torch.nn.Module:
    """Return a piece as a model of this name."""
    made: torch.nn.Module = type(name, (_PieceModel,), {})(piece.module)
    return made.eval()


def refusal(model: torch.nn.Module, inputs: Sequence[Any]) -> str | None:
    """Return what torch says against the inputs of a piece, as a negative size; None if it takes them."""
    try:
        with torch.no_grad():
            model(*inputs)
    except REFUSED as error:
        return first_line(error)
    return None


def symbolic_examples(piece: Piece) -> tuple[tuple[Any, ...], tuple[Any, ...] | None] | None:
    """Return example arguments of a piece and which of their sizes are symbols.

    The symbols are None if all sizes are known. The result is None if a number of Python is an argument, or no example
    can be given: then a piece is compiled for the sizes of each call.
    """
    values = [node.meta["val"] for node in piece.inputs]
    if not all(isinstance(value, torch.Tensor) for value in values):
        return None
    found = {str(s): (s, extent) for value in values for extent in _symbolic(value) for s in _symbols(extent)}
    sizes = {
        symbol: hint_of_symbol(extent, symbol) or EXAMPLE_STEP * (number + 1)
        for number, (symbol, extent) in enumerate(found[name] for name in sorted(found))
    }
    shapes = [[_size(extent, sizes) for extent in value.shape] for value in values]
    if any(extent is None for shape in shapes for extent in shape):
        return None
    symbols = tuple(
        {dim: Dim.AUTO for dim, extent in enumerate(value.shape) if isinstance(extent, torch.SymInt)} or None
        for value in values
    )
    examples = tuple(
        torch.zeros(cast("list[int]", shape), dtype=value.dtype) for shape, value in zip(shapes, values, strict=True)
    )
    return examples, symbols if any(symbols) else None


def _symbolic(value: torch.Tensor) -> list[torch.SymInt]:
    return [extent for extent in value.shape if isinstance(extent, torch.SymInt)]


def _symbols(extent: torch.SymInt) -> list[Any]:
    return sorted(size_expression(extent).free_symbols, key=str)


def _size(extent: Any, sizes: Mapping[Any, int]) -> int | None:
    """An example of a size; None if the expression gives no whole number above 1."""
    if not isinstance(extent, torch.SymInt):
        return int(extent)
    found = size_expression(extent).subs(sizes)
    return int(found) if found.is_Integer and int(found) > 1 else None


def host_call_text(step: SizingCall) -> str:
    """Return a host step as a line of text: what it makes, and of what."""
    return f"%{step.node.name} = {op_name(step.node)}({', '.join(f'%{n.name}' for n in step.node.all_input_nodes)})"


def place_of_call(step: SizingCall) -> tuple[str, str]:
    """Return the operator of a host step, and its line and module in the model."""
    return op_name(step.node), place_of(step.node)


def whole_results(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[torch.Tensor]:
    """Return what a model itself gives, as `flat` does; its graph if it is a file or an exported program."""
    if not isinstance(model, torch.nn.Module):
        model = (model if isinstance(model, ExportedProgram) else load_pt2(model)).module()
    with torch.no_grad():
        return flat(cast(Any, model)(*args, **kwargs))


@contextmanager
def as_it_was(program: DividedProgram) -> Generator[None]:
    """Leave torch's generator and the model's buffers as they were, whatever runs inside the block."""
    held = {
        node: tensor.clone() for node, tensor in program.tensors.items() if any(node is w for w, _ in program.writes)
    }
    with generator_kept():
        try:
            yield
        finally:
            with torch.no_grad():
                for node, tensor in held.items():
                    program.tensors[node].copy_(tensor)


def copied(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return inputs whose tensors are copies."""
    with flat_dataclasses(args, kwargs):
        leaves, tree = tree_flatten((args, dict(kwargs)))
        return tree.unflatten([leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves])


def flat(value: Any) -> list[torch.Tensor]:
    """Return the leaves of results, numbers as tensors, without what is neither."""
    with flat_dataclasses(value):
        leaves = cast("list[object]", tree_flatten(value)[0])
    return [torch.as_tensor(leaf) for leaf in leaves if isinstance(leaf, (torch.Tensor, bool, int, float))]


__all__ = [
    "DividedCall",
    "OtherSizesError",
    "as_it_was",
    "copied",
    "flat",
    "host_call_text",
    "import_divided",
    "piece_model",
    "place_of_call",
    "refusal",
    "symbolic_examples",
    "whole_results",
]

"""An imported program: the aten module, its arguments, and the tensors that belong to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

import torch
from torch.export import ExportedProgram
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.errors import InputError
from spyre_mlir.frontend.element_types import describe
from spyre_mlir.frontend.program.aliasing import OWN, check_apart
from spyre_mlir.frontend.program.call_places import in_places, with_tuples
from spyre_mlir.frontend.program.complex_tensors import as_real, complex_type
from spyre_mlir.frontend.program.dataclass_trees import flat_dataclasses
from spyre_mlir.frontend.program.nesting import difference
from spyre_mlir.frontend.program.recipe import Recipe
from spyre_mlir.frontend.program.result_memory import ResultMemory
from spyre_mlir.frontend.program.tensors_of_traces import check_has_numbers
from spyre_mlir.frontend.torch_private import TreeSpec, is_real, tree_flatten
from spyre_mlir.sizes import counted
from spyre_mlir.text.notebook import ShownAsText

OutputMemory = Callable[[Mapping[str, torch.Tensor]], tuple[ResultMemory, Sequence[Any]]]
ArgumentKind = Literal["input", "parameter", "buffer", "constant"]
ARGUMENT_KINDS: tuple[ArgumentKind, ...] = get_args(ArgumentKind)


@dataclass(frozen=True)
class Placement:
    """Placement of a tensor in its storage.

    Attributes:
        strides: elements between neighbours, of the dimensions that have any.
        start: elements before the first one; None if it does not matter.
    """

    strides: tuple[int, ...]
    start: int | None

    @classmethod
    def of(cls, tensor: torch.Tensor, *, absolute: bool) -> Placement:
        """Return the placement of a tensor, with or without its start."""
        pairs = zip(tensor.stride(), tensor.shape, strict=True) if tensor.numel() else ()
        return cls(tuple(s for s, extent in pairs if extent > 1), int(tensor.storage_offset()) if absolute else None)

    def __str__(self) -> str:
        """As an error says it."""
        return f"strides {self.strides}" + ("" if self.start is None else f" from element {self.start} of its storage")


@dataclass(frozen=True)
class Argument:
    """One argument of the program's function, in order.

    Attributes:
        persistent: whether a checkpoint of the model has it; not so for inputs, constants and non-persistent buffers.
        placement: how a caller's tensor must lie in its storage, because the program walks it by strides; else None.
        is_complex: whether it is a complex tensor for the caller, which the program has in a last dimension of two.
        is_weight: whether it is an input that was a parameter, or shown as one, when the program was imported; or
            follows from such inputs.
        lasts: whether such an input took no gradient then, so that what follows from it is computed once.
    """

    name: str
    kind: ArgumentKind
    shape: tuple[int, ...]
    dtype: torch.dtype
    mutated: bool = False
    placement: Placement | None = None
    persistent: bool = False
    is_complex: bool = False
    is_weight: bool = False
    lasts: bool = False

    @property
    def given_form(self) -> tuple[tuple[int, ...], torch.dtype]:
        """Shape and dtype of the tensor that a caller gives."""
        return (self.shape[:-1], complex_type(self.dtype)) if self.is_complex else (self.shape, self.dtype)


@dataclass(frozen=True)
class TreeConstant:
    """A non-tensor leaf of an argument or output tree: a number, a string or None."""

    name: str
    value: object

    def check(self, given: object) -> None:
        """Check that a call gives this value.

        Raises:
            InputError: it gives another one.
        """
        if isinstance(given, torch.Tensor):
            found = f"a tensor {describe(tuple(given.shape), given.dtype)}"
        elif type(given) is type(self.value) and repr(given) == repr(self.value):
            return  # zeros of both signs are two values, and NaN is one
        else:
            found = repr(given)
        raise InputError(
            f"argument '{self.name}' is {found}, but the program was made for {self.value!r}",
            hint="compile the model again with this value",
        )


@dataclass(frozen=True)
class Origin:
    """Source of static programs, besides the module of a program with symbols.

    Attributes:
        exported: the program with what the passes over torch's graph made explicit.
        source: the program as torch exported it, which `save` writes.
        foldable: names of the arguments whose values belong to the program, not to the weights.
    """

    exported: ExportedProgram
    source: ExportedProgram
    foldable: frozenset[str]


@dataclass(frozen=True, repr=False)
class Program(ShownAsText):
    """A model as one aten function, with the data needed to call it.

    Attributes:
        module: the module with ``func.func @main``.
        name: the program's name, from the class of the model.
        arguments: the function's arguments: inputs, parameters, buffers, constants.
        values: tensors of parameters, buffers and constants, by name; absent if the model has no weights.
        results: names of the function's results: the outputs, then the new values of what is mutated.
        mutations: index of a result to the name of the argument whose new value it is.
        input_leaves: per leaf of the input tree the input, or the constant the program was made for.
        output_leaves: per leaf of the output tree the index of a result, or a constant.
        input_tree: structure of (args, kwargs).
        output_tree: structure of the model's return value.
        reference: the model itself, for comparison; None for a program without weights.
        memory: where the outputs lie for the inputs of a call, and the tensors whose memory they may share.
        origin: of a program with symbols; None if all its sizes are numbers.
        recipes: constants that follow from buffers and weights of the model, by name.
        read_ahead: the tensors of those that follow from weights, as far as they are known, by name.
        in_calls: makes the same program with nothing computed ahead of the inputs that calls give; None if this is it.
        ties: other names of a parameter or buffer that the model has in several places, to that of the argument.
        names: names of all tensors of the model, also of those that the program does not read.
        stored: whether the weights lie in files that somebody keeps.
        complex_results: numbers of outputs that are complex tensors, in a last dimension of two.
        changes: says how the model, if it is a module, differs from what it was at its import.
    """

    module: ModuleOp
    name: str
    arguments: tuple[Argument, ...]
    values: Mapping[str, torch.Tensor]
    results: tuple[str, ...]
    mutations: Mapping[int, str]
    input_leaves: tuple[Argument | TreeConstant, ...]
    output_leaves: tuple[int | TreeConstant, ...]
    input_tree: TreeSpec
    output_tree: TreeSpec
    reference: Callable[..., object] = field(repr=False)
    memory: OutputMemory = field(repr=False)
    recipes: Mapping[str, Recipe] = field(default_factory=dict[str, Recipe], repr=False)
    read_ahead: Mapping[str, torch.Tensor] = field(default_factory=dict[str, torch.Tensor], repr=False)
    in_calls: Callable[[], Program] | None = field(default=None, repr=False)
    ties: Mapping[str, str] = field(default_factory=dict[str, str])
    names: frozenset[str] = frozenset()
    stored: bool = False
    origin: Origin | None = field(default=None, repr=False)
    complex_results: frozenset[int] = frozenset()
    changes: Callable[[], tuple[str, ...]] | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        """One line: name, operations, inputs and outputs."""
        ops = sum(op.name.startswith("aten.") for op in self.module.walk())
        return f"<Program {self.name}: {ops} aten ops, {self.signature}>"

    @property
    def signature(self) -> str:
        """Inputs with their extents, and names of the outputs, as one line."""
        inputs = (f"{a.name} {'x'.join(map(str, a.shape)) or 'scalar'}" for a in self.inputs)
        return f"({', '.join(inputs)}) -> ({', '.join(self.results[: len(self.results) - len(self.mutations)])})"

    @property
    def inputs(self) -> tuple[Argument, ...]:
        """The arguments that a caller supplies."""
        return tuple(a for a in self.arguments if a.kind == "input" and a.name not in self.recipes)

    @property
    def given_recipes(self) -> dict[str, Recipe]:
        """How arguments follow from weights that a caller supplies, by name; no checkpoint has their values."""
        of_calls = (a.name for a in self.arguments if a.kind == "input")
        return {name: self.recipes[name] for name in of_calls if name in self.recipes}

    def flatten(self, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> list[torch.Tensor]:
        """Return the input tensors in the order of the function's arguments.

        Raises:
            InputError: number, structure, shape, dtype or a constant differs from what the program was made for, or a
                tensor that the program writes shares memory with another one.
        """
        leaves = self.leaves(tuple(args), dict(kwargs or {}))
        tensors: dict[str, torch.Tensor] = {}
        for wanted, leaf in zip(self.input_leaves, leaves, strict=True):
            if isinstance(wanted, Argument):
                tensors[wanted.name] = _checked(wanted, leaf)
            else:
                wanted.check(leaf)
        check_apart(self.mutations.values(), tensors, self.values)
        return [tensors[a.name] for a in self.inputs]

    def leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[object]:
        """Flatten a call as the program was exported; keyword arguments may come in any order.

        Tensors that were positional may come by their names, as Python has it.

        Raises:
            InputError: number or structure differs from what the program was made for.
        """
        wanted_args, wanted_kwargs = self.input_tree.children()
        keys = list(cast("list[str]", wanted_kwargs.context))
        names = ", ".join(leaf.name for leaf in self.input_leaves) or "none"
        own = [leaf.name if isinstance(leaf, Argument) else None for leaf in self.input_leaves]
        args, kwargs = in_places(args, kwargs, self.input_tree, own)
        if len(args) != wanted_args.num_children:
            wanted = f"expected {counted(wanted_args.num_children, 'positional argument')}"
            known = {*keys, *(leaf.name for leaf in self.input_leaves)}
            unknown = "".join(f" and no input called {k}" for k in kwargs if k not in known)
            raise InputError(
                f"{wanted}{unknown}, got {len(args)}; the inputs are {names}",
                hint="call it as in the example that it is made for",
            )
        missing, unknown = [k for k in keys if k not in kwargs], [k for k in kwargs if k not in keys]
        if missing or unknown:
            text = "; ".join(
                f"{fault} keyword arguments {', '.join(keywords)}"
                for fault, keywords in (("missing", missing), ("unknown", unknown))
                if keywords
            )
            raise InputError(f"{text}; expected {', '.join(keys) or 'none'}")
        with flat_dataclasses(args, kwargs):
            leaves, tree = tree_flatten(with_tuples((args, kwargs)))
        if tree != self.input_tree:
            raise InputError(
                f"the arguments are nested otherwise than in the example: {difference(self.input_tree, tree)}",
                hint=f"the inputs are {names}",
            )
        return leaves

    def unflatten(self, outputs: Sequence[Any]) -> Any:
        """Rebuild the model's return value from the function's results.

        Raises:
            InputError: the number of results is not the program's.
        """
        if len(outputs) != len(self.results):
            raise InputError(f"expected {len(self.results)} results ({', '.join(self.results)}), got {len(outputs)}")
        leaves = [leaf.value if isinstance(leaf, TreeConstant) else outputs[leaf] for leaf in self.output_leaves]
        with flat_dataclasses(self.output_tree):
            return self.output_tree.unflatten(leaves)


def _checked(wanted: Argument, leaf: object) -> torch.Tensor:
    expected = describe(*wanted.given_form)
    if not isinstance(leaf, torch.Tensor):
        raise InputError(
            f"argument '{wanted.name}': expected a tensor {expected}, got {type(leaf).__name__}",
            hint="give a tensor; torch.from_numpy makes one of an array",
        )
    check_has_numbers(wanted.name, leaf)
    masked = torch.masked.is_masked_tensor(leaf)
    if leaf.layout is not torch.strided or leaf.is_nested or masked or not is_real(leaf):
        kind = f"of layout {leaf.layout}" if leaf.layout is not torch.strided else "without elements"
        kind = "of tensors" if leaf.is_nested else "with a mask" if masked else kind
        raise InputError(
            f"argument '{wanted.name}': expected {expected}, got a tensor {kind}", hint="give a dense tensor of numbers"
        )
    if (tuple(leaf.shape), leaf.dtype) != wanted.given_form:
        raise InputError(
            f"argument '{wanted.name}': expected {expected}, got {describe(tuple(leaf.shape), leaf.dtype)}",
            hint="a program is made for one shape and dtype: compile the model again, or for any size (dynamic_shapes)",
        )
    if wanted.is_complex:
        if wanted.mutated and leaf.is_conj():
            raise InputError(
                f"the model writes to '{wanted.name}', which is the conjugate of what its memory holds", hint=OWN
            )
        leaf = as_real(leaf)
    if (made_for := wanted.placement) is not None:
        found = Placement.of(leaf, absolute=made_for.start is not None)
        if found != made_for:
            raise InputError(
                f"argument '{wanted.name}': the model walks its memory (as_strided), made for {made_for}, got {found}",
                hint="pass a tensor with that memory layout (a clone has its own storage), or import the model again",
            )
    return leaf

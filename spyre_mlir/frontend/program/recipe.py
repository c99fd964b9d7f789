"""Constants that follow from buffers and weights of the model: computations that run once these have values.

The constants of a specialised program may follow from those of the program with symbols, and so from its recipes.

Decision: docs/decisions/0121-no-value-decides-an-import.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, cast

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from spyre_mlir.errors import ImportProgramError, InputError
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.torch_private import Operator, OpOverload, schema_of

_CPU = torch.device("cpu")
_ZEROS = "aten::_efficientzerotensor"
_UNSET = ("aten::empty", "aten::new_empty")


@dataclass(frozen=True)
class Recipe:
    """How a constant follows from buffers and weights of the model.

    Attributes:
        node: whose value it is.
        fixed: values that are known already.
        buffers: the placeholders it reads, with the names of their buffers and weights.
        dtype: what the value is converted to, if it is.
        repeated: per dimension, whether its elements repeat the first one, which stands for all; empty for none.
        earlier: nodes that stand for constants of another program, with their recipes.
        weights: which of the names a checkpoint has; the others are non-persistent buffers.
    """

    node: Node
    fixed: Mapping[Node, object]
    buffers: Mapping[Node, str]
    dtype: torch.dtype | None = None
    repeated: tuple[bool, ...] = ()
    earlier: Mapping[Node, Recipe] = field(default_factory=dict[Node, "Recipe"])
    weights: frozenset[str] = frozenset()

    def value(
        self, tensors: Mapping[str, torch.Tensor], computed_before: Mapping[Node, torch.Tensor] | None = None
    ) -> torch.Tensor:
        """Return the constant for the buffers and weights of a model.

        Args:
            tensors: the buffers and weights, by name.
            computed_before: values of nodes in `earlier`, as far as they are known.

        Raises:
            InputError: torch cannot compute it from these, as where an index names no entry.
            ImportProgramError: it follows from no tensor of the model, and torch refuses it.
        """
        before = computed_before or {}
        values = dict(self.fixed) | {node: tensors[name].detach().cpu() for node, name in self.buffers.items()}
        values |= {n: before[n] if n in before else recipe.value(tensors) for n, recipe in self.earlier.items()}
        try:
            value = _computed(self.node, values)
        except _RefusedError as refused:
            if not self.leaves:
                raise refused.as_of_program() from refused.error
            raise InputError(
                f"torch cannot compute the constant '{self.node.name}' from {', '.join(self.leaves)}: {refused.said}",
                where=place_of(self.node),
                hint="the model fails in eager, too, with these",
            ) from refused.error
        value = value if self.dtype is None else value.to(self.dtype)
        value = value[tuple(slice(0, 1) if one else slice(None) for one in self.repeated)]
        # Of the constant alone, whatever it is a part of; one element counts as dense under any stride.
        return value.clone(memory_format=torch.contiguous_format)

    @property
    def nodes(self) -> set[Node]:
        """All that it follows from, itself among them."""
        return {*ordered(self.node, {}), *self.fixed, *self.buffers, *self.earlier}

    def of_type(self, dtype: torch.dtype) -> Recipe:
        """Return the recipe of the same constant in another type."""
        return replace(self, dtype=dtype)

    def needs(self, computed_before: Mapping[Node, torch.Tensor]) -> set[str]:
        """Return the names of the buffers that its value takes, if values of nodes in `earlier` are known."""
        unknown = [recipe for node, recipe in self.earlier.items() if node not in computed_before]
        return {*self.buffers.values(), *(leaf for recipe in unknown for leaf in recipe.leaves)}

    @property
    def leaves(self) -> tuple[str, ...]:
        """Names of the buffers and weights that it reads."""
        others = (leaf for recipe in self.earlier.values() for leaf in recipe.leaves)
        return tuple(dict.fromkeys([*self.buffers.values(), *others]))

    @property
    def weight_leaves(self) -> frozenset[str]:
        """Names of the weights that it reads."""
        return self.weights.union(*(recipe.weight_leaves for recipe in self.earlier.values()))

    @property
    def forms(self) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
        """Shape and type of every buffer that it reads."""
        values = {name: cast(torch.Tensor, node.meta["val"]) for node, name in self.buffers.items()}
        forms = {name: (tuple(value.shape), value.dtype) for name, value in values.items()}
        return forms | {name: form for recipe in self.earlier.values() for name, form in recipe.forms.items()}

    @property
    def key(self) -> bytes:
        """Equal for recipes that do the same with the same buffers."""
        return self._steps + repr((self.dtype, self.repeated)).encode()

    @property
    def content_key(self) -> bytes:
        """Equal only for recipes, of any program, that give the same for the same tensors of these names."""
        digest = sha256(self.key + repr(list(self.forms.items())).encode())
        for node in ordered(self.node, {}):
            if node.op != "call_function" and isinstance(value := self.fixed.get(node), torch.Tensor):
                dense = value.detach().contiguous()
                digest.update(repr((node.name, dense.dtype, tuple(dense.shape))).encode())
                digest.update(memoryview(dense.reshape(-1).view(torch.uint8).numpy().data) if dense.numel() else b"")
            if (recipe := self.earlier.get(node)) is not None:
                digest.update(recipe.content_key)
        return digest.digest()

    @property
    def _steps(self) -> bytes:
        """Digest of what is computed, before the conversion."""
        known: dict[Node, bytes] = {}
        for node in ordered(self.node, {}):
            text = self.buffers.get(node) or node.name
            if node.op == "call_function":
                text = repr((str(node.target), map_arg((node.args, node.kwargs), lambda n: cast(Any, known[n]))))
            known[node] = sha256(text.encode()).digest()
            if (recipe := self.earlier.get(node)) is not None:
                converted = recipe.dtype is not None or any(recipe.repeated)
                known[node] = sha256(recipe.key).digest() if converted else recipe._steps
        return known[self.node]


def ordered(node: Node, done: Mapping[Node, object]) -> list[Node]:
    """A node and all it follows from, in an order of computation; what is done is not followed further."""
    order: dict[Node, None] = {}
    pending = [node]
    while pending:
        current = pending[-1]
        missing = [] if current in done else [i for i in current.all_input_nodes if i not in order]
        pending += missing
        if not missing:
            order[pending.pop()] = None
    return list(order)


class _RefusedError(Exception):
    """Torch refuses the values that a call reads.

    Attributes:
        node: the call.
        error: of torch.
    """

    def __init__(self, node: Node, error: Exception) -> None:
        super().__init__(str(error))
        self.node, self.error = node, error

    @property
    def said(self) -> str:
        """The first line of the error."""
        return str(self.error).splitlines()[0]

    def as_of_program(self) -> ImportProgramError:
        """Return the error for values that are part of the program."""
        text = f"{_name(self.node)} refuses the constants that it reads: {self.said}"
        return ImportProgramError(text, where=place_of(self.node), hint="eager torch refuses them, too")


def computed(node: Node, values: dict[Node, object]) -> torch.Tensor:
    """The value of a node from values of what it follows from; those between are added.

    Raises:
        ImportProgramError: torch refuses the values, as the largest number of none.
    """
    try:
        return _computed(node, values)
    except _RefusedError as refused:
        raise refused.as_of_program() from refused.error


def _computed(node: Node, values: dict[Node, object]) -> torch.Tensor:
    """Raises _RefusedError if torch refuses the values."""
    for current in ordered(node, values):
        if current not in values:
            try:
                values[current] = _run(current, values)
            except (RuntimeError, IndexError, ValueError) as error:
                raise _RefusedError(current, error) from error
    value = values[node]
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"node {node.name} has {type(value).__name__} as its value, not a tensor")
    return value


def _run(node: Node, values: Mapping[Node, object]) -> object:
    args, kwargs = map_arg((node.args, node.kwargs), lambda n: cast(Any, values[n]))
    if "device" in kwargs:
        kwargs = {**kwargs, "device": _CPU}
    with torch.no_grad():
        try:
            value = cast(Operator, node.target)(*args, **kwargs)
        except RuntimeError:  # torch takes numbers for the tensors of `mul` and its like, and of no other operator
            if (tensors := _tensors_of(node, args)) is None:
                raise
            value = cast(Operator, node.target)(*tensors, **kwargs)
    if not isinstance(value, torch.Tensor):
        return value
    if _name(node) == _ZEROS:
        return value.clone()  # as derivatives have it, it has no memory
    # What nobody set is 0, so that a model gives the same program at every import.
    return value.zero_() if _name(node).startswith(_UNSET) else value


def _tensors_of(node: Node, args: Sequence[object]) -> list[object] | None:
    """Arguments with tensors for numbers; None if a number stands for no tensor.

    In text that was imported, a number stands for a tensor of one number that the program makes.
    """
    made, target = node.meta.get("val"), cast(object, node.target)
    if not isinstance(made, torch.Tensor) or not isinstance(target, OpOverload):
        return None
    takes = [str(argument.type) == "Tensor" for argument in schema_of(cast(Operator, target)).arguments[: len(args)]]
    numbers = [takes_it and isinstance(arg, int | float) for arg, takes_it in zip(args, takes, strict=True)]
    if not any(numbers):
        return None
    return [_tensor(arg, made.dtype) if is_number else arg for arg, is_number in zip(args, numbers, strict=True)]


def _tensor(number: object, result: torch.dtype) -> torch.Tensor:
    """A number as a tensor: in the type of the result where that has it, as of a comparison's it has not."""
    kind = torch.tensor(number).dtype
    return torch.tensor(number, dtype=result if torch.can_cast(kind, result) and kind is not torch.bool else kind)


def _name(node: Node) -> str:
    target = cast(object, node.target)
    return schema_of(cast(Operator, target)).name if isinstance(target, OpOverload) else ""

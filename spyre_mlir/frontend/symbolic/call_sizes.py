"""Values of symbols in a call, from the shapes of its tensors and its integers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.fx import Node
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from spyre_mlir.dialects.aten_sizes import SizeAttr, symbolic_extents
from spyre_mlir.dialects.ir.functions import first_function
from spyre_mlir.dialects.size_expressions import evaluate, solved
from spyre_mlir.errors import InputError
from spyre_mlir.frontend.program.program import Argument, Program
from spyre_mlir.frontend.symbolic.sizes import Sizes


@dataclass(frozen=True)
class _Met:
    """A size of a call: where it is, what the program has there, and its value."""

    place: str
    text: str
    value: int


def sizes_of_call(
    program: Program, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
) -> dict[str, int]:
    """Return the values of a program's symbols in a call; whether they are in range is not checked.

    Raises:
        InputError: the arguments are not those of the program, their sizes contradict each other, or a symbol does not
            follow from them.
    """
    return _solved(list(_met(program, program.leaves(tuple(args), dict(kwargs or {})))))


def sizes_of_leaves(nodes: Sequence[Node], leaves: Sequence[object], sizes: Sizes) -> dict[str, int]:
    """Return the values of symbols in a call of a graph; whether they are in range is not checked.

    Args:
        nodes: placeholders of the inputs.
        leaves: inputs of the call, of as many dimensions.
        sizes: symbols of the graph.

    Raises:
        InputError: sizes contradict each other, or a symbol does not follow from them.
    """
    met = list[_Met]()
    for node, leaf in zip(nodes, leaves, strict=True):
        wanted = node.meta.get("val")
        if isinstance(wanted, torch.Tensor) and isinstance(leaf, torch.Tensor):
            for number, (extent, value) in enumerate(zip(sizes.extents(wanted), leaf.shape, strict=True)):
                if isinstance(extent, str):
                    met.append(_Met(f"dimension {number} of '{node.name}'", extent, int(value)))
        elif isinstance(wanted, torch.SymInt) and isinstance(leaf, int):
            met.append(_Met(f"argument '{node.name}'", sizes.text(wanted), leaf))
    return _solved(met)


def _solved(met: Sequence[_Met]) -> dict[str, int]:
    found: dict[str, int] = {}
    for size in met:
        if (pair := solved(size.text, size.value)) is not None:
            found.setdefault(*pair)
    for size in met:
        _check(size, found)
    return {name: found[name] for name in sorted(found)}


def _met(program: Program, leaves: Sequence[object]) -> Iterator[_Met]:
    types = argument_types(program)
    for wanted, leaf in zip(program.input_leaves, leaves, strict=True):
        if isinstance(wanted, Argument) and isinstance(leaf, torch.Tensor):
            extents = symbolic_extents(types[wanted.name])
            extents = extents[:-1] if wanted.is_complex else extents
            if len(extents) != leaf.dim():
                raise InputError(f"argument '{wanted.name}' has {leaf.dim()} dimensions, expected {len(extents)}")
            for number, (extent, value) in enumerate(zip(extents, leaf.shape, strict=True)):
                if isinstance(extent, str):
                    yield _Met(f"dimension {number} of '{wanted.name}'", extent, int(value))
        elif not isinstance(wanted, Argument):
            if not isinstance(wanted.value, SizeAttr):
                wanted.check(leaf)
                continue
            if type(leaf) is not int:
                raise InputError(f"argument '{wanted.name}' is {leaf!r}, expected a whole number")
            yield _Met(f"argument '{wanted.name}'", wanted.value.text.data, leaf)


def argument_types(program: Program) -> dict[str, TensorType[Attribute]]:
    """Return the types of the arguments by name."""
    main = first_function(program.module)
    pairs = zip(program.arguments, main.body.block.args, strict=True)
    return {argument.name: cast("TensorType[Attribute]", value.type) for argument, value in pairs}


def _check(size: _Met, found: Mapping[str, int]) -> None:
    given = ", ".join(f"{name} = {value}" for name, value in sorted(found.items()))
    try:
        expected = evaluate(size.text, found)
    except KeyError as error:
        raise InputError(
            f"{size.place} is {size.value}, which does not say the symbols of {size.text}",
            hint="give the symbols values by specialize, or export the model with them as sizes of inputs",
        ) from error
    if expected != size.value:
        raise InputError(f"{size.place} is {size.value}, expected {size.text} = {expected} as {given or 'exported'}")

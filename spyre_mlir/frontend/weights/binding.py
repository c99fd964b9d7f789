"""A program with the weights of a source: every tensor by its name, of the program's shape and type.

Decision: docs/decisions/0121-no-value-decides-an-import.md
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches

import torch

from spyre_mlir.errors import BindingError
from spyre_mlir.frontend.calling.current_values import CurrentValues
from spyre_mlir.frontend.element_types import describe
from spyre_mlir.frontend.program.complex_tensors import as_real
from spyre_mlir.frontend.program.program import Program
from spyre_mlir.frontend.weights.bound_model import bound_model
from spyre_mlir.frontend.weights.rebuilt import rebuilt_buffers
from spyre_mlir.frontend.weights.shards import Shards, rank_parts
from spyre_mlir.frontend.weights.sources import is_on_disk, tensors_of

Tensors = Mapping[str, torch.Tensor]
Rename = Callable[[str], str | None]
_LISTED = 8


def bind(
    program: Program,
    source: object,
    buffers: object = None,
    *,
    rename: Rename | None = None,
    strict: bool = True,
    shards: Shards | None = None,
) -> Program:
    """Return a program with the tensors of a source as its weights; the text of the program does not change.

    Args:
        program: with weights or without.
        source: a checkpoint (directory or file), a state dict, a module, or an exported program.
        buffers: where buffers come from that no checkpoint has, if the source lacks them: anything that may be a
            source. They are otherwise computed by their modules, built again from their configuration.
        rename: gives the model's name for a name of the source; None leaves the tensor out.
        strict: whether tensors that the model does not have are an error.
        shards: which tensors of the source are whole where the program has the part of this rank; see `rank_parts`.

    Raises:
        BindingError: tensors are missing, unexpected, or of another shape or type; all of them are listed.
        InputError: shards are named, and this process has no process group.
    """
    given = {name: as_real(tensor) for name, tensor in _renamed(tensors_of(source), rename).items()}
    given = given if shards is None else rank_parts(given, shards)
    found = _by_argument(program, given)
    own = [name for name in _own_buffers(program) if name not in found]
    if own and buffers is not None:
        other = _by_argument(program, {name: as_real(tensor) for name, tensor in tensors_of(buffers).items()})
        found |= {name: other[name] for name in own if name in other}
    rebuilt = rebuilt_buffers(program.reference, [name for name in own if name not in found])
    found |= {name: as_real(tensor) for name, tensor in rebuilt.items()}
    wanted = [a for a in program.arguments if a.kind != "input" and a.name not in program.recipes]
    required = {a.name: a.persistent for a in wanted if not (a.name in program.values and not a.persistent)}
    required |= dict.fromkeys(_read_ahead(program), True)
    problems = [
        *_missing(program, required, found, given),
        *_without_value(program, required, found),
        *_misfits(program, found),
        *(_unexpected(program, given) if strict else ()),
    ]
    if problems:
        where = str(source) if is_on_disk(source) else None
        text = "the weights do not fit the program\n  " + "\n  ".join(problems)
        raise BindingError(text, where=where, hint=_hint(program, found, given, rename))
    return _with(program, found, stored=is_on_disk(source))


def _with(program: Program, found: Tensors, *, stored: bool) -> Program:
    values = {name: program.values[name] for name in program.values if name not in program.recipes}
    for argument in program.arguments:
        if argument.name in found:
            # What calls write to belongs to the program alone.
            tensor = found[argument.name]
            values[argument.name] = tensor.clone() if argument.mutated else tensor
    for name, recipe in program.recipes.items():
        if not recipe.weight_leaves and all(leaf in found for leaf in recipe.leaves):
            values[name] = recipe.value(found)
        elif not recipe.weight_leaves and name in program.values:
            values[name] = program.values[name]
    leaves = {**program.read_ahead, **found}
    made = CurrentValues(values, program.recipes, leaves, stored=stored)
    model = bound_model(program.reference, {**found, **{n: v for n, v in values.items() if n in found}}, program.ties)
    read = made.leaves
    if program.origin is not None or program.given_recipes:
        read = {n: leaves[n] for recipe in program.recipes.values() for n in recipe.leaves if n in leaves}
    in_calls = program.in_calls
    return replace(
        program,
        values=made,
        read_ahead=read,
        reference=model,
        changes=None,  # the weights are no longer those of the module that was imported
        stored=stored,
        in_calls=None if in_calls is None else lambda: _with(in_calls(), found, stored=stored),
    )


def _renamed(tensors: dict[str, torch.Tensor], rename: Rename | None) -> dict[str, torch.Tensor]:
    if rename is None:
        return tensors
    return {new: tensor for name, tensor in tensors.items() if (new := rename(name)) is not None}


def _by_argument(program: Program, tensors: Tensors) -> dict[str, torch.Tensor]:
    """Tensors under the names of the program's arguments: one that a model has in several places has several."""
    tied = {program.ties[name]: tensor for name, tensor in tensors.items() if name in program.ties}
    return tied | dict(tensors)


def _own_buffers(program: Program) -> list[str]:
    """Buffers that no checkpoint has, read by the program or by its constants."""
    read = [a.name for a in program.arguments if not a.persistent and a.kind == "buffer"]
    leaves = (leaf for r in program.recipes.values() for leaf in r.leaves if leaf not in r.weight_leaves)
    return list(dict.fromkeys([*read, *leaves]))


def _read_ahead(program: Program) -> list[str]:
    """Weights of the model that constants follow from."""
    given = {a.name for a in program.inputs}
    leaves = (n for r in program.recipes.values() for n in r.leaves if n in r.weight_leaves)
    return [name for name in dict.fromkeys(leaves) if name not in given]


def _missing(program: Program, required: Mapping[str, bool], found: Tensors, given: Tensors) -> Iterable[str]:
    names = [name for name, persistent in required.items() if persistent and name not in found]
    unused = [name for name in given if name not in program.names]
    return _listed("missing", [_suggested(name, unused) for name in names])


def _suggested(name: str, among: list[str]) -> str:
    """A name, and the name that may be meant by it."""
    near = get_close_matches(name, among, 1, 0.8)
    return f"{name} (is it {near[0]}?)" if near else name


def _without_value(program: Program, required: Collection[str], found: Tensors) -> Iterable[str]:
    """Buffers that nobody has, read by the program or by a constant without a value."""
    without = [recipe for name, recipe in program.recipes.items() if name not in program.values]
    leaves = [leaf for recipe in without for leaf in recipe.leaves if leaf not in recipe.weight_leaves]
    read = [a.name for a in program.arguments if a.name in required and not a.persistent]
    names = [name for name in dict.fromkeys([*read, *leaves]) if name not in found]
    return _listed("in no checkpoint, of modules that cannot be built again", names)


def _misfits(program: Program, found: Tensors) -> Iterable[str]:
    forms = {a.name: (a.shape, a.dtype) for a in program.arguments if a.kind != "input"}
    forms |= {name: form for recipe in program.recipes.values() for name, form in recipe.forms.items()}
    got = {name: (tuple(found[name].shape), found[name].dtype) for name in forms if name in found}
    return _listed(
        "of another shape or type",
        [f"{n}: expected {describe(*forms[n])}, got {describe(*form)}" for n, form in got.items() if form != forms[n]],
    )


def _unexpected(program: Program, given: Tensors) -> Iterable[str]:
    return _listed("unexpected", [name for name in given if name not in program.names])


def _listed(problem: str, names: list[str]) -> list[str]:
    if not names:
        return []
    more = f", and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return [f"{len(names)} {problem}: {', '.join(names[:_LISTED])}{more}"]


def _hint(program: Program, found: Tensors, given: Tensors, rename: Rename | None) -> str:
    read = [a.name for a in program.arguments if a.kind != "input" and a.persistent and a.name not in program.recipes]
    missing = [name for name in dict.fromkeys([*read, *_read_ahead(program)]) if name not in found]
    if missing and rename is None and (prefix := _prefix(missing, given)) is not None:
        return f"bind with rename={prefix}"
    pairs = [(a.dtype, found[a.name].dtype) for a in program.arguments if a.name in found]
    others = [got for wanted, got in pairs if wanted is not got and wanted.is_floating_point and got.is_floating_point]
    if others:
        return f"compile the model in the type of the weights: model.to({others[0]})"
    if not missing and any(name not in found for name in _own_buffers(program)):
        return "bind with buffers=model, a model whose buffers have values"
    return "bind the weights of this model; strict=False leaves out what the model does not have"


def _prefix(missing: list[str], given: Tensors) -> str | None:
    """The function of names that makes all missing names fit by a prefix, as Python; None if there is none."""
    first = missing[0]
    for name in given:
        if first.endswith(f".{name}"):
            prefix = first.removesuffix(name)
            if all(m.removeprefix(prefix) in given for m in missing):
                return f"lambda name: {prefix!r} + name"
        if name.endswith(f".{first}"):
            prefix = name.removesuffix(first)
            if all(prefix + m in given for m in missing):
                return f"lambda name: name.removeprefix({prefix!r})"
    return None

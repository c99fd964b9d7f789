"""`import_program`: from a model, in any torch form, to a `Program`.

Decision: docs/decisions/0064-nothing-is-computed-at-import.md
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
from torch.export import ExportedProgram

from spyre_mlir.errors import DataSizesError, ImportProgramError, InputError, UnsupportedError
from spyre_mlir.frontend.calling.call import is_complete
from spyre_mlir.frontend.calling.current_values import with_current_values
from spyre_mlir.frontend.calling.model_state import ModelState
from spyre_mlir.frontend.calling.output_memory import output_memory
from spyre_mlir.frontend.capture.archive import load_pt2
from spyre_mlir.frontend.capture.complex_pairs.rewriting import in_pairs
from spyre_mlir.frontend.capture.control_flow.flex_attention import write_out_flex_attention
from spyre_mlir.frontend.capture.control_flow.lifted_constants import with_lifted_constants
from spyre_mlir.frontend.capture.control_flow.merged_arguments import check_arguments_apart
from spyre_mlir.frontend.capture.effects.checks import check_no_number, drop_checks, explicit_checks
from spyre_mlir.frontend.capture.effects.texts import check_texts
from spyre_mlir.frontend.capture.export import export_model
from spyre_mlir.frontend.capture.functional_form import functional_form, unrolled_export
from spyre_mlir.frontend.capture.liveness import live_nodes
from spyre_mlir.frontend.capture.number_limits import check_numbers
from spyre_mlir.frontend.capture.tracing.derivatives import check_no_derivative
from spyre_mlir.frontend.capture.tracing.sizes_unlike import Unlike, checked_unlike, sizes_asked
from spyre_mlir.frontend.capture.unsupported import refuse, survey
from spyre_mlir.frontend.data_sizes.branches import has_own_sizes
from spyre_mlir.frontend.first_steps import first_steps_traced
from spyre_mlir.frontend.lowering.assembly import assemble
from spyre_mlir.frontend.lowering.plugin_conversion import warn_of_unknown_ops
from spyre_mlir.frontend.lowering.signature import read_signature, reshaped_inputs, strange_inputs, weights_among
from spyre_mlir.frontend.program.dataclass_trees import flat_dataclasses
from spyre_mlir.frontend.program.program import Origin, Program
from spyre_mlir.frontend.symbolic.guards import guards_of
from spyre_mlir.frontend.symbolic.sizes import Sizes
from spyre_mlir.frontend.torch_tracing import forget_tensors
from spyre_mlir.ops.registry import check_names
from spyre_mlir.plugins import registry

# What torch notes at calls that it added itself, as those that ask for a size.
_NO_CLASS = "_empty_nn_module_stack_from_metadata_hook"
Model = torch.nn.Module | ExportedProgram | str | Path


def import_program(
    model: Model,
    args: tuple[Any, ...] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    *,
    specialize_values: bool = False,
) -> Program:
    """Import a module, a graph module, an exported program or a ``.pt2`` file as one aten function.

    Args:
        model: the model; a module needs example arguments.
        args: positional example arguments.
        kwargs: keyword example arguments.
        dynamic_shapes: which sizes of a module's arguments are symbols, as `torch.export.export` takes it.
        specialize_values: whether Python reads from tensors what it reads for the example arguments.

    Raises:
        InputError: no model, a module without example arguments, or an exported program with some.
        ImportProgramError: the model or file cannot be read.
        UnsupportedError: parts of the model have no form; all of them are named.
        DataSizesError: the same, where data decides sizes.
    """
    registry.load_plugins()
    check_names()
    with first_steps_traced():
        return _imported(model, args, kwargs, dynamic_shapes, specialize_values=specialize_values)


def _instead_of(given: object) -> str:
    """Say what to give in place of what is no model."""
    if isinstance(given, type):
        return f"make a module of the class first: {given.__name__}(…)"
    if isinstance(given, Mapping):
        return "give the module; weights go to its load_state_dict, or to bind() of the compiled model"
    if hasattr(given, "mlir"):
        return "it is compiled: call it, or compile the module that it was made from again"
    return "call a function from the forward of a torch.nn.Module" if callable(given) else "give a torch.nn.Module"


def _imported(
    model: Model,
    args: tuple[Any, ...] | None,
    kwargs: Mapping[str, Any] | None,
    dynamic_shapes: Any,
    *,
    specialize_values: bool,
) -> Program:
    if not isinstance(model, torch.nn.Module) and not is_complete(model):
        raise InputError(
            f"a model is a module, an exported program or a .pt2 file, got {type(model).__name__}",
            hint=_instead_of(model),
        )
    given = args is not None or kwargs is not None
    if isinstance(model, torch.nn.Module):
        if not given:
            raise InputError(
                f"a module needs example arguments, and {type(model).__name__} got none",
                hint="give them as a tuple behind the model: (x,) for one input x, () if it takes none",
            )
        with flat_dataclasses(args, kwargs) as see:
            exported = export_model(
                model, tuple(args or ()), dict(kwargs or {}), see, dynamic_shapes, specialize_values=specialize_values
            )
            try:
                made = _import_or_name_sizes(exported, identifier(type(model).__name__), model)
            finally:
                forget_tensors(exported.graph)
            return replace(made, changes=ModelState(model).changes)
    if given or dynamic_shapes is not None:
        raise InputError("an exported program knows its example arguments", hint="pass the program alone")
    if specialize_values:
        raise InputError("specialize_values is for modules: an exported program has no Python", hint="leave it out")
    exported = model if isinstance(model, ExportedProgram) else load_pt2(model)
    check_no_derivative(exported)
    check_arguments_apart(exported)
    return _import_or_name_sizes(exported, root_class(exported), None)


def _import_or_name_sizes(exported: ExportedProgram, name: str, reference: Callable[..., object] | None) -> Program:
    check_texts(exported)
    exported = with_lifted_constants(write_out_flex_attention(exported))  # first, as torch writes neither to a file
    asked = frozenset[Unlike]()
    while True:
        try:
            return _import(exported, name, reference)
        except ImportProgramError as refused:
            if not (more := sizes_asked(refused.__cause__) - asked):
                raise
            asked |= more
            exported = checked_unlike(exported, more)
        except UnsupportedError as refused:
            if not has_own_sizes(exported):
                raise
            raise DataSizesError(refused, name, exported) from refused


def _import(exported: ExportedProgram, name: str, reference: Callable[..., object] | None) -> Program:
    check_numbers(exported)
    weights = weights_among(exported)
    source = exported
    exported, functional = functional_form(explicit_checks(unrolled_export(source)))
    drop_checks(functional)
    functional, without_pairs = in_pairs(functional, live_nodes(list(functional.graph.nodes)))
    live = live_nodes(list(functional.graph.nodes))
    sizes = Sizes.of(exported)
    looks = survey(live, sizes.names)
    refuse([*strange_inputs(functional), *reshaped_inputs(functional), *looks, *without_pairs])
    check_no_number(exported)  # what is refused above says more
    signature = read_signature(functional, sizes, weights)
    foldable = frozenset(slot.argument.name for slot in signature.slots if slot.foldable)
    program = assemble(
        name,
        live,
        signature,
        sizes,
        guards=guards_of(exported, sizes) if sizes.names else (),
        origin=Origin(exported, source, foldable) if sizes.names else None,
        reference=exported if reference is None else reference,
        memory=output_memory(exported, signature),
    )
    warn_of_unknown_ops()
    return with_current_values(program)


def root_class(exported: ExportedProgram) -> str:
    """Return the name of the class that was exported, which torch notes at every node."""
    for node in exported.graph.nodes:
        stack = cast("dict[str, tuple[str, object]]", node.meta.get("nn_module_stack") or {})
        for _, kind in stack.values():
            text = kind if isinstance(kind, str) else getattr(kind, "__name__", "program")
            if text != _NO_CLASS:
                return identifier(text.rsplit(".", 1)[-1])
    return "program"


def identifier(class_name: str) -> str:
    """Return a class name as the name of a program; signs other than letters and digits become underscores."""
    return re.sub(r"\W", "_", class_name).strip("_") or "program"

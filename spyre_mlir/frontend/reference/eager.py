"""Results of torch itself for a program: the reference that `.verify` compares with."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch.export import ExportedProgram

from spyre_mlir.dialects.ir.call_effects import draws_numbers
from spyre_mlir.frontend.capture.torch_warnings import torch_noise_hidden
from spyre_mlir.frontend.capture.tracing.torch_errors import REFUSED
from spyre_mlir.frontend.capture.tracing.traced import clone_examples
from spyre_mlir.frontend.process_groups import groups_to_share
from spyre_mlir.frontend.program.complex_tensors import as_real
from spyre_mlir.frontend.program.dataclass_trees import flat_dataclasses
from spyre_mlir.frontend.program.program import Argument, Program
from spyre_mlir.frontend.reference.double_precision import (
    HALF,
    WithoutHalves,
    has_halves,
    in_doubles,
    widened,
    widened_model,
)
from spyre_mlir.frontend.reference.generator import Replayed, drawn_by, generator_kept
from spyre_mlir.frontend.reference.half_precision import has_halves as in_halves
from spyre_mlir.frontend.reference.stable_order import EqualsInOrder
from spyre_mlir.frontend.torch_private import flex_attention_uncompiled, tree_flatten, tree_map


def torch_reference(
    program: Program, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
) -> list[NDArray[Any]]:
    """Run the model eagerly, and return the program's results in order; the model is not changed.

    What a model computes in half precision is computed in double precision, see `frontend.wide`; so a conversion to
    bfloat16 or float16 does not round, which the device does not do either. Where torch leaves the order of equal
    elements free they keep it, see `frontend.ties`.

    Raises:
        InputError: the arguments are not what the program was made for.
    """
    program, args, kwargs = _written_in_doubles(program, args, kwargs or {})
    with flat_dataclasses(args, kwargs, program.output_tree), generator_kept():
        try:
            return _torch_reference(program, *clone_examples(tuple(args), dict(kwargs)))
        except (RuntimeError, TypeError, ValueError):
            # Convolutions and recurrent layers compare dtypes of weights and inputs before a mode sees their calls.
            if not has_halves(program.flatten(args, kwargs)):
                raise
        return _reference_of_wide_inputs(program, args, kwargs)


def _written_in_doubles(
    program: Program, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Program, Sequence[Any], Mapping[str, Any]]:
    """The program with the half-precision inputs that it writes to in double precision, and its arguments.

    A view of one would be widened for itself otherwise, and what is written through the view would be lost.
    """
    with flat_dataclasses(args, kwargs):
        given = program.flatten(args, kwargs)
        halves = {a.name for a in program.inputs if a.dtype in HALF and a.placement is None and not a.is_complex}
        written = halves & set(program.mutations.values())
        wide = {id(x): widened(x) for a, x in zip(program.inputs, given, strict=True) if a.name in written}

        def replaced(leaf: Any) -> Any:
            return wide.get(id(leaf), leaf)

        args, kwargs = tree_map(replaced, (tuple(args), dict(kwargs)))
    return _with_dtypes(program, lambda a: torch.float64 if a.name in written else a.dtype), args, kwargs


def _reference_of_wide_inputs(program: Program, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[NDArray[Any]]:
    """The results of the model for inputs in double precision instead of half."""
    drawn = _drawn(program, args, kwargs)
    wide = _with_dtypes(program, lambda a: torch.float64 if a.dtype in HALF else a.dtype)
    copies = clone_examples(*widened((tuple(args), dict(kwargs))))
    with Replayed(drawn) if drawn else nullcontext():
        return _torch_reference(wide, *copies, as_drawn=bool(drawn))


def _torch_reference(
    program: Program, fresh_args: Any, fresh_kwargs: Any, *, as_drawn: bool = False
) -> list[NDArray[Any]]:
    """The results of the model; `as_drawn` if random numbers are those of another run already."""
    reference = program.reference
    model = cast(torch.nn.Module, _module_of(reference))
    held = has_halves([*model.parameters(), *model.buffers(), *program.flatten(fresh_args, fresh_kwargs)])
    half = held or in_halves(program.module)
    drawn = _drawn(program, fresh_args, fresh_kwargs) if half and not as_drawn else []
    model = widened_model(model) if held else model
    with (
        torch.no_grad(),
        Replayed(drawn) if drawn else nullcontext(),
        WithoutHalves() if half else nullcontext(),
        EqualsInOrder(),
        flex_attention_uncompiled(),
        _buffers_restored(model, program.mutations.values()) as buffers,
    ):
        leaves, _ = tree_flatten(model(*fresh_args, **fresh_kwargs))
        inputs = dict(zip((a.name for a in program.inputs), program.flatten(fresh_args, fresh_kwargs), strict=True))
        results = {i: leaf for i, leaf in zip(program.output_leaves, leaves, strict=True) if isinstance(i, int)}
        results |= {i: inputs[name] if name in inputs else buffers[name] for i, name in program.mutations.items()}
        return [to_numpy(as_real(cast(torch.Tensor, results[i]))) for i in range(len(program.results))]


def _drawn(program: Program, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """The random numbers that the model draws in its own precision; in another one they would be others."""
    if not draws_numbers(program.module):
        return []
    model = cast(torch.nn.Module, _module_of(program.reference))
    given, named = clone_examples(tuple(args), dict(kwargs))
    with _buffers_restored(model, program.mutations.values()):
        return drawn_by(lambda: model(*given, **named))


def _module_of(reference: object) -> object:
    # Inputs are checked when they are flattened; torch's guards would be text of the file, compiled.
    return reference.module(check_guards=False) if isinstance(reference, ExportedProgram) else reference


def double_reference(
    program: Program, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
) -> list[NDArray[Any]]:
    """Same as `torch_reference`, with weights and inputs in double precision, on a copy of the model.

    Casts that the model spells out by a dtype of its own stay what they are, and what torch cannot do in double
    precision it does in single precision. So does a whole model that refuses tensors in double precision, as quantized
    layers of torchao do.
    """
    reference = program.reference
    # A copy in any case: the module of an exported program shares its tensors.
    with torch_noise_hidden():
        model = deepcopy(cast(torch.nn.Module, _module_of(reference)), groups_to_share())
    for part in model.modules():
        if isinstance(part, torch.fx.GraphModule):
            _drop_dtype_checks(part)
    wide = _with_dtypes(program, lambda a: torch.float64 if a.dtype.is_floating_point else a.dtype)
    wide = replace(wide, reference=model.double())
    with flat_dataclasses(args, kwargs, program.output_tree):
        drawn = _drawn(program, args, kwargs or {})
    with flat_dataclasses(args, kwargs):
        wide_args, wide_kwargs = tree_map(_wide_tensor, (tuple(args), dict(kwargs or {})))
    try:
        with in_doubles(), Replayed(drawn) if drawn else nullcontext():
            wide.flatten(wide_args, wide_kwargs)
            with flat_dataclasses(wide_args, wide_kwargs, wide.output_tree), generator_kept():
                copies = clone_examples(tuple(wide_args), wide_kwargs)
                return _torch_reference(wide, *copies, as_drawn=bool(drawn))
    except REFUSED:
        return torch_reference(program, args, kwargs)


def _drop_dtype_checks(module: torch.fx.GraphModule) -> None:
    """Removes the checks that an export writes down for the dtypes it saw."""
    for node in list(module.graph.nodes):
        if node.target is torch.ops.aten._assert_tensor_metadata.default:
            module.graph.erase_node(node)
    module.recompile()


def _with_dtypes(program: Program, dtype_of: Callable[[Argument], torch.dtype]) -> Program:
    """The program with arguments of other dtypes."""

    def changed(argument: Argument) -> Argument:
        return replace(argument, dtype=dtype_of(argument))

    leaves = [changed(leaf) if isinstance(leaf, Argument) else leaf for leaf in program.input_leaves]
    return replace(program, arguments=tuple(map(changed, program.arguments)), input_leaves=tuple(leaves))


def _wide_tensor(leaf: object) -> object:
    if isinstance(leaf, torch.Tensor) and leaf.dtype is torch.complex64:
        return leaf.to(torch.complex128)
    return leaf.double() if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() else leaf


@contextmanager
def _buffers_restored(model: torch.nn.Module, names: Iterable[str]) -> Generator[dict[str, torch.Tensor]]:
    """Gives the model's parameters and buffers by name; afterwards those called `names` are as they were.

    The memory stays the same, since a model may hold its buffers by other objects too.
    """
    tensors = dict(model.named_parameters(remove_duplicate=False)) | dict(model.named_buffers(remove_duplicate=False))
    before = {name: tensors[name].detach().clone() for name in names if name in tensors}
    try:
        yield tensors
    finally:
        for name, value in before.items():
            tensors[name].detach().copy_(value)


def to_numpy(tensor: torch.Tensor) -> NDArray[Any]:
    """Copy a tensor to a numpy array; bfloat16 and 8-bit floats, which numpy lacks, become float32."""
    return np.array(shown_as_numpy(tensor))


def shown_as_numpy(tensor: torch.Tensor) -> NDArray[Any]:
    """Same as `to_numpy`, but the array may share the tensor's memory: read-only use."""
    tensor = tensor.detach().cpu().resolve_neg()  # the imaginary part of a conjugate is noted to be negated
    narrow = tensor.dtype is torch.bfloat16 or (tensor.dtype.is_floating_point and tensor.dtype.itemsize == 1)
    return (tensor.float() if narrow else tensor).numpy()

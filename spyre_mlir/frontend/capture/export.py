"""From a model to a functional ATen graph: `torch.export`, then decomposition that keeps composites."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from traceback import extract_tb
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from spyre_mlir.errors import ImportProgramError, UnsupportedError
from spyre_mlir.frontend.capture.indices.writes import IndexWrites
from spyre_mlir.frontend.capture.python_state import python_state_kept, unset_buffers_as_attributes
from spyre_mlir.frontend.capture.random_draws.seeding import check_settings, settings_noted
from spyre_mlir.frontend.capture.torch_warnings import torch_noise_hidden
from spyre_mlir.frontend.capture.tracing.assumed import note_assumed
from spyre_mlir.frontend.capture.tracing.call_state import CallState, is_same
from spyre_mlir.frontend.capture.tracing.collectives import collectives_in_place
from spyre_mlir.frontend.capture.tracing.constant_values import ConstantValues
from spyre_mlir.frontend.capture.tracing.derivatives import (
    DerivativesSought,
    DerivativeTakenError,
    Differentiated,
    draws_when_mapped,
    takes_derivatives,
)
from spyre_mlir.frontend.capture.tracing.given import check_dense, check_model, check_shapes
from spyre_mlir.frontend.capture.tracing.given_containers import GivenContainers
from spyre_mlir.frontend.capture.tracing.known_counts import KnownCounts, length_asked
from spyre_mlir.frontend.capture.tracing.sizes_alike import SizesAlike, sizes_compared
from spyre_mlir.frontend.capture.tracing.sizes_alike import conditions_of as conditions_alike
from spyre_mlir.frontend.capture.tracing.sizes_unlike import SizesUnlike, Unlike, asked_by_operator, sizes_asked
from spyre_mlir.frontend.capture.tracing.sizes_unlike import conditions_of as conditions_unlike
from spyre_mlir.frontend.capture.tracing.specialized_values import Noted, specialized, values_of
from spyre_mlir.frontend.capture.tracing.strange_results import check_results
from spyre_mlir.frontend.capture.tracing.torch_errors import (
    NEEDS_VALUES,
    REFUSED,
    SPECIALIZED,
    decided_by_values,
    of_sizes,
    without_form,
    without_values,
)
from spyre_mlir.frontend.capture.unsupported import DATA
from spyre_mlir.frontend.locations import place_of, raised_at, raised_by_torch
from spyre_mlir.frontend.torch_private import (
    FakeTensorMode,
    GuardOnDataDependentSymNode,
    Operator,
    OpOverload,
    PendingUnbackedSymbolNotFound,
    holders,
    is_fake,
    schema_of,
    tree_map,
)
from spyre_mlir.frontend.torch_tracing import bodies_as_written


def clone_examples(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Copy every example tensor with its strides: export merges inputs that are the same object."""

    def fresh(leaf: object) -> object:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        copy = leaf.detach().clone()
        if _lies_apart(leaf) and copy.stride() != leaf.stride():
            copy = copy.new_empty_strided(leaf.shape, leaf.stride()).copy_(copy)
        return torch.nn.Parameter(copy, leaf.requires_grad) if isinstance(leaf, torch.nn.Parameter) else copy

    return tree_map(fresh, args), tree_map(fresh, dict(kwargs))


def _lies_apart(tensor: torch.Tensor) -> bool:
    """Return whether every element of a tensor, which may have gaps, has a place of its own."""
    if tensor.layout is not torch.strided:
        return False
    sizes: list[object] = [*tensor.stride(), *tensor.shape]
    if not all(isinstance(size, int) for size in sizes):  # symbols
        return False
    reached = 0
    for stride, extent in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if extent > 1 and stride <= reached:
            return False
        reached += stride * (extent - 1)
    return True


@contextmanager
def _fake_instead_of_meta(model: torch.nn.Module) -> Generator[Callable[[object], object]]:
    """Lets a model on the meta device trace as one on the CPU; gives what turns meta tensors into fake ones.

    On meta, torch chooses other strides (extra clones) and refuses to mix in constants made on the CPU.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fakes: dict[torch.Tensor, torch.Tensor] = {}  # one per tensor: shared parameters stay shared

    def fake(value: object) -> object:
        if not isinstance(value, torch.Tensor) or is_fake(value) or value.device.type != "meta":
            return value
        if value not in fakes:
            with mode:
                made = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cpu")
            fakes[value] = (
                torch.nn.Parameter(made, value.requires_grad) if isinstance(value, torch.nn.Parameter) else made
            )
        return fakes[value]

    places = [(holder, name, value) for holder in holders(model) for name, value in holder.items() if value is not None]
    try:
        for holder, name, value in places:
            holder[name] = cast(torch.Tensor, fake(value))
        yield fake
    finally:
        for holder, name, value in places:
            holder[name] = value


# The file of torch with recurrent layers, and what it says of packed sequences.
_RECURRENT, _SIZE_OF_TENSOR = "torch/nn/modules/rnn.py", "argument 'size' failed"
# What torch says of what Dynamo alone captures: a `while_loop` in a `scan`, an `autograd.Function` in `vmap`.
_FOR_DYNAMO = ("Cannot access data pointer of Tensor", "ProxyTorchDispatchMode")


@contextmanager
def _calls_seen(
    model: torch.nn.Module, see: Callable[[tuple[Any, ...], Mapping[str, Any], object], None]
) -> Generator[None]:
    """Shows what a model is given and returns to somebody while it is traced."""
    given = GivenContainers()

    def take(_: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not torch.compiler.is_dynamo_compiling():
            given.take(args, kwargs)

    def show(_: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: object) -> None:
        if not torch.compiler.is_dynamo_compiling():
            given.check()
        see(args, kwargs, output)

    hooks = (
        model.register_forward_pre_hook(take, with_kwargs=True),
        model.register_forward_hook(show, with_kwargs=True),
    )
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def export_model(
    model: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    see: Callable[[object], None] = lambda _: None,
    dynamic_shapes: Any = None,
    *,
    strict: bool = False,
    specialize_values: bool = False,
) -> ExportedProgram:
    """Export a module for the shapes of its example arguments.

    Args:
        model: the module.
        args: positional example arguments.
        kwargs: keyword example arguments.
        see: is shown what the module returns, before torch flattens it.
        dynamic_shapes: which sizes are symbols, as `torch.export.export` takes it.
        strict: whether Dynamo traces the module; it also does where only it finds what a model writes to.
        specialize_values: whether Python reads from tensors what it reads for the example arguments.

    Raises:
        InputError: tensors lack values that are to be specialised, or symbols are not of sizes of the arguments.
        UnsupportedError: the control flow depends on data, an example argument is sparse, or a result is no tensor,
            number or text.
        ImportProgramError: torch cannot trace it for these arguments, or it writes to tensors that are not its buffers.
    """
    check_model(model)
    check_dense(args=args, kwargs=dict(kwargs))
    check_shapes(model, args, kwargs, dynamic_shapes)
    noted = values_of(model, *clone_examples(args, kwargs)) if specialize_values else None
    asked = _Asked(model, args, kwargs, dynamic_shapes, noted)
    state, returned = CallState(model), list[object]()

    def look(args: tuple[Any, ...], kwargs: Mapping[str, Any], output: object) -> None:
        if not torch.compiler.is_dynamo_compiling():
            state.look(args, kwargs)
            returned[:] = [output]
        see(output)

    with _calls_seen(model, look):
        try:
            exported = _export(asked, strict=strict)
        except ImportProgramError as error:
            check_results(error, returned)
            raise
    if names := state.changed():
        with state.left():
            _check_next_call(asked, exported, names)
    if (node := _mutated_constant(exported)) is not None:
        # Buffers reached through a Python object look like constants; strict export finds the buffers.
        exported = _export(asked, strict=True)
        node = _mutated_constant(exported)
    if node is not None:
        raise ImportProgramError(
            "the model writes to a tensor that is neither a buffer, a parameter nor an input",
            where=place_of(node),
            hint="register the tensor with register_buffer, and write to the buffer",
        )
    return exported


@dataclass(frozen=True)
class _Asked:
    """What is to be traced: a module, its example arguments, and what is known of them and of sizes."""

    model: torch.nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    dynamic_shapes: Any
    noted: Noted | None
    unlike: frozenset[Unlike] = frozenset()
    alike: frozenset[frozenset[str]] = frozenset()
    assumed: frozenset[str] = frozenset()  # conditions of these that operators ask about
    counts: frozenset[str] = frozenset()  # lengths that Python asks for

    def answered(self, error: GuardOnDataDependentSymNode) -> _Asked | None:
        """The same with an answer to what torch asks of sizes; None if there is none, or it was given in vain."""
        if counts := length_asked(error) - self.counts:
            return replace(self, counts=self.counts | counts)
        alike = sizes_compared(error) - self.alike
        unlike = frozenset[Unlike]() if alike else sizes_asked(error) - self.unlike
        if not alike and not unlike:
            return None
        taken = conditions_alike(alike) | conditions_unlike(unlike) if asked_by_operator(error) else frozenset[str]()
        return replace(self, alike=self.alike | alike, unlike=self.unlike | unlike, assumed=self.assumed | taken)


def _check_next_call(asked: _Asked, exported: ExportedProgram, names: Sequence[str]) -> None:
    """Refuse a model of which another call, from the Python state that this one leaves, is another program."""
    with suppress(UnsupportedError, ImportProgramError):
        if is_same(exported, _export(asked, strict=False)):
            return
    raise UnsupportedError(
        f"a call of {type(asked.model).__name__} changes what the next one computes: it writes to {', '.join(names)}",
        hint="call the model once before you compile it, if only the first call differs; or keep it in a buffer",
    )


def _export(asked: _Asked, *, strict: bool) -> ExportedProgram:
    try:
        return _with_derivatives(asked, strict=strict)
    except GuardOnDataDependentSymNode as error:
        if not strict and SPECIALIZED in str(error):
            # `int` gives a number of Python, but Dynamo reads the code, and takes `int(n)` for `n.item()`.
            with suppress(Exception):
                return _traced(asked, strict=True)
        if not strict and (answered := asked.answered(error)) is not None:
            return _export(answered, strict=False)
        raise decided_by_values(type(asked.model).__name__, error) from error
    except ImportProgramError as error:
        if not strict and any(said in error.message for said in _FOR_DYNAMO):
            with suppress(Exception):
                return _traced(asked, strict=True)
        raise


def _with_derivatives(asked: _Asked, *, strict: bool) -> ExportedProgram:
    """The program of a model, its derivatives written out if it takes some, as are maps in which numbers are drawn."""
    mapped = False
    if not takes_derivatives(asked.model):
        with suppress(DerivativeTakenError):
            exported = _traced(asked, strict=strict)
            mapped = draws_when_mapped(exported.graph_module)
            if not mapped and not takes_derivatives(exported.graph_module):
                return exported
    if asked.dynamic_shapes is not None:
        does = "draws random numbers inside of vmap" if mapped else "takes derivatives"
        raise UnsupportedError(
            f"{type(asked.model).__name__} {does}, and has symbolic sizes",
            hint="compile it without dynamic_shapes: each size then has a program of its own",
        )
    return _traced(asked, strict=False, derivatives=True)


def _traced(asked: _Asked, *, strict: bool, derivatives: bool = False) -> ExportedProgram:
    model = asked.model
    name = type(model).__name__
    try:
        kept = unset_buffers_as_attributes(model), python_state_kept(model)
        with torch_noise_hidden(), torch.no_grad(), kept[0], kept[1], _fake_instead_of_meta(model) as fake:
            fresh_args, fresh_kwargs = tree_map(fake, clone_examples(asked.args, asked.kwargs))
            known, writes = (nullcontext(), nullcontext()) if strict else (ConstantValues(), IndexWrites())
            exchanged = nullcontext() if strict else collectives_in_place()
            given, sought = model, nullcontext() if strict else DerivativesSought()
            if derivatives:
                given, sought = Differentiated(model, *clone_examples(fresh_args, fresh_kwargs)), nullcontext()
            answered, bodies = specialized(asked.noted), bodies_as_written()
            checked = SizesUnlike(asked.unlike) if asked.unlike else nullcontext()
            alike = SizesAlike(asked.alike) if asked.alike else nullcontext()
            counted = KnownCounts(asked.counts) if asked.counts else nullcontext()
            with known, writes, exchanged, sought, answered, bodies, checked, alike, counted, settings_noted() as noted:
                exported = torch.export.export(
                    given, fresh_args, fresh_kwargs, dynamic_shapes=asked.dynamic_shapes, strict=strict
                )
    except NEEDS_VALUES as error:
        raise without_values(error) from error
    except PendingUnbackedSymbolNotFound as error:
        raise UnsupportedError(
            f"{name} has a shape that depends on the data", where=raised_at(error), hint=DATA
        ) from error
    except GuardOnDataDependentSymNode:
        raise
    except REFUSED as error:  # among them what Dynamo raises
        if not raised_by_torch(error):
            raise  # an error of the model's own says best what it means
        if (known := without_form(name, error)) is not None:
            raise known from error
        does, hint = "torch.export cannot trace", "see if model(*args) and torch.export.export(model, args) work alone"
        if derivatives:
            does = "torch cannot take the derivatives of"
            hint = "see if model(*args) works alone; take derivatives inside of torch.cond and loops, not of them"
        said, fixes = of_sizes(error)
        if _SIZE_OF_TENSOR in said and any(f.filename.endswith(_RECURRENT) for f in extract_tb(error.__traceback__)):
            hint = "packed sequences take sizes from tensors: give the layer padded ones, and mask what is behind them"
        raise ImportProgramError(f"{does} {name}: {said}", where=raised_at(error), hint=fixes or hint) from error
    check_settings(exported, noted)
    note_assumed(exported, asked.assumed)
    return exported


def _mutated_constant(exported: ExportedProgram) -> torch.fx.Node | None:
    """The first node that writes to a constant tensor, or to a view of one."""
    constants = {s.arg.name for s in exported.graph_signature.input_specs if s.kind is InputKind.CONSTANT_TENSOR}
    reached: set[torch.fx.Node] = set()
    for node in exported.graph.nodes:
        if node.op == "placeholder" and node.name in constants:
            reached.add(node)
        target = cast(object, node.target)
        if not isinstance(target, OpOverload) or target is torch.ops.aten.detach_.default:
            continue
        for argument, value in zip(schema_of(cast(Operator, target)).arguments, node.args, strict=False):
            if argument.alias_info is None or value not in reached:
                continue
            if argument.alias_info.is_write:
                return node
            reached.add(node)
    return None

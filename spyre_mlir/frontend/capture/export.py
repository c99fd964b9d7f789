"""From a model to an exported program: traces by `torch.export`, each with more answers to what torch asks."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from spyre_mlir.errors import ImportProgramError, UnsupportedError
from spyre_mlir.frontend.capture.tracing.derivatives import DerivativeTakenError, draws_when_mapped, takes_derivatives
from spyre_mlir.frontend.capture.tracing.given import check_dense, check_model, check_shapes
from spyre_mlir.frontend.capture.tracing.given_containers import GivenContainers
from spyre_mlir.frontend.capture.tracing.given_kinds import check_kinds
from spyre_mlir.frontend.capture.tracing.package_classes import taken_apart
from spyre_mlir.frontend.capture.tracing.python.call_state import CallState, is_same
from spyre_mlir.frontend.capture.tracing.specialized_values import values_of
from spyre_mlir.frontend.capture.tracing.strange_results import strange_results, without_results
from spyre_mlir.frontend.capture.tracing.torch_errors import SPECIALIZED, decided_by_values
from spyre_mlir.frontend.capture.tracing.traced import TraceRequest, clone_examples, traced
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.torch_private import GuardOnDataDependentSymNode, Operator, OpOverload, schema_of, tree_flatten

# What torch says of what Dynamo alone captures: a `while_loop` in a `scan`, an `autograd.Function` in `vmap`.
_FOR_DYNAMO = ("Cannot access data pointer of Tensor", "ProxyTorchDispatchMode")


@contextmanager
def _calls_seen(
    model: torch.nn.Module, see: Callable[[tuple[Any, ...], Mapping[str, Any], object], None]
) -> Generator[GivenContainers]:
    """Shows `see` what a model is given and returns while it is traced; refuses tensors put into its inputs."""
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
        yield given
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
        InputError: tensors lack values that are to be specialised, symbols are not of sizes of the arguments, or an
            argument is no tensor, number or text.
        UnsupportedError: the control flow depends on data, an example argument is sparse, or a result is no tensor,
            number or text.
        ImportProgramError: torch cannot trace it for these arguments, or it writes to tensors that are not its buffers.
    """
    check_model(model)
    taken_apart(tree_flatten((args, dict(kwargs)))[0])
    check_kinds(args=args, kwargs=dict(kwargs))
    check_dense(args=args, kwargs=dict(kwargs))
    check_shapes(model, args, kwargs, dynamic_shapes)
    noted = values_of(model, *clone_examples(args, kwargs)) if specialize_values else None
    request = TraceRequest(model, args, kwargs, dynamic_shapes, noted)
    state, returned = CallState(model), list[object]()

    def look(args: tuple[Any, ...], kwargs: Mapping[str, Any], output: object) -> None:
        if not torch.compiler.is_dynamo_compiling():
            state.look(args, kwargs)
            returned[:] = [output]
        see(output)

    with _calls_seen(model, look) as given:
        exported = _with_results(request, returned, strict=strict)
    given.warn_of_caches()
    if names := state.changed():
        with state.left():
            _check_next_call(request, exported, names)
    return _with_known_writes(request, exported)


def _with_known_writes(request: TraceRequest, exported: ExportedProgram) -> ExportedProgram:
    """Return a program whose writes reach buffers, parameters and inputs alone; refuse a model with other writes."""
    if _mutated_constant(exported) is not None:
        # Buffers reached through a Python object look like constants; strict export finds the buffers.
        exported = _export(request, strict=True)
    if (node := _mutated_constant(exported)) is not None:
        raise ImportProgramError(
            "the model writes to a tensor that is neither a buffer, a parameter nor an input",
            where=place_of(node),
            hint="register the tensor with register_buffer, and write to the buffer",
        )
    return exported


def _check_next_call(request: TraceRequest, exported: ExportedProgram, names: Sequence[str]) -> None:
    """Refuse a model of which another call, from the Python state that this one leaves, is another program."""
    with suppress(UnsupportedError, ImportProgramError):
        if is_same(exported, _export(request, strict=False)):
            return
    raise UnsupportedError(
        f"a call of {type(request.model).__name__} changes what the next one computes: it writes to {', '.join(names)}",
        hint="call the model once before you compile it, if only the first call differs; or keep it in a buffer",
    )


def _with_results(request: TraceRequest, returned: Sequence[object], *, strict: bool) -> ExportedProgram:
    """The program of a model whose results torch may have to be told how to take apart."""
    try:
        return _export(request, strict=strict)
    except ImportProgramError as error:
        if not (strange := strange_results(error, returned)):
            raise
        if taken_apart(strange.values()):
            return _with_results(request, returned, strict=strict)
        raise without_results(strange) from error


def _export(request: TraceRequest, *, strict: bool) -> ExportedProgram:
    """The program of the first trace that succeeds: as asked for, by Dynamo, or with answers about sizes."""
    try:
        return _with_derivatives(request, strict=strict)
    except GuardOnDataDependentSymNode as error:
        # `int` gives a number of Python, but Dynamo reads the code, and takes `int(n)` for `n.item()`.
        if not strict and SPECIALIZED in str(error) and (exported := _by_dynamo(request)) is not None:
            return exported
        if not strict and (answered := request.answered(error)) is not None:
            return _export(answered, strict=False)
        raise decided_by_values(type(request.model).__name__, error) from error
    except ImportProgramError as error:
        known = not strict and any(said in error.message for said in _FOR_DYNAMO)
        if known and (exported := _by_dynamo(request)) is not None:
            return exported
        raise


def _by_dynamo(request: TraceRequest) -> ExportedProgram | None:
    """The program that Dynamo finds where another trace has failed; None if it finds none."""
    # Dynamo fails in errors of many classes; that of the other trace, which is raised then, is of the model.
    with suppress(Exception):
        return traced(request, strict=True)
    return None


def _with_derivatives(request: TraceRequest, *, strict: bool) -> ExportedProgram:
    """The program of a model, its derivatives written out if it takes some, as are maps in which numbers are drawn."""
    mapped = False
    if not takes_derivatives(request.model):
        with suppress(DerivativeTakenError):
            exported = traced(request, strict=strict)
            mapped = draws_when_mapped(exported.graph_module)
            if not mapped and not takes_derivatives(exported.graph_module):
                return exported
    if request.dynamic_shapes is not None:
        does = "draws random numbers inside of vmap" if mapped else "takes derivatives"
        raise UnsupportedError(
            f"{type(request.model).__name__} {does}, and has symbolic sizes",
            hint="compile it without dynamic_shapes: each size then has a program of its own",
        )
    return traced(request, strict=False, derivatives=True)


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

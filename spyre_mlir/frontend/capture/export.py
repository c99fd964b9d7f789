"""From a model to a functional ATen graph: `torch.export`, then decomposition that keeps composites."""

from __future__ import annotations

import logging
import re
import zipfile
from ast import literal_eval
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from itertools import takewhile
from pathlib import Path
from traceback import extract_tb
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from spyre_mlir.errors import ImportProgramError, UnsupportedError
from spyre_mlir.frontend.capture.archive import check_archive
from spyre_mlir.frontend.capture.indices.writes import IndexWrites
from spyre_mlir.frontend.capture.python_state import python_state_kept
from spyre_mlir.frontend.capture.random_draws.seeding import check_settings, settings_noted
from spyre_mlir.frontend.capture.torch_warnings import torch_noise_hidden
from spyre_mlir.frontend.capture.tracing.collectives import collectives_in_place
from spyre_mlir.frontend.capture.tracing.constant_values import ConstantValues
from spyre_mlir.frontend.capture.tracing.derivatives import (
    DerivativesSought,
    DerivativeTakenError,
    Differentiated,
    draws_when_mapped,
    takes_derivatives,
)
from spyre_mlir.frontend.capture.unsupported import DATA
from spyre_mlir.frontend.locations import place_of, raised_at, raised_by_torch
from spyre_mlir.frontend.torch_private import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    GuardOnDataDependentSymNode,
    Operator,
    OpOverload,
    PendingUnbackedSymbolNotFound,
    SpecViolationError,
    UnsupportedOperatorException,
    holders,
    is_fake,
    schema_of,
    tree_map,
)

_FIXES = "Suggested fixes:"

# What torch cannot trace, because it traces without the values of tensors.
NEEDS_VALUES = (DataDependentOutputException, DynamicOutputShapeException, UnsupportedOperatorException)
# What torch and models raise where they cannot go on: arguments, shapes or dtypes that do not fit, and overloads that
# torch cannot write as Python, such as `random_.from`.
REFUSED = (RuntimeError, TypeError, ValueError, IndexError, KeyError, AttributeError, AssertionError, SyntaxError)

# Dynamo's words for the error that a call in a branch or body met, and for its explanation of why tracing stopped.
_MET = re.compile(r"""\bgot \w+\(("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\)""")
_EXPLAINED = "Explanation: "


def clone_examples(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Copy every example tensor: export merges inputs that are the same object."""

    def fresh(leaf: object) -> object:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        copy = leaf.detach().clone()
        return torch.nn.Parameter(copy, requires_grad=False) if isinstance(leaf, torch.nn.Parameter) else copy

    return tree_map(fresh, args), tree_map(fresh, dict(kwargs))


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
# What torch says where Python asks for the number itself.
_SPECIALIZED = "Could not extract specialized"
# What torch says of a `while_loop` in the body of a `scan`, which Dynamo alone captures.
_LOOP_IN_SCAN = "Cannot access data pointer of Tensor"
# What to write instead of functions of torch that look at the values of a tensor.
_INSTEAD = {
    "_detect_is_causal_mask": "say whether the mask is causal: tgt_is_causal=True (src_is_causal, or is_causal of an "
    "encoder), or False; otherwise torch compares its values",
    "_assert": "write torch._assert_async(condition, message) with a tensor as condition, which each call checks",
    "unbind": "loop over what has a known count, such as all experts, and let a mask choose rows in each turn; models "
    'of transformers: set_experts_implementation("grouped_mm")',
}


@contextmanager
def _results_seen(model: torch.nn.Module, see: Callable[[object], None]) -> Generator[None]:
    """Shows what a model returns to somebody while it is traced."""

    def show(_model: torch.nn.Module, _args: object, output: object) -> None:
        see(output)

    hook = model.register_forward_hook(show)
    try:
        yield
    finally:
        hook.remove()


def export_model(
    model: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    see: Callable[[object], None] = lambda _: None,
    dynamic_shapes: Any = None,
    *,
    strict: bool = False,
) -> ExportedProgram:
    """Export a module for the shapes of its example arguments.

    Args:
        model: the module.
        args: positional example arguments.
        kwargs: keyword example arguments.
        see: is shown what the module returns, before torch flattens it.
        dynamic_shapes: which sizes are symbols, as `torch.export.export` takes it.
        strict: whether Dynamo traces the module; it also does where only it finds what a model writes to.

    Raises:
        UnsupportedError: the control flow depends on data.
        ImportProgramError: torch cannot trace the module for these arguments, or it writes to tensors that are not its
            buffers.
    """
    with _results_seen(model, see):
        exported = _export(model, args, kwargs, dynamic_shapes, strict=strict)
    if (node := _mutated_constant(exported)) is not None:
        # Buffers reached through a Python object look like constants; strict export finds the buffers.
        exported = _export(model, args, kwargs, dynamic_shapes, strict=True)
        node = _mutated_constant(exported)
    if node is not None:
        raise ImportProgramError(
            "the model writes to a tensor that is neither a buffer, a parameter nor an input",
            where=place_of(node),
            hint="register the tensor with register_buffer, and write to the buffer",
        )
    return exported


def _export(
    model: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], dynamic_shapes: Any, *, strict: bool
) -> ExportedProgram:
    try:
        return _with_derivatives(model, args, kwargs, dynamic_shapes, strict=strict)
    except GuardOnDataDependentSymNode as error:
        if not strict and _SPECIALIZED in str(error):
            # `int` gives a number of Python, but Dynamo reads the code, and takes `int(n)` for `n.item()`.
            with suppress(Exception):
                return _traced(model, args, kwargs, dynamic_shapes, strict=True)
        raise _decided_by_values(type(model).__name__, error) from error
    except ImportProgramError as error:
        if not strict and _LOOP_IN_SCAN in error.message:
            with suppress(Exception):
                return _traced(model, args, kwargs, dynamic_shapes, strict=True)
        raise


def _with_derivatives(
    model: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], dynamic_shapes: Any, *, strict: bool
) -> ExportedProgram:
    """The program of a model, its derivatives written out if it takes some, as are maps in which numbers are drawn."""
    mapped = False
    if not takes_derivatives(model):
        with suppress(DerivativeTakenError):
            exported = _traced(model, args, kwargs, dynamic_shapes, strict=strict)
            mapped = draws_when_mapped(exported.graph_module)
            if not mapped and not takes_derivatives(exported.graph_module):
                return exported
    if dynamic_shapes is not None:
        does = "draws random numbers inside of vmap" if mapped else "takes derivatives"
        raise UnsupportedError(
            f"{type(model).__name__} {does}, and has symbolic sizes",
            hint="compile it without dynamic_shapes: each size then has a program of its own",
        )
    return _traced(model, args, kwargs, None, strict=False, derivatives=True)


def _traced(
    model: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    dynamic_shapes: Any,
    *,
    strict: bool,
    derivatives: bool = False,
) -> ExportedProgram:
    name = type(model).__name__
    try:
        with torch_noise_hidden(), torch.no_grad(), python_state_kept(model), _fake_instead_of_meta(model) as fake:
            fresh_args, fresh_kwargs = tree_map(fake, clone_examples(args, kwargs))
            known, writes = (nullcontext(), nullcontext()) if strict else (ConstantValues(), IndexWrites())
            exchanged = nullcontext() if strict else collectives_in_place()
            given, sought = model, nullcontext() if strict else DerivativesSought()
            if derivatives:
                given, sought = Differentiated(model, *clone_examples(fresh_args, fresh_kwargs)), nullcontext()
            with known, writes, exchanged, sought, settings_noted() as noted:
                exported = torch.export.export(
                    given, fresh_args, fresh_kwargs, dynamic_shapes=dynamic_shapes, strict=strict
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
        does, hint = "torch.export cannot trace", "see if model(*args) and torch.export.export(model, args) work alone"
        if derivatives:
            does = "torch cannot take the derivatives of"
            hint = "see if model(*args) works alone; take derivatives inside of torch.cond and loops, not of them"
        said, fixes = _of_sizes(error)
        if _SIZE_OF_TENSOR in said and any(f.filename.endswith(_RECURRENT) for f in extract_tb(error.__traceback__)):
            hint = "packed sequences take sizes from tensors: give the layer padded ones, and mask what is behind them"
        raise ImportProgramError(f"{does} {name}: {said}", where=raised_at(error), hint=fixes or hint) from error
    check_settings(exported, noted)
    return exported


def _decided_by_values(name: str, error: GuardOnDataDependentSymNode) -> UnsupportedError:
    """The message for a model in which Python needs the value of a tensor, or what it says of a size."""
    called = {frame.name for frame in extract_tb(error.__traceback__)}
    condition = str(getattr(error, "cond", ""))
    instead = next((text for function, text in _INSTEAD.items() if function in called), None)
    if instead is None and _SPECIALIZED in str(error):
        instead = (
            "use the number as a size, a bound of a slice or a factor, torch.where or torch.cond instead of `if`, or "
            "give it to the model as a number of Python"
        )
    elif instead is None and re.fullmatch(r"Eq\(.*, 0\)", condition):
        instead = "if the size is never 0, write torch._check(y.shape[0] != 0) above this line, where y has this size"
    elif instead is None and "_bool" not in condition and not condition.startswith("Eq(") and condition:
        symbols = ", ".join(sorted(set(re.findall(r"\bu\d+\b", condition))))
        instead = (
            f"if it always holds, write torch._check({condition}) above this line, where {symbols} is what the model "
            "reads from a tensor; else use torch.where, or torch.cond"
        )
    text = f"{name} decides its control flow or a shape by the values of a tensor: {first_line(error)}"
    return UnsupportedError(
        text, where=raised_at(error), hint=instead or "use torch.where, or torch.cond, instead of `if`"
    )


def without_values(
    error: DataDependentOutputException | DynamicOutputShapeException | UnsupportedOperatorException,
) -> UnsupportedError:
    """Return the message for an operator that torch cannot trace because it traces without values."""
    op = str(error.func).removesuffix(".default")
    if isinstance(error, UnsupportedOperatorException):
        reason, hint = "torch cannot say the shape of its result", "register a fake implementation of the operator"
    elif isinstance(error, DataDependentOutputException):
        reason, hint = "its result is a Python value that depends on the data", DATA
    else:
        reason, hint = "the shape of its result depends on the data", DATA
    what = f"a part of this model cannot be expressed\n  1 x {op}: {reason}"
    return UnsupportedError(what, where=raised_at(error), hint=hint)


def reason_of(error: Exception) -> str:
    """Return why torch refuses to trace: the error that it met, its explanation, or the first line of its message.

    The first line alone names no cause for a branch or body: it says that a call failed or was not captured completely.
    """
    text = str(error)
    if (met := _MET.search(text)) is not None:
        return " ".join(str(literal_eval(met.group(1))).split())
    first, *others = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    if not first.endswith(":") or not others:
        return first
    explained = next((line.removeprefix(_EXPLAINED) for line in others if line.startswith(_EXPLAINED)), None)
    return f"{first} {others[0]}" if explained is None else f"{others[0]}: {explained}"


def first_line(error: Exception) -> str:
    """Return the first line of what an error says."""
    return str(error).strip().split("\n", 1)[0]


def _of_sizes(error: Exception) -> tuple[str, str | None]:
    """The message of an error; for an error about sizes with its reasons, and the ranges that torch suggests."""
    lines = str(error).strip().split("\n")
    if not lines[0].startswith("Constraints violated"):
        return reason_of(error), None
    reasons = [f"\n  {line.removeprefix('  - ').split('. If ')[0]}" for line in lines if line.startswith("  - ")]
    behind = lines[lines.index(_FIXES) + 1 :] if _FIXES in lines else []
    fixes = [line.strip() for line in takewhile(lambda line: line.startswith("  "), behind)]
    return "".join([lines[0].split("!")[0], *reasons]), f"as torch suggests, {'; '.join(fixes)}" if fixes else None


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


def load_pt2(path: str | Path) -> ExportedProgram:
    """Read a program written by `torch.export.save`, after checking that reading executes nothing.

    Raises:
        ImportProgramError: there is no such file, or it is truncated or something else, or holds more than a program.
    """
    file = Path(path)
    hint = "write the file with torch.export.save(torch.export.export(model, args), path)"
    if not file.is_file():
        what = "this is no file" if file.exists() else "there is no such file"
        raise ImportProgramError(what, where=str(file), hint=hint)
    if not zipfile.is_zipfile(file):
        with file.open("rb") as stream:
            begins_as_zip = stream.read(2) == b"PK"
        what = (
            "the file is truncated: its zip directory is missing"
            if begins_as_zip
            else "this is no .pt2 file: not a zip archive"
        )
        raise ImportProgramError(what, where=str(file), hint=hint)
    if _is_of_torch_save(file):
        hint += "; weights go after --weights, or to bind()"
        raise ImportProgramError("torch.save has written this file, not torch.export.save", where=str(file), hint=hint)
    with torch_noise_hidden() as hidden:
        check_archive(file)
        try:
            program = torch.export.load(str(file))
            if program.call_spec.out_spec is None:
                raise ValueError("it does not say how it is called")
        except (*REFUSED, SpecViolationError, OSError, zipfile.BadZipFile) as error:
            what = f"this is no .pt2 file that torch can read: {first_line(error)}"
            if (operator := _unknown_operator(hidden)) is not None:
                what = f"the program calls {operator}, which is not registered with torch"
                hint = "import the module that registers it first; a plugin does so for the command line"
            raise ImportProgramError(what, where=str(file), hint=hint) from error
    return program


def _is_of_torch_save(file: Path) -> bool:
    """Return whether a zip archive is a pickle of `torch.save`, such as a state dict or a whole module."""
    try:
        with zipfile.ZipFile(file) as archive:
            return any(re.fullmatch(r"[^/]+/data\.pkl", name) for name in archive.namelist())
    except (zipfile.BadZipFile, OSError, UnicodeDecodeError):  # refused by name elsewhere
        return False


def _unknown_operator(logged: list[logging.LogRecord]) -> str | None:
    """The operator of a saved program that torch does not know; its error does not say so, but what it logs does."""
    text = "".join(logging.Formatter().format(r) for r in logged if r.name == torch.export.__name__)
    found = re.search(r"failed to resolve torch\.ops\.(\w+)\.(\w+)", text)
    return None if found is None else f"{found[1]}::{found[2]}"

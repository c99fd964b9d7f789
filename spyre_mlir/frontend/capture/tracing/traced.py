"""One trace of a model by `torch.export`: its modes, answers to what torch asks about sizes, and its errors."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from traceback import extract_tb
from typing import Any, cast

import torch
from torch.export import ExportedProgram

from spyre_mlir.errors import ImportProgramError, UnsupportedError
from spyre_mlir.frontend.capture.indices.writes import IndexWrites
from spyre_mlir.frontend.capture.random_draws.seeding import check_settings, settings_noted
from spyre_mlir.frontend.capture.torch_warnings import torch_noise_hidden
from spyre_mlir.frontend.capture.tracing.assumed import note_assumed
from spyre_mlir.frontend.capture.tracing.collectives import collectives_in_place
from spyre_mlir.frontend.capture.tracing.constant_values import ConstantValues
from spyre_mlir.frontend.capture.tracing.derivatives import DerivativesSought, Differentiated
from spyre_mlir.frontend.capture.tracing.known_counts import KnownCounts, length_asked
from spyre_mlir.frontend.capture.tracing.python.state import python_state_kept, unset_buffers_as_attributes
from spyre_mlir.frontend.capture.tracing.sizes_alike import SizesAlike, sizes_compared
from spyre_mlir.frontend.capture.tracing.sizes_alike import conditions_of as conditions_alike
from spyre_mlir.frontend.capture.tracing.sizes_unlike import SizesUnlike, Unlike, asked_by_operator, sizes_asked
from spyre_mlir.frontend.capture.tracing.sizes_unlike import conditions_of as conditions_unlike
from spyre_mlir.frontend.capture.tracing.specialized_values import Noted, specialized
from spyre_mlir.frontend.capture.tracing.symbolic_pools import SymbolicPools
from spyre_mlir.frontend.capture.tracing.torch_errors import (
    NEEDS_VALUES,
    REFUSED,
    of_sizes,
    without_form,
    without_values,
)
from spyre_mlir.frontend.capture.unsupported import DATA
from spyre_mlir.frontend.locations import raised_at, raised_by_torch
from spyre_mlir.frontend.torch_private import (
    FakeTensorMode,
    GuardOnDataDependentSymNode,
    PendingUnbackedSymbolNotFound,
    holders,
    is_fake,
    tree_map,
)
from spyre_mlir.frontend.torch_tracing import bodies_as_written

# The file of torch with recurrent layers, and what it says of packed sequences.
_RECURRENT, _SIZE_OF_TENSOR = "torch/nn/modules/rnn.py", "argument 'size' failed"


@dataclass(frozen=True)
class TraceRequest:
    """A module to trace, and answers to what torch asks about sizes that data decides.

    Attributes:
        model: the module.
        args: positional example arguments.
        kwargs: keyword example arguments.
        dynamic_shapes: which sizes are symbols, as `torch.export.export` takes it.
        noted: values that Python reads from tensors; None to read none.
        unlike: sizes that are other than numbers.
        alike: pairs of sizes that are equal.
        assumed: conditions among these that operators ask about, as torch writes them.
        counts: lengths that Python asks for, which the model says.
    """

    model: torch.nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    dynamic_shapes: Any
    noted: Noted | None
    unlike: frozenset[Unlike] = frozenset()
    alike: frozenset[frozenset[str]] = frozenset()
    assumed: frozenset[str] = frozenset()
    counts: frozenset[str] = frozenset()

    def answered(self, error: GuardOnDataDependentSymNode) -> TraceRequest | None:
        """Return the request with an answer to what torch asks of sizes; None without one, or if it was in vain."""
        if counts := length_asked(error) - self.counts:
            return replace(self, counts=self.counts | counts)
        alike = sizes_compared(error) - self.alike
        unlike = frozenset[Unlike]() if alike else sizes_asked(error) - self.unlike
        if not alike and not unlike:
            return None
        taken = conditions_alike(alike) | conditions_unlike(unlike) if asked_by_operator(error) else frozenset[str]()
        return replace(self, alike=self.alike | alike, unlike=self.unlike | unlike, assumed=self.assumed | taken)


def traced(request: TraceRequest, *, strict: bool, derivatives: bool = False) -> ExportedProgram:
    """Trace a module once.

    Args:
        request: the module, and what is known of it.
        strict: whether Dynamo reads the code of the module, in place of calls that are seen.
        derivatives: whether the derivatives that the module takes are written out.

    Raises:
        GuardOnDataDependentSymNode: torch asks about a size that data decides, without an answer.
        UnsupportedError: a value or a shape depends on data.
        ImportProgramError: torch cannot trace it.
    """
    name = type(request.model).__name__
    try:
        with ExitStack() as states:
            states.enter_context(torch_noise_hidden())
            states.enter_context(torch.no_grad())
            states.enter_context(unset_buffers_as_attributes(request.model))
            states.enter_context(python_state_kept(request.model))
            fake = states.enter_context(_fake_instead_of_meta(request.model))
            args, kwargs = tree_map(fake, clone_examples(request.args, request.kwargs))
            given = Differentiated(request.model, *clone_examples(args, kwargs)) if derivatives else request.model
            for mode in _modes(request, strict=strict, derivatives=derivatives):
                states.enter_context(mode)
            noted = states.enter_context(settings_noted())
            exported = torch.export.export(given, args, kwargs, dynamic_shapes=request.dynamic_shapes, strict=strict)
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
        raise without_form(name, error) or _untraceable(name, error, derivatives=derivatives) from error
    check_settings(exported, noted)
    note_assumed(exported, request.assumed)
    return exported


def _modes(request: TraceRequest, *, strict: bool, derivatives: bool) -> Iterator[AbstractContextManager[object]]:
    """Yield the modes of a trace, the outermost first; Dynamo reads code, so that no mode sees calls for it."""
    if not strict:
        yield ConstantValues()
        yield IndexWrites()
        yield collectives_in_place()
        yield SymbolicPools()
        if not derivatives:
            yield DerivativesSought()
    yield specialized(request.noted)
    yield bodies_as_written()
    if request.unlike:
        yield SizesUnlike(request.unlike)
    if request.alike:
        yield SizesAlike(request.alike)
    if request.counts:
        yield KnownCounts(request.counts)


def _untraceable(name: str, error: Exception, *, derivatives: bool) -> ImportProgramError:
    """The error for a module that torch refuses, with what to try."""
    does, hint = "torch.export cannot trace", "see if model(*args) and torch.export.export(model, args) work alone"
    if derivatives:
        does = "torch cannot take the derivatives of"
        hint = "see if model(*args) works alone; take derivatives inside of torch.cond and loops, not of them"
    said, fixes = of_sizes(error)
    if _SIZE_OF_TENSOR in said and any(f.filename.endswith(_RECURRENT) for f in extract_tb(error.__traceback__)):
        hint = "packed sequences take sizes from tensors: give the layer padded ones, and mask what is behind them"
    return ImportProgramError(f"{does} {name}: {said}", where=raised_at(error), hint=fixes or hint)


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


__all__ = ["TraceRequest", "clone_examples", "traced"]

"""Memory placement of a graph's results: strides, offsets and sharing, found by a run on tensors without elements.

Code after a call may depend on all three: `y.view(-1)` asks for strides, and a write to one result shows in its views.

Decision: docs/decisions/0105-results-lie-as-eagers-do.md
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch.autograd.graph import increment_version

from spyre_mlir.frontend.first_steps import first_steps_traced
from spyre_mlir.frontend.torch_private import (
    DataDependentOutputException,
    FakeTensorMode,
    GuardOnDataDependentSymNode,
    HigherOrderOperator,
    Operator,
    TorchDispatchMode,
    free_unbacked_symbols,
    is_fake,
    negated_view,
    schema_of,
    sizes_from_inputs,
    storage_identity,
    tree_flatten,
    tree_map,
)
from spyre_mlir.frontend.torch_tracing import tracing_alone

_KEPT = 128  # forms of inputs; a loop over slices of one tensor has a new one in every trip
_READ = torch.ops.aten._local_scalar_dense.default
# In training it writes the running statistics, arguments 3 and 4, which its schema does not tell and no version counts.
_BATCH_NORM, _STATISTICS, _IN_TRAINING = "aten::native_batch_norm", slice(3, 5), 5


@dataclass(frozen=True)
class MemoryPlace:
    """Placement of a tensor in its memory.

    Attributes:
        offset: elements of `dtype` before the first one.
        conjugated: whether the tensor is the conjugate of what the memory holds.
        negated: whether it is the negative of that.
    """

    dtype: torch.dtype
    size: Sequence[int]
    stride: Sequence[int]
    offset: int
    conjugated: bool = False
    negated: bool = False

    @staticmethod
    def of(tensor: torch.Tensor) -> MemoryPlace:
        """Return the placement of a tensor."""
        size, stride = tuple(tensor.shape), tuple(tensor.stride())
        offset = 0 if _data_decides_place(tensor) else int(tensor.storage_offset())
        return MemoryPlace(tensor.dtype, size, stride, offset, tensor.is_conj(), tensor.is_neg())

    @property
    def end(self) -> int:
        """Bytes of the memory up to the end of the tensor."""
        if 0 in self.size:
            return 0
        last = sum((extent - 1) * step for extent, step in zip(self.size, self.stride, strict=True))
        return (self.offset + last + 1) * self.dtype.itemsize

    def viewed(self, whole: torch.Tensor) -> torch.Tensor:
        """Return a view with this placement in the memory of another tensor, of any dtype."""
        step = max(whole.itemsize, self.dtype.itemsize)
        elements = whole.untyped_storage().nbytes() // step * step // whole.itemsize
        stored = _read_as(whole, conjugated=whole.is_conj(), negated=whole.is_neg())  # what the memory holds
        flat = stored.as_strided((elements,), (1,), 0).view(self.dtype)
        return self._read(flat.as_strided(self.size, self.stride, self.offset))

    def _read(self, stored: torch.Tensor) -> torch.Tensor:
        return _read_as(stored, conjugated=self.conjugated, negated=self.negated)

    def moved(self, tensor: torch.Tensor, memory: torch.UntypedStorage) -> torch.Tensor:
        """Copy a tensor's elements to this placement of a memory."""
        there = self._read(torch.empty(0, dtype=self.dtype).set_(memory, self.offset, self.size, self.stride))
        once = tuple(slice(0, 1) if step == 0 else slice(None) for step in self.stride)  # expanded: one element
        there[once].copy_(tensor[once])
        return there


@dataclass(frozen=True)
class ResultMemory:
    """Memory placement of a graph's results, for inputs of one form.

    Attributes:
        writes: numbers of the inputs that the graph writes to.
        views: results in the memory of an input: the number of the input, and the place there.
        own: groups of results that share memory of their own, most of them alone; places by number of the result. One
            whose place data decides in a way that no number of an input tells is alone.
        data_decides: whether numbers of the inputs decide the place of a result in an input, as in `c[:, position]`.
    """

    writes: frozenset[int]
    views: Mapping[int, tuple[int, MemoryPlace]]
    own: Sequence[Mapping[int, MemoryPlace]]
    data_decides: bool = False

    def applied(self, results: Sequence[Any], inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Return the results in the memory that the graph places them in."""
        placed = dict(enumerate(results))
        taken = set[int]()  # equal results may come as one array
        with torch.no_grad():
            placed |= {number: place.viewed(inputs[of]) for number, (of, place) in self.views.items()}
            for places in self.own:
                memories = {storage_identity(results[number]) for number in places}
                if len(memories) > 1 or memories & taken or not _lies_so(places, results):
                    memory = _zeros(max(place.end for place in places.values()))
                    placed |= {number: place.moved(results[number], memory) for number, place in places.items()}
                taken |= memories
        return tuple(placed[number] for number in range(len(results)))

    @staticmethod
    def of(results: Sequence[Any], inputs: Sequence[Any], writes: Collection[int] = ()) -> ResultMemory:
        """Return the placement of a run's results for its inputs, both usually without elements."""
        memory = {storage_identity(x): number for number, x in enumerate(inputs) if isinstance(x, torch.Tensor)}
        views: dict[int, tuple[int, MemoryPlace]] = {}
        own: dict[int, dict[int, MemoryPlace]] = {}
        for number, result in enumerate(results):
            if not isinstance(result, torch.Tensor):
                continue
            storage = storage_identity(result)
            if _data_decides_place(result):
                own[~number] = {number: MemoryPlace.of(result)}
            elif storage in memory:
                views[number] = memory[storage], MemoryPlace.of(result)
            else:
                own.setdefault(storage, {})[number] = MemoryPlace.of(result)
        decides = any(number < 0 and storage_identity(results[~number]) in memory for number in own)
        return ResultMemory(frozenset(writes), views, tuple(own.values()), decides)


def _data_decides_place(tensor: torch.Tensor) -> bool:
    return bool(free_unbacked_symbols(tensor.storage_offset()))


def _data_decides_form(result: Any) -> bool:
    """Return whether data decides a size of a tensor, or a number of Python."""
    form = (*result.shape, *result.stride()) if isinstance(result, torch.Tensor) else result
    return bool(free_unbacked_symbols(form))


class ResultMemories:
    """Memory placement of a graph's results for every form of its inputs, found at first request."""

    def __init__(self, run: Callable[..., Sequence[Any]]) -> None:
        """Keeps the graph as a function of all its placeholders that gives all its results."""
        self._run = run
        self._known: dict[str, ResultMemory] = {}

    def __call__(self, inputs: Sequence[Any]) -> ResultMemory:
        """The memory of the results for inputs; whatever the graph raises without elements is raised."""
        form = ", ".join(str(MemoryPlace.of(x)) if isinstance(x, torch.Tensor) else repr(x) for x in inputs)
        if form not in self._known:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[form] = self._found(inputs)
        found = self._known[form]
        return self._found(inputs, by_numbers=True) if found.data_decides else found

    def _found(self, inputs: Sequence[Any], *, by_numbers: bool = False) -> ResultMemory:
        numbers = {place: x.detach().clone() for place, x in enumerate(inputs) if by_numbers and _is_number(x)}
        # Loops inside of branches ask for symbols. Numbers that are read from other tensors are symbols: the place of a
        # row in its table may depend on them.
        fake_mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=sizes_from_inputs())
        alone, plain = tracing_alone(), torch.inference_mode(False)
        with alone, plain, torch.no_grad(), fake_mode, _BySchema(), first_steps_traced():
            fakes = [_empty(x) if isinstance(x, torch.Tensor) else x for x in inputs]
            for place, number in numbers.items():
                fakes[place] = fake_mode.fake_tensor_converter.from_real_tensor(fake_mode, number, make_constant=True)
            before = [_version(fake) for fake in fakes]
            try:
                results = self._run(*fakes)
            except GuardOnDataDependentSymNode as error:
                raise DataDependentOutputException(_READ) from error
            after = [_version(fake) for fake in fakes]
        if any(_data_decides_form(result) for result in results):
            raise DataDependentOutputException(_READ)
        return ResultMemory.of(results, fakes, [n for n, version in enumerate(before) if after[n] != version])


class _BySchema(TorchDispatchMode):
    """Torch mode in which results of custom operators have memory of their own unless the schema says otherwise.

    The function that gives their shapes may return an argument, for it has the right shape; a schema without an alias
    promises that the operator itself never does. Operations on graphs are left to the mode below.
    """

    supports_higher_order_operators = True

    def __torch_dispatch__(
        self,
        func: Operator | HigherOrderOperator,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Runs one operator."""
        if isinstance(func, HigherOrderOperator) and func.name() == "while_loop":
            return tree_map(_carried, tuple(args[2]))  # torch would have to trace its graphs
        if isinstance(func, HigherOrderOperator):
            return cast(Any, func)(*args, **(kwargs or {}))
        schema = schema_of(func)
        if any(v.alias_info is not None and v.alias_info.is_write for v in schema.arguments):
            args, kwargs = tree_map(_unwritable, (args, kwargs or {}))
        results: Any = func(*args, **(kwargs or {}))
        if schema.name == _BATCH_NORM and args[_IN_TRAINING]:
            increment_version([x for x in args[_STATISTICS] if x is not None])
        if func.namespace in ("aten", "prims") or any(v.alias_info for v in (*schema.arguments, *schema.returns)):
            return results
        taken = {storage_identity(x) for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)}

        def apart(result: Any) -> Any:
            shares = isinstance(result, torch.Tensor) and storage_identity(result) in taken
            return result.clone() if shares else result

        return tree_map(apart, results)


def _carried(value: Any) -> Any:
    """What a loop ends with that carries a value: of a number, data decides it.

    Not `empty_like`: of a constant, torch knows the numbers of what that gives, which are any.
    """
    if not isinstance(value, torch.Tensor):
        return torch.empty((), dtype=torch.int64).item()
    like = torch.empty_like(value)
    return torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device=like.device)


def _unwritable(value: Any) -> Any:
    """A tensor without elements in the place of one with elements: state of the graph is not written by this run."""
    return _empty(value) if isinstance(value, torch.Tensor) and not is_fake(value) else value


def _lies_so(places: Mapping[int, MemoryPlace], results: Sequence[Any]) -> bool:
    """Return whether results lie in their places already."""
    return all(MemoryPlace.of(results[number]) == place for number, place in places.items())


def _zeros(count: int) -> torch.UntypedStorage:
    """Memory of so many bytes; pages that nobody writes take no room."""
    return torch.as_tensor(np.zeros(count, np.uint8)).untyped_storage()


def _empty(like: torch.Tensor) -> torch.Tensor:
    """A tensor without elements that lies as another one does."""
    memory = torch.empty(like.untyped_storage().nbytes() // like.itemsize, dtype=like.dtype, device=like.device)
    stored = memory.as_strided(like.shape, like.stride(), like.storage_offset())
    return _read_as(stored, conjugated=like.is_conj(), negated=like.is_neg())


def _is_number(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.numel() == 1 and not value.is_floating_point()


def _read_as(stored: torch.Tensor, *, conjugated: bool, negated: bool) -> torch.Tensor:
    """A view of a tensor that changes signs when it is read; twice it is the tensor again."""
    stored = stored.conj() if conjugated else stored
    return negated_view(stored) if negated else stored


def _version(value: object) -> int:
    return value._version if isinstance(value, torch.Tensor) else 0  # pyright: ignore[reportPrivateUsage]

"""A compiled model with symbolic sizes: imported once, specialised for the sizes that its calls have.

Decision: docs/decisions/0125-padding-is-proved-away.md
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spyre_mlir.cache.store import Store
from spyre_mlir.collector import paused_collector
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.aten_sizes import SymbolRange
from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dynamic.exported import choices_of
from spyre_mlir.dynamic.files import SizesKey, ToSave, write_sizes
from spyre_mlir.dynamic.programs import specialized, symbols_of
from spyre_mlir.errors import InputError, NoSuchPlaceError
from spyre_mlir.machine.levels.named_places import check_places
from spyre_mlir.options import CompileOptions
from spyre_mlir.pickling import PickledAsSaved
from spyre_mlir.pipeline import LEVELS, check_level
from spyre_mlir.report import Accuracy, Verification
from spyre_mlir.sizes import counted
from spyre_mlir.text.no_module import IsNoModule
from spyre_mlir.text.notebook import ShownAsText
from spyre_mlir.text.render import module_text
from spyre_mlir.transforms.specialize_shapes import SpecializeShapesPass

if TYPE_CHECKING:
    from spyre_mlir.frontend import Program

Static = Callable[[Sequence[Any], Mapping[str, Any]], CompiledModel]

# torch traces as if no symbolic size were 0 or 1.
_SPECIAL = (0, 1)


@dataclass(frozen=True)
class Buckets:
    """Sizes that calls are padded to.

    Attributes:
        sizes: of the program's only symbol.
        check: raises `UnsupportedError` if a program, with its size, may not stand for programs of smaller sizes.
        is_proved: returns whether a program is known to stand for them.
    """

    sizes: Sequence[int]
    check: Callable[[Program, int, Sequence[tuple[Program, int]]], None]
    is_proved: Callable[[Program], bool] = lambda _: False


class DynamicModel(ShownAsText, PickledAsSaved, IsNoModule):
    """A model with symbolic sizes: a call runs the program for its sizes, which is made when they come first.

    Specialisations share the model's tensors; those that were not called for longest are dropped. With buckets, a call
    runs the program for the next larger bucket, on inputs with zeros behind them.
    """

    def __init__(
        self,
        program: Program,
        build: Callable[[Program], CompiledModel],
        options: CompileOptions,
        *,
        specializations: int,
        static: Static | None = None,
        buckets: Buckets | None = None,
        apart: Mapping[SizesKey, CompiledModel] | None = None,
        lowered: Store | None = None,
    ) -> None:
        """Keeps the program; only buckets are lowered before the first call.

        Args:
            program: with symbols.
            build: lowers a static program.
            options: what it is compiled with.
            specializations: how many are kept.
            static: compiles the model for the shapes of a call, if the model is there to be exported again.
            buckets: sizes that calls are padded to.
            apart: programs of a saved model for sizes that torch treats apart.
            lowered: what was lowered when the model was saved, which `save` writes again.

        Raises:
            InputError: a number is out of range, or the program has another number of symbols than one.
            UnsupportedError: padding may reach a result.
        """
        if specializations < 1:
            raise InputError(f"specializations must be 1 or more, got {specializations}")
        self._program = program
        self._build = build
        self._options = options
        self._kept = specializations
        self._static: Static | None = static
        self._made: OrderedDict[SizesKey, CompiledModel] = OrderedDict()
        self._apart = dict(apart or {})
        self._lowered = lowered
        self._buckets = {} if buckets is None else self._ahead(buckets)

    def __repr__(self) -> str:
        """One line: name, symbols, and how many programs there are."""
        symbols = ", ".join(f"{name} {sizes}" for name, sizes in self.symbols.items())
        return f"<DynamicModel {self.name}: {symbols}; {counted(len(self.programs), 'program')}>"

    @property
    def name(self) -> str:
        """Name of the program."""
        return self._program.name

    @property
    def symbols(self) -> dict[str, SymbolRange]:
        """The symbols with the values that they may have."""
        return symbols_of(self._program)

    def _ahead(self, buckets: Buckets) -> dict[int, CompiledModel]:
        """The programs of the buckets, smallest first."""
        symbol, least = self._only_symbol()
        made: dict[int, CompiledModel] = {}
        for size in sorted(set(buckets.sizes)):
            larger = specialized(self._program, {symbol: size})
            fitting = next((n for n in range(least, size) if self._fits({symbol: n})), None)
            if fitting is not None and not buckets.is_proved(larger):
                smaller = [(specialized(self._program, {symbol: n}), n) for n in sorted({fitting, size - 1})]
                buckets.check(larger, size, smaller)
            made[size] = self._build(larger)
        return made

    def _fits(self, sizes: Mapping[str, int]) -> bool:
        """Return whether sizes fulfil the conditions that the program takes for granted."""
        try:
            SpecializeShapesPass(sizes).check(self._program.module)
        except InputError:
            return False
        return True

    def _only_symbol(self) -> tuple[str, int]:
        """The symbol that buckets are of, with its least value."""
        if len(self.symbols) != 1:
            names = ", ".join(self.symbols)
            raise InputError(f"buckets are sizes of one symbol, and the program has {names}", hint="leave out buckets")
        ((symbol, sizes),) = self.symbols.items()
        return symbol, sizes.least

    @property
    def programs(self) -> tuple[CompiledModel, ...]:
        """The programs of the buckets, then the specialisations at hand, the one called last at the end."""
        return (*self._buckets.values(), *self._apart.values(), *self._made.values())

    def bind(
        self,
        source: Any,
        buffers: Any = None,
        *,
        rename: Callable[[str], str | None] | None = None,
        strict: bool = True,
        shards: Mapping[str, int | Callable[[Any, int, int], Any]] | None = None,
    ) -> DynamicModel:
        """Return the same model with other weights; what was lowered is not lowered again.

        Args:
            source: as for `CompiledModel.bind`.
            buffers: where tensors come from that the source lacks.
            rename: gives the model's name for a name of the source; None leaves the tensor out.
            strict: whether tensors that the model does not have are an error.
            shards: tensors of which this rank has a part.

        Raises:
            BindingError: tensors are missing, unexpected, or of another shape or type; all of them are listed.
        """
        from spyre_mlir.frontend import bind

        def bound(model: CompiledModel) -> CompiledModel:
            return model.bind(source, buffers, rename=rename, strict=strict, shards=shards)

        made, static = copy(self), self._static
        made._apart = {}
        made._program = bind(self._program, source, buffers, rename=rename, strict=strict, shards=shards)
        made._made = OrderedDict((key, bound(model)) for key, model in self._made.items())
        made._buckets = {size: bound(model) for size, model in self._buckets.items()}
        if static is not None:
            made._static = lambda args, kwargs: bound(static(args, kwargs))
        return made

    def mlir(self, level: str = LEVELS[0], *, generic: bool = False, locations: bool = False) -> str:
        """Text of the aten level, with symbols; the levels below it are those of a specialisation.

        Raises:
            InputError: there is no such level, or it has no symbols.
        """
        if check_level(level) != LEVELS[0]:
            sizes = ", ".join(f"{name}=…" for name in self.symbols)
            raise InputError(f"the level {level} has no symbols", hint=f"specialize({sizes}).mlir({level!r})")
        return module_text(self._program.module, generic=generic, locations=locations)

    def specialize(self, **sizes: int) -> CompiledModel:
        """Return the compiled model for these values of the symbols.

        Raises:
            InputError: a symbol is unknown or has no value, or a value is out of range or violates a guard.
        """
        return self._at(sizes, lambda: self._build(specialized(self._program, sizes)))

    def compiled_for(self, *args: Any, **kwargs: Any) -> CompiledModel:
        """Return the compiled model for the sizes of a call.

        Raises:
            InputError: the sizes contradict each other, are out of range, or violate a guard.
        """
        from spyre_mlir.frontend import sizes_of_call

        sizes, static = sizes_of_call(self._program, args, kwargs), self._static
        if (known := self._apart.get(_key(sizes))) is not None:
            return known
        if static is not None and self._is_apart(sizes):
            return self._at(sizes, lambda: static(args, kwargs))
        return self.specialize(**sizes)

    def _is_apart(self, sizes: Mapping[str, int]) -> bool:
        """Return whether torch treats one of these sizes apart, so that the program with symbols has it not."""
        return any(value in _SPECIAL and value not in self.symbols[name] for name, value in sizes.items())

    def _at(self, sizes: Mapping[str, int], make: Callable[[], CompiledModel]) -> CompiledModel:
        """The specialisation for these sizes, made if it is not at hand."""
        key = _key(sizes)
        known = self._made.pop(key, None)
        with paused_collector():  # which counts what is made in a block, less what is freed there
            self._made[key] = found = make() if known is None or known.replaced is not None else known
            while len(self._made) > self._kept:
                self._made.popitem(last=False)
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program of a bucket, or the specialisation for these inputs, and makes it first if need be."""
        from spyre_mlir.frontend import untraced

        return untraced(self._call, args, kwargs)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        if self._buckets:
            outputs = self._padded(args, kwargs)
            if outputs is not None:
                return outputs
        return self.compiled_for(*args, **kwargs)(*args, **kwargs)

    def _padded(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the program of a bucket gives; None if there is no such bucket, or it does not stand for the call.

        Padding that is infinite makes outputs no numbers, and zeros of padding may make indices of entries that are
        not there, as `i - 1` does: the proof of a bucket says nothing of either.
        """
        from spyre_mlir.frontend import first_elements, has_gaps, padded_inputs, sizes_of_call

        sizes = sizes_of_call(self._program, args, kwargs)
        ((symbol, size),) = sizes.items()
        bucket = next((n for n in self._buckets if n >= size), None)
        if bucket is None or size not in self.symbols[symbol]:
            return None
        SpecializeShapesPass(sizes).check(self._program.module)
        self._check_places(args, kwargs, sizes)
        more_args, more_kwargs = padded_inputs(self._program, args, kwargs, {symbol: bucket})
        try:
            padded = self._buckets[bucket](*more_args, **more_kwargs)
        except NoSuchPlaceError:  # the caller's indices have been checked
            return None
        outputs = first_elements(self._program, padded, sizes)
        return None if has_gaps(outputs) else outputs

    def _check_places(self, args: tuple[Any, ...], kwargs: dict[str, Any], sizes: Mapping[str, int]) -> None:
        """Refuses indices of entries that only padding has."""
        from spyre_mlir.frontend import shown_as_numpy

        main, names = functions(self._program.module)[0], [a.name for a in self._program.arguments]
        leaves = self._program.leaves(args, kwargs)
        tensors: dict[str, Any] = dict(self._program.values)
        tensors |= {w.name: leaf for w, leaf in zip(self._program.input_leaves, leaves, strict=True)}

        def values(number: int) -> Any:
            tensor = tensors.get(names[number])
            return None if tensor is None else shown_as_numpy(tensor)

        check_places(main, values, sizes)

    def save(self, directory: str | Path) -> Path:
        """Write the program as torch exported it, with its tensors as they are now, and what was lowered so far.

        The loaded model lowers for new sizes as this one does. For sizes that torch treats apart, as 1, it has what
        this one has compiled, and no more; not so where the model writes to its buffers.

        Args:
            directory: made, or replaced if it is a directory of a compiled model or empty.

        Raises:
            InputError: the directory holds something else, a tensor has no values, or torch cannot write the program.
        """
        from spyre_mlir.frontend import exported_now

        path, made = Path(directory), self._made.items()
        apart = {**self._apart, **{sizes: program for sizes, program in made if self._is_apart(dict(sizes))}}
        saved = ToSave(
            exported_now(self._program),
            self._kept,
            choices_of(self._options),
            self._buckets,
            [program for sizes, program in made if sizes not in apart],
            {} if self._writes_its_own else apart,
            self._lowered,
        )
        write_sizes(path, saved)
        return path

    @property
    def _writes_its_own(self) -> bool:
        """Whether calls write to tensors of the model, which a bundle of one program could not share with others."""
        return any(argument.mutated and argument.kind != "input" for argument in self._program.arguments)

    def call_options(self) -> dict[str, Any]:
        """Return the options that are about calls, by name."""
        return self._options.calls()

    def accuracy(self, *args: Any, **kwargs: Any) -> Accuracy:
        """Same as `CompiledModel.accuracy`, for the sizes of these inputs."""
        return self.compiled_for(*args, **kwargs).accuracy(*args, **kwargs)

    def verify(self, *args: Any, tolerance: float = 1e-4, **kwargs: Any) -> Verification:
        """Same as `CompiledModel.verify`, for the sizes of these inputs."""
        return self.compiled_for(*args, **kwargs).verify(*args, tolerance=tolerance, **kwargs)


def _key(sizes: Mapping[str, int]) -> SizesKey:
    return tuple(sorted(sizes.items()))

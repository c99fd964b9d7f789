"""A model in which data decides sizes: programs of known sizes, with steps of the host between them.

Decision: docs/decisions/0149-programs-are-divided-where-data-decides-sizes.md
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from typing_extensions import TypeIs

from spyre_mlir.compiled import CompiledModel
from spyre_mlir.debug.named_inputs import bound_inputs, check_names
from spyre_mlir.dynamic.exported import choices_of
from spyre_mlir.dynamic.model import DynamicModel
from spyre_mlir.errors import InputError, UnsupportedError
from spyre_mlir.options import CompileOptions
from spyre_mlir.parted.bounded import Bounding
from spyre_mlir.parted.files import SavedModel, write_parts
from spyre_mlir.parted.part import Compile, Part, Run
from spyre_mlir.pickling import PickledAsSaved
from spyre_mlir.pipeline import LEVELS, check_level
from spyre_mlir.report import Verification, VerifiedLevel
from spyre_mlir.sizes import counted
from spyre_mlir.text.no_module import missing
from spyre_mlir.text.notebook import ShownAsText
from spyre_mlir.transforms.specialize_shapes import check_guards, check_sizes
from spyre_mlir.transforms.utils.host_fallback import HostStep, tell_host_steps

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from xdsl.dialects.builtin import TensorType
    from xdsl.ir import Attribute

    from spyre_mlir.frontend.data_sizes.calls import DividedCall
    from spyre_mlir.frontend.data_sizes.dividing import DividedProgram, Piece, SizingCall

log = logging.getLogger(__name__)

_GIVE = "give it by --input {name}=FILE.npy"
_REASON = "data decides the size of its result"


class PartedModel(ShownAsText, PickledAsSaved):
    """A model in which values decide sizes: `nonzero`, boolean indices, `unique`, slices that `item()` ends.

    The host runs what makes a size. The parts between are programs with this size as a symbol, which are specialised
    for the sizes of a call; those that were not called for longest are dropped.
    """

    def __init__(
        self,
        model: Any,
        exported: Any,
        program: DividedProgram,
        compile: Compile,
        options: CompileOptions,
        *,
        specializations: int,
        made: Mapping[int, CompiledModel] | None = None,
        masked: Collection[int] = (),
        apart: Collection[int] = (),
        bounding: Bounding | None = None,
    ) -> None:
        """Compiles the parts.

        Args:
            model: what the program was made from, which verification runs.
            exported: the program as torch exported it, which `save` writes.
            program: the divided program.
            compile: compiles a model for example inputs and symbols.
            options: what it is compiled with; they say whether the host may run what makes a size.
            specializations: how many programs for single sizes are kept of each part.
            made: parts of known sizes, or with a bound, that are compiled already, by number.
            masked: those of them with masks of padding.
            apart: those of them for sizes that no other value has.
            bounding: compiles parts once for all sizes up to a bound, if there is one.

        Raises:
            UnsupportedError: a part with known sizes cannot be compiled, or host steps are refused.
        """
        from spyre_mlir.frontend.data_sizes.dividing import Piece

        self.name = name = program.name
        self._model = model
        self._exported = exported
        self._program = program
        self._options = options
        self._kept = specializations
        pieces = [step for step in program.steps if isinstance(step, Piece)]
        self._parts = [Part(p, f"{name}_{n}", compile, specializations) for n, p in enumerate(pieces)]
        tell_host_steps(self.host_steps, options.host_fallback)
        for number, part in enumerate(self._parts):
            known = (made or {}).get(number)
            if known is None:
                part.prepare(bounding)
            elif bounding is not None and part.has_size_of_data:
                part.bounded = bounding.read(part.piece, part.name, known, number in masked, number in apart)
            else:
                part.made = known

    def __repr__(self) -> str:
        """One line: the name, and how many parts, host steps and programs there are."""
        parts, programs = counted(len(self._parts), "part"), counted(len(self.programs), "program")
        return f"<PartedModel {self.name}: {parts}, {programs}>"

    @property
    def parts(self) -> tuple[CompiledModel | DynamicModel | None, ...]:
        """The parts in order: with symbols, or all sizes known, or with a bound.

        None stands for a part that is compiled for each size.
        """
        return tuple(part.made if part.bounded is None else part.bounded.program for part in self._parts)

    @property
    def host_steps(self) -> tuple[HostStep, ...]:
        """Steps of the host whose results have a size, or are a number, that data decides."""
        from spyre_mlir.frontend.data_sizes.branches import makes_size
        from spyre_mlir.frontend.data_sizes.calls import place_of_call

        steps = [step for step in self._program.steps if not _is_piece(step) and makes_size(step.node)]
        return tuple(HostStep(op, _REASON, place) for op, place in map(place_of_call, steps))

    @property
    def programs(self) -> tuple[CompiledModel, ...]:
        """The programs of single sizes at hand, part by part."""
        return tuple(program for part in self._parts for program in part.programs())

    def mlir(self, level: str = LEVELS[0], *, generic: bool = False, locations: bool = False) -> str:
        """Text of the aten level: a module for each part, with symbols, and a line for each host step between.

        Raises:
            InputError: there is no such level, or it has no symbols.
        """
        if check_level(level) != LEVELS[0]:
            raise InputError(f"the level {level} has no symbols", hint=f"ask one of .programs for .mlir({level!r})")
        return "\n".join(
            f"// the host: {step}" if isinstance(step, str) else _text_of(step, generic=generic, locations=locations)
            for step in self._steps()
        )

    def summary(self) -> str:
        """Return a line for each step: the calls of the host that make sizes, and how each part is compiled."""
        lines = [
            f"host: {step}" if isinstance(step, str) else f"device: {step.name} is compiled {step.described()}"
            for step in self._steps(checks=False)
        ]
        return "\n".join(lines)

    def _steps(self, *, checks: bool = True) -> Iterator[Part | str]:
        """The parts in order, and the calls of the host between them as text, with or without checks."""
        from spyre_mlir.frontend.data_sizes.branches import makes_size
        from spyre_mlir.frontend.data_sizes.calls import host_call_text

        parts = iter(self._parts)
        for step in self._program.steps:
            if _is_piece(step):
                yield next(parts)
            elif checks or makes_size(step.node):
                yield host_call_text(step)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the steps in order."""
        from spyre_mlir.frontend import untraced

        return untraced(self._call, args, kwargs)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        return self._run(args, kwargs, lambda program, inputs: program(*inputs))

    def _run(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], run: Run) -> Any:
        from spyre_mlir.frontend.data_sizes.calls import DividedCall, OtherSizesError

        call: DividedCall = DividedCall(self._program, args, kwargs)
        check_sizes(self._program.sizes.ranges, call.sizes)
        check_guards(self._program.guards, call.sizes)
        try:
            return self._run_steps(call, run)
        except OtherSizesError as other:
            log.info("the host runs a call of %s, for which it does not hold that %s", self.name, other)
            return call.whole_on_host(self._exported)

    def _run_steps(self, call: DividedCall, run: Run) -> Any:
        parts = iter(self._parts)
        for step in self._program.steps:
            if not _is_piece(step):
                call.run_on_host(step)
                continue
            part = next(parts)
            inputs = call.inputs_of(part.piece)
            call.keep(part.piece, part.run(inputs, run))
        return call.results()

    def run_arrays(self, given: Mapping[str, NDArray[Any]], seed: int = 0) -> Mapping[str, NDArray[Any]]:
        """Run a call by name, as `spyre-run` does.

        Args:
            given: values of inputs, by name; of the numbers that the inputs take, or such as convert to them.
            seed: of random values for inputs without a given one, and of torch's generator.

        Returns:
            Tensors and numbers among the results, by their path.

        Raises:
            InputError: a value is of no input or does not fit one, or an input with a symbol is not given.
            UnsupportedError: an input is complex.
        """
        from spyre_mlir.frontend import seed_generator
        from spyre_mlir.frontend.calling.named_calls import arrays_by_name, call_of_arrays, types_by_name

        program = self._program
        types = types_by_name(program.inputs, program.sizes)
        check_names(given, [name for name, _ in types])
        for name, kind in types:
            if name not in given and not cast("TensorType[Attribute]", kind).has_static_shape():
                raise InputError(f"the input '{name}' has a size of the caller's choice", hint=_GIVE.format(name=name))
        arrays = bound_inputs(types, given, {}, (), seed)
        args, kwargs = call_of_arrays(program.inputs, program.call_spec.in_spec, [a for a in arrays if a is not None])
        seed_generator(seed)
        return arrays_by_name(program.call_spec.out_spec, self(*args, **kwargs))

    def verify(self, *args: Any, tolerance: float = 1e-4, **kwargs: Any) -> Verification:
        """Compare every level of every part with torch, and the results of the whole with the model's.

        Args:
            *args: positional inputs.
            tolerance: the largest error that counts as equal.
            **kwargs: keyword inputs.
        """
        from spyre_mlir.frontend import to_numpy
        from spyre_mlir.frontend.data_sizes.calls import as_it_was, copied, flat, whole_results

        found = list[Verification]()

        def verified(program: CompiledModel, inputs: tuple[Any, ...]) -> Any:
            found.append(program.verify(*inputs, tolerance=tolerance))
            return program.in_exact_numerics()(*inputs)

        with as_it_was(self._program):
            own = copied(args, kwargs)
            got = flat([self._run(*own, verified), own])
        with as_it_was(self._program):
            own = copied(args, kwargs)
            wanted = [*whole_results(self._model, *own), *flat(own)]
        levels = [
            VerifiedLevel(f"part {n}: {level.level}", level.error, level.fault, level.explained)
            for n, one in enumerate(found)
            for level in one.levels
        ]
        different = [
            f"a result is {tuple(a.shape)}, torch gives {tuple(b.shape)}"
            for a, b in zip(got, wanted, strict=True)
            if a.shape != b.shape
        ]
        whole = different[0] if different else [to_numpy(a) for a in got]
        levels.append(VerifiedLevel.of("the whole", whole, [to_numpy(b) for b in wanted]))
        divergence = next((one.divergence for one in found if one.divergence is not None), None)
        return Verification(tuple(levels), tolerance, divergence, tuple(flip for one in found for flip in one.flips))

    def save(self, directory: str | Path, *, host_weights: bool | None = None) -> Path:
        """Write the program as torch exported it, with its tensors as they are, and bundles of parts.

        These are parts of known sizes, and those with a bound.

        Programs for the sizes of calls are not written: a call of the loaded model makes them, or the cache has them.

        Args:
            directory: made, or replaced if it is a directory of a compiled model or empty.
            host_weights: as for `CompiledModel.save`, of the bundles.

        Raises:
            InputError: the directory holds something else, or torch cannot write the program.
        """
        path = Path(directory)
        bounded = {n: part.bounded for n, part in enumerate(self._parts) if part.bounded is not None}
        masked = tuple(n for n, part in bounded.items() if part.piece.is_masked)
        apart = tuple(n for n, part in bounded.items() if part.apart)
        saved = SavedModel(self.name, self._kept, choices_of(self._options), {}, masked, apart)
        parts = {n: part for n, part in enumerate(self.parts) if isinstance(part, CompiledModel)}
        write_parts(path, saved, self._exported, parts, host_weights)
        return path

    def call_options(self) -> dict[str, Any]:
        """Return the options that are about calls, by name."""
        return self._options.calls()

    def __getattr__(self, name: str) -> Any:
        """Refuse by name what a compiled model has of a single program.

        Raises:
            UnsupportedError: a compiled model has an attribute of this name.
            AttributeError: it has none either.
        """
        if name.startswith("_") or not hasattr(CompiledModel, name):
            raise missing(type(self).__name__, name)
        raise UnsupportedError(
            f"{name} is of one program, and data divides {self.name} into {len(self._parts)} parts with host steps",
            hint=f"call the model, and ask one of .programs for {name}",
        )


def _text_of(part: Part, *, generic: bool, locations: bool) -> str:
    """The aten level of a part; a line that says how it is compiled, unless its sizes are known or symbols."""
    made = part.made if part.bounded is None else part.bounded.program
    note = [] if part.bounded is None and made is not None else [f"// {part.name} is compiled {part.described()}"]
    text = [] if made is None else [made.mlir(LEVELS[0], generic=generic, locations=locations)]
    return "\n".join(note + text)


def _is_piece(step: Piece | SizingCall) -> TypeIs[Piece]:
    from spyre_mlir.frontend.data_sizes.dividing import Piece

    return isinstance(step, Piece)

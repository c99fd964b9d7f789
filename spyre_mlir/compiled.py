"""A compiled model: a callable that runs its bundle, with methods to inspect it.

Decision: docs/decisions/0001-what-a-call-runs.md
Decision: docs/decisions/0062-infinities-have-to-agree.md
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray
from typing_extensions import override

from spyre_mlir.backend.directory import WriteOptions, split_module, write_bundle
from spyre_mlir.cache.lower import lower_once
from spyre_mlir.choices import Numerics
from spyre_mlir.collector import paused_collector
from spyre_mlir.debug.bisect import BisectSession
from spyre_mlir.debug.divergence import Divergence
from spyre_mlir.debug.error_walk import KernelError, kernel_errors, launches_of
from spyre_mlir.debug.stored_runs import launch_probes, own_draws, stored_program
from spyre_mlir.dialects.superdsc.codec.describe import describe
from spyre_mlir.errors import InputError, frames_of_ours
from spyre_mlir.machine.bundle.host_program import DeviceProgram, run_keeping, run_program
from spyre_mlir.machine.bundle.kept_tensors import CardResult, KeptTensor
from spyre_mlir.machine.bundle.probes import observe_function, pick
from spyre_mlir.machine.faults import FaultLog
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.machine.options import MachineOptions
from spyre_mlir.machine.overflows import DL16OverflowWarning, Overflow, tell_overflows
from spyre_mlir.options import CompileOptions
from spyre_mlir.pickling import PickledAsBundle
from spyre_mlir.pipeline import LEVELS, Lowered, check_level
from spyre_mlir.report import Accuracy, Verification, VerifiedLevel
from spyre_mlir.report.accuracy.attempts import Attempt, attempts
from spyre_mlir.report.accuracy.judging import judged
from spyre_mlir.report.inspection import InspectedProgram
from spyre_mlir.runtime.called_bundle import CalledBundle, WrittenBundle
from spyre_mlir.runtime.larger_integers import CalledExactly
from spyre_mlir.runtime.one_at_a_time import OneAtATime
from spyre_mlir.runtime.residence import CARD
from spyre_mlir.text.no_module import IsNoModule
from spyre_mlir.transforms.loop_to_kernel.precision_loss import would_be_kept
from spyre_mlir.universe import make_context

if TYPE_CHECKING:
    from spyre_mlir.frontend import Argument, Program, Tensor

Array = NDArray[Any]
BUNDLE = "bundle"


class CompiledModel(InspectedProgram, PickledAsBundle, CalledExactly, IsNoModule):
    """A model on the hardware model: calling it runs its bundle, from disk once its files are asked for.

    Attributes:
        log: the faults and overflows of the last call, and which ops depend on settings that are not published.
    """

    def __init__(
        self, program: Program, lowered: Lowered, options: CompileOptions, bundle: CalledBundle | None = None
    ) -> None:
        """Keeps the program at every level.

        Args:
            program: what was compiled.
            lowered: the program at every level.
            options: of the compilation and of calls.
            bundle: what calls run, if there are files already; else they are written when they are asked for.
        """
        from spyre_mlir.frontend import GivenValues, HostValues

        super().__init__(program, lowered, options)
        self._values, self._given_values = HostValues(program), GivenValues(program)
        self._bundle = WrittenBundle(lowered, self._values, self._changing()) if bundle is None else bundle
        self._told, self._turns = False, OneAtATime()

    @property
    def replaced(self) -> str | None:
        """The first tensor of the model that has been replaced since compilation, as by ``model.half()``, if any."""
        return self._values.replaced()

    @property
    def changed(self) -> tuple[str, ...]:
        """Other changes of the model since, as of modes, modules and hooks; a call warns of each once."""
        return self._values.changed()

    def bind(
        self,
        source: Any,
        buffers: Any = None,
        *,
        rename: Callable[[str], str | None] | None = None,
        strict: bool = True,
        shards: Mapping[str, int | Callable[[Any, int, int], Any]] | None = None,
    ) -> CompiledModel:
        """Return the same program with other weights; nothing is compiled again.

        Args:
            source: a directory or file of a checkpoint, a state dict, a module, or an exported program. Tensors of
                files stay there until they are used.
            buffers: where tensors come from that the source lacks, as the model with values. Buffers that no
                checkpoint has are otherwise made by their modules, built again from their configuration.
            rename: gives the model's name for a name of the source; None leaves the tensor out.
            strict: whether tensors that the model does not have are an error.
            shards: tensors of which the source has the whole and this rank a part: by name, with ``*`` for anything,
                the dimension that is divided among the ranks, or a function of tensor, rank and number of ranks.

        Raises:
            BindingError: tensors are missing, unexpected, or of another shape or type; all of them are listed.
            InputError: shards are named, and this process has no process group.
        """
        from spyre_mlir.frontend import bind

        program = bind(self._program, source, buffers, rename=rename, strict=strict, shards=shards)
        return CompiledModel(program, self._lowered, self._options)

    def save(self, directory: str | Path, *, host_weights: bool | None = None, levels: bool = False) -> Path:
        """Write the bundle directory, all or nothing.

        Args:
            directory: made, or replaced if it is a bundle directory or empty.
            host_weights: whether weights are also written as the model has them: about twice the bytes, and needed to
                run the directory in exact numerics. If not said, those bound from files are not.
            levels: whether the levels are also written as text, for ``spyre-run --bisect``.

        Raises:
            InputError: the directory holds something else, or cannot be written.
        """
        wide = not self._program.stored if host_weights is None else host_weights
        return self._in_calls()._write(Path(directory), host_weights=wide, levels=levels, durable=True)

    def write_for_pickle(self, directory: Path) -> None:
        """Write the bundle with its levels, and the model's own weights if calls compute on them."""
        wide = not self._program.stored or self._options.numerics != "device"
        self._in_calls()._write(directory, host_weights=wide, levels=True, durable=False)

    def _write(self, path: Path, *, host_weights: bool, levels: bool, durable: bool) -> Path:
        options = WriteOptions(self._changing(), host_weights, self._lowered.modules if levels else {}, durable)
        write_bundle(path, self._lowered.bundle(), self._values.shared(), options)
        return path

    def _in_calls(self) -> CompiledModel:
        """The program for files, which know nothing of what follows from weights that calls give: they compute it."""
        make = self._program.in_calls
        return self if make is None else self._compiled_again(self._options, make())

    def call_options(self) -> dict[str, Any]:
        """Return the options that are about calls, by name."""
        return self._options.calls()

    def _changing(self) -> set[str]:
        return {a.name for a in self._program.arguments if a.mutated}

    def bundle_directory(self) -> Path:
        """Directory of the files that calls run from now on; written again after a weight has been modified."""
        return self._bundle.directory()

    def reload(self) -> None:
        """Make the next call read the files again."""
        for name in self._values if not self._program.stored else ():
            CARD.forget(self._values.tensor(name))
        self._bundle.drop()

    @override
    def _compiled_again(self, options: CompileOptions, program: Program | None = None) -> CompiledModel:
        """The same program with other options, or in another form."""
        program = program or self._program
        made = lower_once(program.module, make_context(options.spec), options)
        made.free_at_once(program.module)
        return CompiledModel(program, made, options)

    @override
    def _call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        from spyre_mlir.frontend import finish_call, work_of_a_rank

        self.log, self._called = FaultLog(self._options.on_fault), True
        # The first call makes the plans of all launches, and finds the memory of the results.
        with work_of_a_rank(), paused_collector() if self._bundle.resident.plans.empty else nullcontext():
            tensors = self._tensors(args, kwargs, self._options.numerics)
            changing = {index: tensors[name] for index, name in self._program.mutations.items()}
            results = self._run_tensors(tensors, self._options.numerics, self.log, changing)
            self._tell_overflows()
            arrays = [self._read(n, r, changing) for n, r in enumerate(results)]
            returned = finish_call(self._program, arrays, args, kwargs)
            for number, result in enumerate(results):
                if isinstance(result, CardResult) and (tensor := changing[number]) is not None:
                    CARD.wrote(tensor, result, arrays[number])
            return returned

    def _read(self, number: int, result: Array | CardResult, changing: Mapping[int, Tensor | None]) -> Array | None:
        """The numbers of a result; None if only the card is to have them."""
        if not isinstance(result, CardResult):
            return result
        tensor = changing[number]
        stays = tensor is not None and CARD.is_held(tensor) and number not in self._program.output_leaves
        return None if stays else result.read()

    def _tell_overflows(self) -> None:
        """Says once what went beyond DLFloat16, or refuses every time, before anything of the caller's is written."""
        tell_overflows(self.log.overflows, self._options.on_overflow, curable=self._is_curable, tell=self._warn)

    def _warn(self, text: str) -> None:
        if not self._told:
            self._told = True
            warnings.warn(text, DL16OverflowWarning, stacklevel=frames_of_ours())

    def verify(self, *args: Any, tolerance: float = 1e-4, **kwargs: Any) -> Verification:
        """Run the program at every level and from disk, and compare the results with torch.

        Where a level differs, it runs again beside the level above, and the first op that differs is named. A level
        that faults counts as one that differs.

        Args:
            args: inputs, as for a call.
            tolerance: largest error, max|a - b| / max|b|, that counts as equal.
            kwargs: keyword inputs, as for a call.
        """
        from spyre_mlir.frontend import torch_reference

        inputs, expected = self._inputs(args, kwargs), torch_reference(self._program, args, kwargs)
        runs = {level: partial(self._run, level, inputs) for level in LEVELS}
        runs[BUNDLE] = partial(self._run_bundle, args, kwargs, "exact")
        self._bundle.stored()  # from disk; files that cannot be read are an error, not a level that differs
        found = {level: VerifiedLevel.run(run, level == BUNDLE) for level, run in runs.items()}
        outcome = judged(self._program.module, found, expected, inputs, tolerance)
        return outcome if outcome else replace(outcome, divergence=self._divergence(outcome, inputs))

    def _divergence(self, outcome: Verification, inputs: Sequence[Array]) -> Divergence | None:
        """The first op that differs between the first level that is wrong and the one above it."""
        names = [level.level for level in outcome.levels]
        first = next(n for n, level in enumerate(outcome.levels) if not level.agrees(outcome.tolerance))
        walk = BisectSession(self._lowered.modules, inputs, outcome.tolerance)
        if first == 0:
            from spyre_mlir.frontend import torch_values

            flat = replace(walk, modules={LEVELS[0]: self._program.module})
            return flat.unlike_torch(torch_values(self._program.module, inputs))
        return walk.find(names[first], names[first - 1], stored_program(self._bundle.stored()))

    def probe(self, name: str, *args: Any, numerics: Numerics = "exact", **kwargs: Any) -> Array:
        """Return the value that one op produces.

        Args:
            name: ``sdsc_3`` is the result of that file of the bundle; ``%gelu`` the value that the text of a level has
                under this name, where ``spyre.loop:%8`` says which level, and none means ``aten``.
            args: inputs, as for a call.
            numerics: of the run; levels above the files have exact numerics alone.
            kwargs: keyword inputs, as for a call.

        Raises:
            InputError: there is no such name, and the message lists those there are; or no such numerics.
        """
        level, _, value = name.rpartition(":")
        if not level and not value.startswith("%"):
            seen = launch_probes(self._bundle.stored(), self._inputs(args, kwargs), MachineOptions(numerics=numerics))
            return pick(seen, value).values
        if numerics != "exact":
            raise InputError(f"{name} is of a level, which has no {numerics} numerics", hint="name a file, as sdsc_3")
        module = self._lowered.modules[check_level(level or LEVELS[0])]
        return pick(observe_function(module, self._inputs(args, kwargs), own_draws()), value).values

    def accuracy(self, *args: Any, **kwargs: Any) -> Accuracy:
        """Run the bundle in device numerics, and compare the results with the model in double precision.

        `launches`, and what is printed, run it once more beside exact numerics; `tried` compiles it with changes.

        Args:
            args: inputs, as for a call.
            kwargs: keyword inputs, as for a call.
        """
        from spyre_mlir.frontend import double_reference

        expected = double_reference(self._program, args, kwargs)
        found = Accuracy.of(self._run_bundle(args, kwargs, "device"), expected)
        inputs = self._inputs(args, kwargs)

        def walk() -> list[KernelError]:
            stored, (program, bundle, files) = self._bundle.stored(), split_module(self._module(LEVELS[-1]))
            launches = launches_of(bundle, lambda name: describe(files[name]), program)
            return kernel_errors(stored_program(stored), inputs, launches, stored.manifest.extents)

        def measure(options: CompileOptions) -> tuple[float, float]:
            other = self._compiled_again(options)
            return other.accuracy(*args, **kwargs).worst, other.timeline().kernels_us

        def attempt(worst: Sequence[KernelError]) -> Sequence[Attempt]:
            return attempts(self._options, found.worst, self.timeline().kernels_us, measure, worst)

        return replace(found, walk=walk, curable=self._is_curable, attempt=attempt)

    def _is_curable(self, found: KernelError | Overflow) -> bool:
        """Return whether the error of a launch, or an overflow, goes away with `keep_float32`."""
        return not self._options.keep_float32 and would_be_kept(self._module(LEVELS[0]), found.function, found.line)

    def _inputs(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Array]:
        from spyre_mlir.frontend import shown_as_numpy

        given = self._given(args, kwargs)
        return [self._values[name] if value is None else shown_as_numpy(value) for name, value in given.items()]

    _without_values = "bind them: compiled.bind(the directory of a checkpoint, a state dict or a model)"

    def _held(self) -> Collection[str]:
        """Weights that the files have in device form, though nobody has them as the model does."""
        return ()

    def _given(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], held: Collection[str] = ()
    ) -> dict[str, Tensor | None]:
        """Every argument of the program by name: the caller's tensors, what follows from them, None for the model's."""
        given = dict(zip((a.name for a in self._program.inputs), self._program.flatten(args, kwargs), strict=True))
        self._values.check(held, hint=self._without_values)
        given |= self._given_values.of(given)
        return {a.name: given.get(a.name) for a in self._program.arguments}

    def _run_bundle(self, args: Sequence[Any], kwargs: Mapping[str, Any], numerics: Numerics) -> list[Array]:
        """Runs the bundle for their results alone; nothing of the caller's is written."""
        results = self._run_tensors(self._tensors(args, kwargs, numerics), numerics)
        return [r.read() if isinstance(r, CardResult) else r for r in results]

    def _tensors(self, args: Sequence[Any], kwargs: Mapping[str, Any], numerics: Numerics) -> dict[str, Tensor | None]:
        """Every argument by name; None for a weight that is read from the files, in device numerics."""
        given = self._given(args, kwargs, self._held() if numerics == "device" else ())
        filed = (
            self._bundle.prepared()[0].weight_names() if numerics == "device" and self._program.stored else set[str]()
        )
        return {
            name: self._values.tensor(name) if value is None and name not in filed else value
            for name, value in given.items()
        }

    def _run_tensors(
        self,
        tensors: Mapping[str, Tensor | None],
        numerics: Numerics,
        log: FaultLog | None = None,
        keep: Collection[int] = (),
    ) -> list[Array | CardResult]:
        """Runs the bundle; weights and what calls write stay on the card."""
        bundle, program = self._bundle.prepared()
        program = program if log is not None else replace(program, executor=own_draws())
        filed = bundle.weight_names() if numerics == "device" else set[str]()
        inputs = [self._on_card(a, tensors[a.name], filed=a.name in filed) for a in self._program.arguments]
        options = MachineOptions(numerics=numerics, on_fault="raise" if log is None else log.on_fault)
        return run_keeping(program, inputs, keep, options, self._bundle.resident, log)

    def _on_card(self, argument: Argument, tensor: Tensor | None, *, filed: bool) -> Array | KeptTensor | None:
        """An argument for the machine; of weights in files `finds_changes` has looked at the elements."""
        from spyre_mlir.frontend import copied_as_numpy

        if tensor is None:
            return None
        own = argument.kind != "input" or argument.name in self._program.recipes
        lasts = own or argument.mutated or CARD.lasts(tensor)
        return CARD.of(tensor, contents=not filed) if lasts else copied_as_numpy(tensor)

    def _run(self, level: str, inputs: list[Array]) -> list[Array]:
        module = self._lowered.modules[level]
        if level != LEVELS[-1]:
            return run_function(module, inputs, host=own_draws())
        program, bundle, files = split_module(module)
        device = DeviceProgram(program, bundle, lambda name: describe(files[name]), executor=own_draws())
        return run_program(device, inputs)

"""`spyre-compile`: a saved PyTorch program becomes a bundle directory, or several in one where data decides sizes."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from spyre_mlir.choices import HostFallback
from spyre_mlir.cli.compiling import cache as compile_cache
from spyre_mlir.cli.compiling import compare as compile_compare
from spyre_mlir.cli.compiling import explain as compile_explain
from spyre_mlir.cli.compiling import graphs as compile_graphs
from spyre_mlir.cli.compiling import info as compile_info
from spyre_mlir.cli.flags.dims import add_dims, read_dims
from spyre_mlir.cli.flags.option_flags import add_option, chosen_options, option_flags
from spyre_mlir.cli.support.completion import offer
from spyre_mlir.cli.support.endings import ToolArgumentParser, add_verbosity, guarded, log_to_stderr
from spyre_mlir.cli.support.memory_limit import add_memory_limit, limit_memory
from spyre_mlir.cli.support.output import STDOUT, PendingOutput, json_place
from spyre_mlir.cli.translate_ktir import TARGETS, deliver, pending_ktir
from spyre_mlir.errors import DataSizesError, InputError

if TYPE_CHECKING:
    from spyre_mlir.cli.support.watch import PassWatch
    from spyre_mlir.compiled import CompiledModel
    from spyre_mlir.frontend import Program
    from spyre_mlir.options import CompileOptions
    from spyre_mlir.pipeline import Lowered

log = logging.getLogger("spyre_mlir.cli.compile")

# What a shell offers for --emit; the levels are those of the pipeline, which is too large to load for a flag.
OFFERED = ("aten", "spyre.loop", "spyre.kernel", "superdsc", "model-explorer", "dot", "python")
# Options that say what a bundle directory holds or what is told of it: with anything else they would mean nothing.
_BUNDLE_OPTIONS = (
    "weights",
    "buffers",
    "ignore_unexpected",
    "host_weights",
    "device_weights_only",
    "levels",
    "report",
    "rival",
    "json",
)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = ToolArgumentParser(prog="spyre-compile", description="Compile a saved PyTorch program for Spyre.")
    parser.add_argument("model", metavar="MODEL.pt2", nargs="?", help="a program saved by torch.export.save")
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="the bundle directory to write; with --emit and --target=ktir a file, and with --split a directory of "
        "files; without it and --emit, the report is printed and no more",
    )
    emit = parser.add_argument(
        "--emit",
        metavar="LEVEL",
        help="print a level instead, or write it to the file -o: aten, spyre.loop, spyre.kernel, superdsc; or the "
        "graph of the program, as model-explorer (all levels), dot or dot:LEVEL (Graphviz); or python, host code that "
        "runs the bundle beside it",
    )
    offer(emit, OFFERED)
    _add_choices(parser)
    parser.add_argument("--dump-dir", metavar="DIR", help="write the IR after every pass to DIR/NN-pass.mlir")
    parser.add_argument(
        "--mlir-pass-pipeline-crash-reproducer",
        metavar="FILE",
        help="if a pass fails, write the module before it to this file, for spyre-opt --run-reproducer",
    )
    _add_bundle_options(parser)
    compile_info.add_flags(parser)
    compile_explain.add_flags(parser)
    compile_compare.add_flags(parser)
    compile_cache.add_flags(parser)
    add_memory_limit(parser)
    add_verbosity(parser)
    arguments = parser.parse_args(argv)
    _check(parser, arguments)
    return arguments


def _check(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """Refuses arguments that mean nothing together."""
    for other in (compile_cache, compile_compare):
        if other.wanted(arguments):
            other.check(parser, arguments)
            return
    if arguments.model is None:
        parser.error("the following arguments are required: MODEL.pt2")
    if compile_explain.counts_cards(arguments):
        compile_explain.check_cards(parser, arguments, _BUNDLE_OPTIONS)
        return
    if compile_info.wanted(arguments):
        compile_info.check(parser, arguments)
        return
    if compile_explain.wanted(arguments):
        compile_explain.check(parser, arguments, _BUNDLE_OPTIONS)
        return
    _check_place(parser, arguments)
    if arguments.weights is None and (arguments.buffers is not None or arguments.ignore_unexpected):
        parser.error("--buffers and --ignore-unexpected go with --weights")
    _check_bundle_options(parser, arguments)


def _check_place(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """Refuses options about a directory or a file where there is none."""
    if arguments.split and (arguments.emit is not None or arguments.target != "ktir"):
        parser.error("--split is about KTIR, and goes with --target=ktir -o DIR")
    if arguments.output is not None and arguments.dump_dir is not None:
        written, dumps = Path(arguments.output).resolve(), Path(arguments.dump_dir).resolve()
        if dumps.is_relative_to(written):
            parser.error(
                f"--dump-dir {dumps} lies in -o {written}, which is replaced as a whole; name another directory"
            )
    if arguments.output is not None or arguments.emit is not None:
        return
    if arguments.target != TARGETS[0]:
        parser.error(f"--target={arguments.target} goes with -o")
    for name in ("host_weights", "device_weights_only", "levels"):
        if getattr(arguments, name):
            parser.error(f"--{name.replace('_', '-')} is about a bundle, and goes with -o DIR")


def _check_bundle_options(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """Refuses options about a bundle where none is written."""
    if arguments.emit is not None or arguments.target != TARGETS[0]:
        for name in _BUNDLE_OPTIONS:
            if getattr(arguments, name) not in (None, False):
                parser.error(f"--{name.replace('_', '-')} is about a bundle, and goes with -o DIR alone")


def _add_choices(parser: argparse.ArgumentParser) -> None:
    """Adds what decides how a program is compiled."""
    parser.add_argument(
        "--target",
        choices=TARGETS,
        default=TARGETS[0],
        help="superdsc writes a bundle (default); ktir writes the text of a KTIR program",
    )
    parser.add_argument(
        "--split", action="store_true", help="with --target=ktir, a module per function: NAME.mlir in the directory -o"
    )
    add_dims(parser)
    for entry in option_flags():
        add_option(parser, entry)


def _add_bundle_options(parser: argparse.ArgumentParser) -> None:
    """Adds `_BUNDLE_OPTIONS`."""
    parser.add_argument(
        "--weights",
        metavar="PATH",
        help="take the weights from a checkpoint: a directory with safetensors, sharded or not, or a .safetensors, "
        ".pt2, .bin, .pt or .pth file; they are written in the card's form only",
    )
    parser.add_argument(
        "--buffers",
        metavar="PATH",
        help="with --weights, a second checkpoint, for buffers that the first lacks, as tables of rotary embeddings",
    )
    parser.add_argument(
        "--ignore-unexpected", action="store_true", help="with --weights, leave out tensors that the model lacks"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--host-weights", action="store_true", help="with --weights, also write the weights in the model's format"
    )
    form.add_argument(
        "--device-weights-only",
        action="store_true",
        help="omit the weights in the model's format; the bundle then runs in device numerics only",
    )
    parser.add_argument(
        "--levels", action="store_true", help="also write the levels as text, which spyre-run --bisect needs"
    )
    parser.add_argument(
        "--report", metavar="FILE.html", help="write a page: time by kernel and line, roofline, scratchpads, plan"
    )
    parser.add_argument(
        "--rival",
        action="store_true",
        help="also say what torch-spyre's published rules make of the program, operation by operation, here and on the "
        "page of --report; compiles once more, and plans twice",
    )
    parser.add_argument(
        "--json",
        metavar="FILE.json",
        help="write the figures of the report, as --compare reads them; - is stdout, and the rest goes to stderr",
    )


@guarded("spyre-compile")
def run(argv: Sequence[str] | None = None) -> int:
    """Compiles one program; see ``spyre-compile --help``."""
    arguments = _arguments(argv)
    log_to_stderr(arguments.verbose)
    limit_memory(arguments.memory_limit)
    with json_place(arguments.json) as arguments.json:
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    for other in (compile_cache, compile_compare):
        if other.wanted(arguments):
            return other.run(arguments)
    if compile_explain.counts_cards(arguments):
        return compile_explain.run_cards(arguments)
    if compile_info.wanted(arguments):
        return compile_info.look(arguments)
    from spyre_mlir.backend.directory import check_replaceable

    if arguments.emit is not None:
        compile_graphs.check(arguments.emit)
    elif arguments.target == "superdsc" and arguments.output is not None:
        check_replaceable(Path(arguments.output))
    for path in filter(None, (arguments.report, arguments.json)):
        PendingOutput(path)  # a file that cannot be written is refused before anything is
    return _compile(arguments)


def _compile(arguments: argparse.Namespace) -> int:
    from spyre_mlir.builders import check_no_bound
    from spyre_mlir.cli.compiling.parts import compiled_parts
    from spyre_mlir.compiled import CompiledModel
    from spyre_mlir.dynamic.programs import with_sizes
    from spyre_mlir.pipeline import LEVELS, lower_to_ktir
    from spyre_mlir.progress import progress
    from spyre_mlir.text.render import module_text
    from spyre_mlir.universe import make_context

    options, sizes = chosen_options(arguments), read_dims(arguments.dim)
    ktir = arguments.target == "ktir" and arguments.emit is None
    if ktir:
        options = replace(options, regions=False, in_place=False, chosen_experts=False)  # KTIR has no host
    level = LEVELS[-1] if arguments.emit in (None, compile_graphs.PYTHON) else str(arguments.emit)
    wanted = "spyre.kernel" if ktir else level
    pending = pending_ktir(arguments.output, split=arguments.split) if ktir else None
    emitted = None if arguments.emit is None or arguments.output in (None, STDOUT) else PendingOutput(arguments.output)
    with progress(wanted, False if arguments.verbose else None) as step:  # log lines would tear a bar
        try:
            program = _import(Path(arguments.model), step)
        except DataSizesError as data_sizes:
            _deliver(compiled_parts(data_sizes, options, arguments, step), emitted)
            return 0
        check_no_bound(options)
        if arguments.weights is not None:
            from spyre_mlir.frontend import bind

            program = bind(program, arguments.weights, arguments.buffers, strict=not arguments.ignore_unexpected)
        program = with_sizes(program, sizes, keep_symbols=wanted == LEVELS[0])
        if compile_explain.wanted(arguments):
            with _watched(program, options, arguments, step) as watch:
                text = compile_explain.explained(program, options, arguments.explain, arguments.json, watch)
        elif compile_graphs.wanted(wanted):
            with _watched(program, options, arguments, step) as watch:
                text = compile_graphs.graph_text(wanted, program, options, watch)
        else:
            lowered = _lower(program, options, arguments, wanted, step)
            if arguments.emit == compile_graphs.PYTHON:
                text = CompiledModel(program, lowered, options).python()
            elif arguments.emit is not None:
                text = module_text(lowered.modules[wanted]) + "\n"
            elif ktir:
                module = lower_to_ktir(lowered.modules[wanted], make_context())
                text = deliver(module, pending, split=arguments.split)
            else:
                text = _bundled(CompiledModel(program, lowered, options), options, arguments, step)
    _deliver(text, emitted)
    return 0


def _deliver(text: str, emitted: PendingOutput | None) -> None:
    """Write a text to the file of `--emit`, or to standard output."""
    if emitted is not None:
        emitted.deliver(text)
        text = f"wrote {emitted.target}\n"
    sys.stdout.write(text)


def _bundled(
    compiled: CompiledModel, options: CompileOptions, arguments: argparse.Namespace, step: Callable[[str], object]
) -> str:
    """Write the bundle if there is to be one, and files about it; return the report."""
    from spyre_mlir.backend.whole_files.whole_file import save_text

    saved = _saved(compiled, arguments, step)
    report = compiled.report(arguments.report, rival=arguments.rival)
    if arguments.json is not None:
        save_text(Path(arguments.json), report.json())
    # Host steps have been listed on stderr, unless nobody wanted to be warned.
    shown = replace(report, host_steps=()) if options.host_fallback == "warn" else report
    return f"{shown}\n{saved}\n"


def _saved(compiled: CompiledModel, arguments: argparse.Namespace, step: Callable[[str], object]) -> str:
    """Write the bundle if there is to be one; return a line about it."""
    if arguments.output is None:
        return "no bundle was written; -o DIR writes it"
    step("write")
    wide = True if arguments.host_weights else False if arguments.device_weights_only else None
    return f"wrote {compiled.save(arguments.output, host_weights=wide, levels=arguments.levels)}"


def _import(path: Path, step: Callable[[str], object]) -> Program:
    if not path.is_file():
        raise InputError(
            "there is no such file" if not path.exists() else "this is no file",
            where=str(path),
            hint="name a file that torch.export.save has written",
        )
    step("import")
    from spyre_mlir.frontend import import_program

    started = time.perf_counter()
    program = import_program(path)
    operations = sum(1 for _ in program.module.walk())
    log.info("import of %s: %d ops, %.3f s", path.name, operations, time.perf_counter() - started)
    return program


def _lower(
    program: Program, options: CompileOptions, arguments: argparse.Namespace, wanted: str, step: Callable[[str], object]
) -> Lowered:
    from spyre_mlir.cache.lower import lower_once
    from spyre_mlir.transforms.utils.host_fallback import warning_text
    from spyre_mlir.universe import make_context

    refuse: HostFallback = "error" if options.host_fallback == "error" else "allow"
    # Dumps and reproducers are of passes that run.
    cached = options.cache and arguments.dump_dir is None and arguments.mlir_pass_pipeline_crash_reproducer is None
    asked = replace(options, host_fallback=refuse, cache=cached)
    with _watched(program, options, arguments, step) as watch:
        lowered = lower_once(program.module, make_context(options.spec), asked, until=wanted, watch=watch)
    for text in filter(None, (lowered.losses.narrowed, lowered.losses.rounded)):
        log.warning("%s", text)
    if lowered.host_steps and options.host_fallback == "warn":
        log.warning("%s", warning_text(lowered.host_steps))
    return lowered


@contextmanager
def _watched(
    program: Program, options: CompileOptions, arguments: argparse.Namespace, step: Callable[[str], object]
) -> Generator[PassWatch]:
    """An observer of the passes; one that fails leaves a reproducer, if there is to be one."""
    from spyre_mlir.cli.support.watch import PassWatch, RecordingWatch

    path = arguments.mlir_pass_pipeline_crash_reproducer
    recording = None if path is None else RecordingWatch(path, options.passes(), arguments.dump_dir, step=step)
    watch = recording or PassWatch(arguments.dump_dir, step=step)
    watch.entered(program.module)
    try:
        yield watch
    except Exception as error:  # bugs leave a reproducer too
        if recording is not None:
            recording.failed(error)
        raise


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of the command."""
    sys.exit(run(argv))


if __name__ == "__main__":
    main()

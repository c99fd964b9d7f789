"""spyre-opt: one pass at a time on IR text; xdsl-opt with our dialects, parser, printer, checks and errors."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from io import BytesIO, StringIO
from itertools import accumulate
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.arg_spec import parse_pipeline, parse_spec
from xdsl.utils.exceptions import DiagnosticException, ParseError
from xdsl.xdsl_opt_main import xDSLOptMain

from spyre_mlir.cli.flags.mlir_flags import ELSEWHERE, SAME, add_flags, as_our_flags
from spyre_mlir.cli.support.completion import ShowCompletion
from spyre_mlir.cli.support.endings import guarded, log_to_stderr, show_help, usage_error
from spyre_mlir.cli.support.expected import Chunk, verify_diagnostics
from spyre_mlir.cli.support.lists import (
    OP_COLUMNS,
    PASS_COLUMNS,
    op_rows,
    ops_json,
    pass_rows,
    passes_json,
    print_list,
)
from spyre_mlir.cli.support.memory_limit import limit_memory
from spyre_mlir.cli.support.output import PendingOutput, json_place
from spyre_mlir.cli.support.pipeline_text import flat_pipeline, make_passes, onward_pipeline, shown_passes, spec_text
from spyre_mlir.cli.support.reducing import command_succeeds, fails_with, reduced
from spyre_mlir.cli.support.reproducer import FailureRecorder, required, separated
from spyre_mlir.cli.support.versions import ShowVersion
from spyre_mlir.cli.support.watch import PassWatch
from spyre_mlir.dialects.context import SpyreContext
from spyre_mlir.errors import InputError
from spyre_mlir.plugins.registry import load_plugins
from spyre_mlir.text.printer import SpyrePrinter
from spyre_mlir.text.render import decode, module_text, parse_module, verify_module
from spyre_mlir.transforms import get_all_passes
from spyre_mlir.universe import SPYRE_UNIVERSE

if TYPE_CHECKING:
    from spyre_mlir.debug.reduction import Test


class SpyreOptMain(xDSLOptMain):
    """The driver; its flags are those of xdsl-opt, and `--pass-pipeline` works as in mlir-opt."""

    given: bytes | None = None
    failure: Test | None = None

    def register_all_dialects(self) -> None:
        """Register the dialects of every installed universe, and ours even in a checkout that is not installed."""
        self.ctx = SpyreContext()
        super().register_all_dialects()
        for name in SPYRE_UNIVERSE.all_dialects.keys() - set(self.ctx.registered_dialect_names):
            self.ctx.register_dialect(name, SPYRE_UNIVERSE.all_dialects[name])

    def register_all_passes(self) -> None:
        """Register the passes of every installed universe, ours even in a mere checkout, and those of plugins."""
        super().register_all_passes()
        load_plugins()
        for name, factory in {**get_all_passes(), **SPYRE_UNIVERSE.all_passes}.items():
            self.available_passes.setdefault(name, factory)

    def register_all_frontends(self) -> None:
        """Read `.mlir` with our parser, and run the checks that xDSL's verifier omits."""
        self.line_offset = 0
        self.available_frontends["mlir"] = self._parse_mlir

    def _parse_mlir(self, stream: IO[bytes]) -> ModuleOp:
        name = self.get_input_name()
        text, _ = separated(decode(stream.read(), name, self.line_offset))
        module = parse_module(
            text,
            self.ctx,
            name,
            implicit_module=not self.args.no_implicit_module,
            line_offset=self.line_offset,
        )
        self._verify(module)
        return module

    def parse_chunk(self, chunk: IO[bytes], file_extension: str, start_offset: int = 0) -> ModuleOp | None:
        """Read one chunk of the input; locations count from the start of the file."""
        self.line_offset = start_offset
        try:
            module = super().parse_chunk(chunk, file_extension, start_offset)
            return module if module is None or self.failure is None else reduced(module, self.failure, self.ctx)
        except ParseError as error:
            error.span = replace(error.span, line_offset=start_offset)
            raise

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        """Add our flags, and report wrong usage like every other error."""
        super().register_all_arguments(arg_parser)
        arg_parser.prog = "spyre-opt"
        # Where xdsl-opt lists every name there is, half of the help would be names that are not ours.
        _say(
            arg_parser,
            "passes",
            f"passes, separated by commas; ours are {', '.join(get_all_passes())}; xDSL's are in --list-passes",
        )
        _say(arg_parser, "target", "what to print: mlir (default), or one of xDSL's targets")
        # `-v` is --verbose in all our tools; xdsl-opt's --version keeps its long name.
        group = arg_parser.add_argument_group("spyre-opt", conflict_handler="resolve")
        group.add_argument("--version", action=ShowVersion, libraries=("xdsl",))
        add_flags(group)
        passes = list(self.available_passes)
        group.add_argument(
            "--print-completion",
            action=ShowCompletion,
            metavar="SHELL",
            more_flags={f"--{name}": "run this pass" for name in passes},
            more_values=dict.fromkeys(("-p", "--passes", "--print-ir-after"), passes),
        )
        parse = arg_parser.parse_args

        def parse_both_spellings(args: Iterable[str] | None = None, namespace: Any = None) -> Any:
            words = list(sys.argv[1:] if args is None else args)
            return parse(as_our_flags(words, self.available_passes), namespace)

        def refuse(message: str) -> NoReturn:
            raise usage_error(arg_parser, message, [*(f"--{name}" for name in passes), *SAME], ELSEWHERE)

        arg_parser.parse_args = parse_both_spellings
        arg_parser.error = refuse
        arg_parser.print_help = partial(show_help, arg_parser)

    def setup_pipeline(self) -> None:
        """Make the passes; dumps and times between them go to stderr, so stdout stays IR."""
        log_to_stderr(self.args.verbose)
        limit_memory(self.args.memory_limit)
        if self.args.input_file == "-":
            self.args.input_file = None
        text: str = self.args.passes
        if self.args.pass_pipeline is not None:
            if text:
                raise InputError("both --passes and --pass-pipeline are given", hint="give one of them")
            text = flat_pipeline(self.args.pass_pipeline)
        if self.args.run_reproducer:
            text = self._recorded_pipeline(text)
        if self.args.to is not None or self.args.after is not None:
            text = self._remaining_pipeline(text)
        passes = make_passes(self.available_passes, text)
        if (failure := self._failure_to_keep(passes)) is not None:
            self.failure = failure
            passes = ()  # they have run on the way to the smallest module
        self.recorder = self._recorder(text)
        self.watch = PassWatch(
            self.args.dump_dir,
            shown_passes(
                [one.name for one in passes], self.args.print_ir_after, everything=self.args.print_ir_after_all
            ),
            generic=self.args.print_op_generic,
            locations=self.args.print_debuginfo,
        )
        self.pipeline = PassPipeline(passes, self._between_passes)

    def _failure_to_keep(self, passes: tuple[ModulePass, ...]) -> Test | None:
        if self.args.reduce_test is not None:
            if passes or self.args.reduce is not None:
                raise InputError(
                    "--reduce-test runs a command, no passes", hint="give --reduce TEXT and passes, or this"
                )
            return command_succeeds(self.args.reduce_test)
        if self.args.reduce is None:
            return None
        check = self._verify if self.args.verify_each else None
        quiet = PassPipeline(passes, lambda _, module, __: check(module) if check else None)
        return fails_with(self.args.reduce, quiet, self.ctx)

    def _recorded_pipeline(self, given: str) -> str:
        """Return the passes of a reproducer, and keep the text that has been read for them."""
        if given:
            raise InputError("both passes and --run-reproducer are given", hint="give one of them")
        stream, _ = self.get_input_stream()
        with stream:
            self.given = stream.read()
        name = self.get_input_name()
        found = required(decode(self.given, name), name)
        self.args.verify_each = self.args.verify_each and found.verify_each
        return flat_pipeline(found.pipeline)

    def _remaining_pipeline(self, given: str) -> str:
        """Return the passes from where the program is to `--to`, and keep the text that has been read for them."""
        if self.args.to is None or self.args.run_reproducer or self.args.split_input_file:
            raise InputError(
                "--after goes with --to"
                if self.args.to is None
                else "--to is for one program, and --run-reproducer and --split-input-file are for others",
                hint="spyre-opt FILE --to superdsc, and --after PASS where the program does not show how far it is",
            )
        ((stream, _), *_), extension = self.prepare_input()
        with stream:
            self.given = stream.read()
        module = self.parse_chunk(BytesIO(self.given), extension)
        return "" if module is None else onward_pipeline(module, self.args.to, self.args.after, given)

    def get_input_stream(self) -> tuple[IO[bytes], str]:
        """Open the input, as bytes in every version of xDSL; a reproducer has been read already."""
        if self.given is not None:
            return BytesIO(self.given), "mlir"
        name: str | None = self.args.input_file
        if name is None:
            return sys.stdin.buffer, "mlir"
        return open(name, "rb"), Path(name).suffix.removeprefix(".")

    def _recorder(self, passes: str) -> FailureRecorder | None:
        path = self.args.mlir_pass_pipeline_crash_reproducer
        if path is None:
            return None
        texts = [spec_text(one) for one in parse_pipeline(passes)]
        return FailureRecorder(path, texts, verify_each=self.args.verify_each, text=self._complete_text)

    def _complete_text(self, module: ModuleOp) -> str:
        stream = StringIO()
        printer = SpyrePrinter(stream, print_debuginfo=True)
        printer.print_op(module)
        printer.print_metadata(self.ctx.loaded_dialects)
        return stream.getvalue()

    def apply_passes(self, prog: ModuleOp) -> None:
        """Apply the passes in order; a failure leaves a reproducer, if there is to be one."""
        if self.recorder is None:
            super().apply_passes(prog)
            return
        self.recorder.restart()
        try:
            super().apply_passes(prog)
        except Exception as error:  # bugs leave a reproducer too
            self.recorder.failed(error)
            raise

    def _between_passes(self, previous: ModulePass | None, module: ModuleOp, following: ModulePass | None) -> None:
        if previous is None:
            self.watch.entered(module)
        else:
            self._after_pass(previous.name, module, last=following is None)
        if following is not None:
            if self.recorder is not None:
                self.recorder.before(module)
            self.watch.before(following.name, module)

    def _after_pass(self, name: str, module: ModuleOp, *, last: bool) -> None:
        seconds = self.watch.after(name, module)
        if self.args.time_passes:
            sys.stderr.write(f"Pass {name} took {seconds:.6f} seconds\n")
        if last or self.args.verify_each:
            try:
                self._verify(module)
            except DiagnosticException as error:
                error.add_note(f"  after pass '{name}'")
                raise
        if self.args.print_between_passes and not last:
            text = module_text(module, generic=self.args.print_op_generic, locations=self.args.print_debuginfo)
            sys.stderr.write(f"IR after {name}:\n{text}\n\n")

    def _verify(self, module: ModuleOp) -> None:
        if not self.args.disable_verify:
            verify_module(module)

    def prepare_input(self) -> tuple[list[tuple[IO[bytes], int]], str]:
        """Open the input: no name or `-` is standard input; a file name needs an extension that the tool reads."""
        name = self.args.input_file
        if name and not Path(name).exists():
            raise InputError(
                "there is no such file", where=name, hint="name a file of IR text, or - for standard input"
            )
        if name and Path(name).is_dir():
            raise InputError(
                "this is a directory, expected a file of IR text",
                where=name,
                hint="spyre-translate --superdsc-to-mlir DIR gives the text of a bundle directory",
            )
        extension = Path(name).suffix.removeprefix(".") if name else "mlir"
        if not self.args.frontend and extension not in self.available_frontends:
            known = ", ".join(f".{one}" for one in self.available_frontends)
            other = "; spyre-translate --superdsc-to-mlir reads SuperDSC files" if extension == "json" else ""
            raise InputError(
                f"unknown file extension '.{extension}' of {name}", hint=f"a file named {known}, or '-f mlir'{other}"
            )
        stream, extension = self.get_input_stream()
        chunks: list[tuple[IO[bytes], int]] = [(stream, 0)]
        if self.args.split_input_file:
            with stream:
                texts = stream.read().split(b"// -----")
            offsets = accumulate((text.count(b"\n") for text in texts[:-1]), initial=0)
            chunks = [(BytesIO(text), offset) for text, offset in zip(texts, offsets, strict=True)]
        return chunks, self.args.frontend or extension

    def prepare_output(self) -> IO[str]:
        """Collect output for `-o` in memory: a failed run must not modify the file."""
        return sys.stdout if self.pending is None else self.pending

    def run(self) -> None:
        """Run the tool; the output file is written at the end, as a whole."""
        if self.args.list_passes or self.args.list_ops:
            with json_place(self.args.json) as file:
                self._list(None if file is None else PendingOutput(file))
            return
        if self.args.json is not None:
            raise InputError(
                "--json is for a list, and none is asked for", hint="add --list-passes or --list-ops, or leave it out"
            )
        if self.args.show_dialects:
            print("Available Dialects: " + ", ".join(sorted(self.ctx.registered_dialect_names)))
            return
        self.pending = None if self.args.output_file is None else PendingOutput(self.args.output_file)
        if self.args.verify_diagnostics:
            self._verify_diagnostics()
        else:
            super().run()
        if self.pending is not None:
            self.pending.commit()

    def _list(self, pending: PendingOutput | None) -> None:
        if self.args.list_passes:
            print_list(PASS_COLUMNS, pass_rows(self.available_passes, get_all_passes()))
        else:
            print_list(OP_COLUMNS, op_rows())
        if pending is not None:
            passes = self.args.list_passes
            pending.deliver(passes_json(self.available_passes, get_all_passes()) if passes else ops_json())

    def _verify_diagnostics(self) -> None:
        inputs, extension = self.prepare_input()
        texts: list[str] = []

        def process(chunk: Chunk) -> None:
            module = self.parse_chunk(BytesIO(chunk.text), extension, chunk.offset)
            if module is not None:
                self.apply_passes(module)
                texts.append(self.output_resulting_program(module))

        chunks: list[Chunk] = []
        for stream, offset in inputs:
            with stream:
                chunks.append(Chunk(stream.read(), offset))
        verify_diagnostics(self.get_input_name(), chunks, process)
        with self.prepare_output() if self.pending is not None else nullcontext(sys.stdout) as output:
            output.write("// -----\n".join(texts))

    def output_resulting_program(self, prog: ModuleOp) -> str:
        """Format the result: our printer for MLIR, the target's own for every other format."""
        if parse_spec(self.args.target).name != "mlir" or self.args.syntax_highlight:
            return super().output_resulting_program(prog)
        stream = StringIO()
        printer = SpyrePrinter(
            stream,
            print_generic_format=self.args.print_op_generic,
            print_properties_as_attributes=self.args.print_no_properties,
            print_debuginfo=self.args.print_debuginfo,
        )
        printer.print_op(prog)
        printer.print_metadata(self.ctx.loaded_dialects)
        stream.write("\n")
        return stream.getvalue()


def _say(parser: argparse.ArgumentParser, destination: str, text: str) -> None:
    """Replaces the help of an option of xdsl-opt."""
    for action in parser._actions:
        if action.dest == destination:
            action.help = text


@guarded("spyre-opt")
def main(argv: Sequence[str] | None = None) -> int:
    """Run spyre-opt; returns the exit code."""
    SpyreOptMain(description="Runs compiler passes on IR text.", args=argv).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())

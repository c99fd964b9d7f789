"""Flags of spyre-opt besides xdsl-opt's, and those that mlir-opt spells otherwise: passes as flags, and `--mlir-…`."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence

from spyre_mlir.cli.support.endings import TakesArguments, add_verbosity
from spyre_mlir.cli.support.memory_limit import add_memory_limit

SAME = {
    "--mlir-print-op-generic": "--print-op-generic",
    "--mlir-print-debuginfo": "--print-debuginfo",
    "--mlir-print-ir-after-all": "--print-ir-after-all",
    "--mlir-timing": "--time-passes",
    "--verify-each=true": "--verify-each",
    "--verify-each=false": "--no-verify-each",
}
# What to do instead of flags that have no counterpart, by how they begin.
ELSEWHERE = {
    "--emit-bytecode": "spyre-opt --print-op-generic FILE | mlir-opt --emit-bytecode, which reads the generic form",
    "--mlir-disable-threading": "leave it out: passes run in one thread",
    "--mlir-elide": "leave it out: weights are arguments, so no large constant is printed",
    "--mlir-print-ir-before": "--print-ir-after-all prints what every pass reads, behind the pass before it",
    "--print-ir-before": "--print-ir-after-all prints what every pass reads, behind the pass before it",
}
_AFTER = "--mlir-print-ir-after="
_PASSES = ("-p", "--passes")


def as_our_flags(words: Sequence[str], passes: Collection[str]) -> list[str]:
    """Return a command line with mlir-opt's flags in our spelling.

    Passes keep their order, whether `-p` gives them, once or several times, or flags: ``--canonicalize``,
    ``--specialize-shapes=s0=33``.

    Args:
        words: the command line.
        passes: names of the passes there are.
    """
    rest: list[str] = []
    pipeline: list[str] = []
    for word in (queue := iter(words)):
        name, _, options = word.removeprefix("--").partition("=")
        if word == "--":
            rest += [word, *queue]
        elif word in _PASSES:
            given = next(queue, None)
            if given is None:
                rest.append(word)  # for the parser to refuse
            else:
                pipeline.append(given)
        elif word.startswith(_PASSES) and word.removeprefix("--passes").startswith(("-p", "=")):
            pipeline.append(word.removeprefix("--passes=").removeprefix("-p"))
        elif word.startswith("--") and name in passes:
            pipeline.append(f"{name}{{{options}}}" if options else name)
        else:
            rest.append(_spelled(word))
    return [*(["-p", ",".join(pipeline)] if pipeline else []), *rest]


def _spelled(word: str) -> str:
    if word.startswith(_AFTER):
        return f"--print-ir-after={word.removeprefix(_AFTER)}"
    return SAME.get(word, word)


def add_flags(group: TakesArguments) -> None:
    """Add the flags that spyre-opt has in addition to xdsl-opt's."""
    _add_passes(group)
    group.add_argument("--list-passes", action="store_true", help="list the passes and stop")
    group.add_argument("--list-ops", action="store_true", help="list the ATen operations and their functions, and stop")
    group.add_argument(
        "--json",
        metavar="FILE.json",
        help="also write the list for programs to read; - is stdout, and the rest goes to stderr",
    )
    group.add_argument("--show-dialects", action="store_true", help="list the dialects and stop")
    group.add_argument("--print-ir-after-all", action="store_true", help="write the IR to stderr after every pass")
    group.add_argument(
        "--print-ir-after",
        action="append",
        default=[],
        metavar="PASS",
        help="write the IR to stderr after this pass; may be given again",
    )
    group.add_argument(
        "--verify-each",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="verify after every pass (default) or at the end only",
    )
    group.add_argument(
        "--verify-diagnostics",
        action="store_true",
        help="compare the errors with comments such as '// expected-error@+1 {{a part of the message}}'",
    )
    group.add_argument("--dump-dir", metavar="DIR", help="write the IR after every pass to DIR/NN-pass.mlir")
    group.add_argument(
        "--mlir-pass-pipeline-crash-reproducer",
        metavar="FILE",
        help="if a pass fails, write the module before it, and the passes from there on, to this file",
    )
    group.add_argument(
        "--reduce",
        metavar="TEXT",
        help="print a small module instead, on which the passes still fail with a message that has this text",
    )
    group.add_argument(
        "--reduce-test",
        metavar="COMMAND",
        help="print a small module instead, on whose file this command still exits with 0",
    )
    group.add_argument("--run-reproducer", action="store_true", help="run the passes that the input file names")
    add_memory_limit(group)
    add_verbosity(group)


def _add_passes(group: TakesArguments) -> None:
    """Add the flags that say which passes run."""
    group.add_argument(
        "--pass-pipeline",
        default=None,
        metavar="PIPELINE",
        help="passes as mlir-opt spells them: 'builtin.module(first-pass,second-pass{option=1})'",
    )
    group.add_argument(
        "--to",
        metavar="LEVEL|PASS",
        help="run the passes from where the program is to a level (spyre.kernel, superdsc), or up to a pass "
        "(choose-layouts, plan); passes given with -p set the options of these",
    )
    group.add_argument(
        "--after",
        metavar="PASS",
        help="with --to: the last pass that made the program, where the program does not show it",
    )

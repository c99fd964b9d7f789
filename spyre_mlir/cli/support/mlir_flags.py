"""Flags as mlir-opt spells them, in the spelling of spyre-opt: passes as flags, in order, and `--mlir-…`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

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

"""Pass pipelines on the command line: MLIR's nested spelling, and errors that suggest the nearest valid name."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, Literal, get_args, get_origin, get_type_hints

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, get_pass_option_infos
from xdsl.utils.arg_spec import ArgSpec, parse_pipeline

from spyre_mlir.errors import InputError
from spyre_mlir.options import ENABLED

PassFactories = Mapping[str, Callable[[], type[ModulePass]]]

_TOKEN = re.compile(
    r"""\s*(?:(?P<options>\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\})|(?P<name>[A-Za-z0-9_.\-]+)|(?P<mark>[(),]))\s*"""
)
# Our passes are module passes, so an anchor only groups; it must still be one that exists.
_ANCHORS = ("builtin.module", "func.func", "any")
# What may follow what in a pipeline, and how to say so.
_FOLLOWERS = {
    "start": ("name", "end"),
    "name": (",", "(", ")", "{", "end"),
    "{": (",", ")", "end"),
    "(": ("name", ")"),
    ")": (",", ")", "end"),
    ",": ("name",),
}
_WORDS = {
    "start": "a pass name",
    "name": "',', options or a bracket after the name",
    "{": "',' or ')' after the options",
    "(": "a pass name or ')'",
    ")": "',' or the end after ')'",
    ",": "a pass name after ','",
}
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "\f": "\\f", "\v": "\\v"})


def flat_pipeline(text: str) -> str:
    """Turn `builtin.module(a,func.func(b{x=1}))` into xDSL's flat list `a,b{x=1}`.

    Raises:
        InputError: the text is not a pipeline; shows the place.
    """
    passes: list[str] = []
    depth = 0
    previous = "start"
    for token, start in [*_tokens(text), ("end", len(text))]:
        kind = token[0] if token[0] in "(),{" else "end" if start == len(text) else "name"
        if kind not in _FOLLOWERS[previous]:
            raise _syntax(text, start, f"expected {_WORDS[previous]}")
        depth += {"(": 1, ")": -1}.get(kind, 0)
        if depth < 0 or (kind == "end" and depth):
            raise _syntax(text, start, "brackets do not match")
        if kind == "(" and passes.pop() not in _ANCHORS:
            raise _syntax(text, start, f"only {', '.join(_ANCHORS)} can stand before '('")
        if kind == "name":
            passes.append(token)
        elif kind == "{":
            passes[-1] += token
        previous = kind
    return ",".join(passes)


def _tokens(text: str) -> list[tuple[str, int]]:
    tokens: list[tuple[str, int]] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _syntax(text, position, "this is no pass name, option list or bracket")
        kind = match.lastgroup or "mark"
        tokens.append((match.group(kind), match.start(kind)))
        position = match.end()
    return tokens


def _syntax(text: str, position: int, message: str) -> InputError:
    return InputError(
        f"pass pipeline: {message}\n  {text}\n  {' ' * position}^",
        hint="write 'builtin.module(first-pass,second-pass{option=1})'",
    )


def make_passes(available: PassFactories, text: str) -> tuple[ModulePass, ...]:
    """Make the passes of a flat pipeline.

    Raises:
        ArgSpecParseError: the text is not a pipeline.
        InputError: a pass or an option does not exist, or a value is of the wrong kind.
    """
    return tuple(_make_pass(available, spec) for spec in parse_pipeline(text))


def onward_pipeline(module: ModuleOp, to: str, after: str | None, given: str) -> str:
    """Return the passes that bring a program to a level or through a pass, with options that are given for some.

    Args:
        module: the program.
        to: the level or the pass.
        after: the last pass that has run, if it is said.
        given: passes with their options; ``enabled=false`` leaves a pass out.

    Raises:
        InputError: the program is beyond that; or a given pass is not among those that follow.
    """
    from spyre_mlir.debug.remaining_passes import remaining_passes

    names = remaining_passes(module, to, after)
    specs = {spec.name: spec for spec in parse_pipeline(given)}
    if unknown := [name for name in specs if name not in names]:
        raise InputError(
            f"'{unknown[0]}' is not among the passes on the way to {to}",
            hint=_nearest(unknown[0], dict.fromkeys(names), f"they are {', '.join(names) or 'none'}"),
        )
    left_out = {name for name, spec in specs.items() if spec.parameters.get(ENABLED) == (False,)}
    return ",".join(spec_text(specs[name]) if name in specs else name for name in names if name not in left_out)


def spec_text(spec: ArgSpec) -> str:
    """Return a pass with its options as a pipeline has it; xDSL's own text leaves out escapes in strings."""
    options = " ".join(
        f"{name}={','.join(map(_option_text, values))}" if values else name for name, values in spec.parameters.items()
    )
    return f"{spec.name}{{{options}}}" if options else spec.name


def _option_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value.translate(_ESCAPES)}"' if isinstance(value, str) else str(value)


def _make_pass(available: PassFactories, spec: ArgSpec) -> ModulePass:
    factory = available.get(spec.name)
    if factory is None:
        raise InputError(f"unknown pass '{spec.name}'", hint=_nearest(spec.name, available, "--list-passes lists them"))
    pass_type = factory()
    options = {info.name: info for info in get_pass_option_infos(pass_type)}
    for given in spec.normalize_parameter_names().parameters:
        if given not in options and not getattr(pass_type, "takes_any_option", False):
            all_options = "its options: " + (", ".join(options) or "none")
            raise InputError(f"pass '{spec.name}' has no option '{given}'", hint=_nearest(given, options, all_options))
    try:
        return pass_type.from_spec(spec)
    except ValueError as error:
        kinds = ", ".join(f"{info.name}: {info.expected_type}" for info in options.values())
        wrong = _wrong_option(pass_type, spec) or str(error)
        raise InputError(f"pass '{spec.name}': {wrong}", hint=f"its options are {kinds or 'none'}") from error


def _wrong_option(pass_type: type[ModulePass], spec: ArgSpec) -> str | None:
    """The first option whose value it does not take, and its values; None if no option is wrong by itself."""
    try:
        kinds = get_type_hints(pass_type)
    except NameError:  # annotations that type checkers alone import
        return None
    for name, values in spec.normalize_parameter_names().parameters.items():
        try:
            pass_type.from_spec(replace(spec, parameters={name: values}))
        except ValueError:
            kind: Any = kinds.get(name)
            names: dict[Any, str] = {bool: "true or false", int: "a whole number", str: "a text"}
            takes = f"one of {', '.join(map(str, get_args(kind)))}" if get_origin(kind) is Literal else names.get(kind)
            return f"option '{name}' takes {takes or kind}, got {','.join(map(str, values)) or 'nothing'}"
    return None


def shown_passes(pipeline: Sequence[str], wanted: Sequence[str], *, everything: bool) -> Collection[str]:
    """Return the passes whose result is to be printed.

    Raises:
        InputError: a wanted pass is not in the pipeline.
    """
    for name in wanted:
        if name not in pipeline:
            known = dict.fromkeys(pipeline)
            raise InputError(
                f"--print-ir-after={name}: the pipeline does not run this pass",
                hint=_nearest(name, known, f"it runs {', '.join(known) or 'none'}"),
            )
    return set(pipeline) if everything else set(wanted)


def _nearest(name: str, known: Mapping[str, object], otherwise: str) -> str:
    close = get_close_matches(name, known, n=3)
    return " or ".join(f"'{one}'" for one in close) if close else otherwise

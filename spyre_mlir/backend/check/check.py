"""Checks from a path or a text to findings; unreadable input is a finding too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ParseError, VerifyException

from spyre_mlir.backend.check.bundle import Bundle
from spyre_mlir.backend.check.bundle_rules import BUNDLE_RULES
from spyre_mlir.backend.check.host_rules import HOST_RULES, LAYOUT_RULES, check_host, host_files
from spyre_mlir.backend.directory import BUNDLE_FILE
from spyre_mlir.backend.json_file import load_text, read_text
from spyre_mlir.backend.stored import PROGRAM_FILE, check_one_program, launch_folders, read_module
from spyre_mlir.backend.whole_files.contained import contained, is_file_of
from spyre_mlir.dialects.superdsc.check import FILE_RULES, Finding, Problem, Rule, Severity, check_value
from spyre_mlir.dialects.superdsc.check.json_file import SdscJson
from spyre_mlir.dialects.superdsc.check.rule import error
from spyre_mlir.dialects.superdsc.codec.cursor import Cursor, Misread
from spyre_mlir.dialects.superdsc.model.json_value import Json, JsonObject
from spyre_mlir.dialects.target import spec_at
from spyre_mlir.errors import InputError, ReadError
from spyre_mlir.hw.spec import SPYRE, SpyreSpec
from spyre_mlir.text.render import decode, parse_module, verify_module


@error("JSON, and one root key as published SuperDSC schemas ask", "C")
def json_text(_text: object) -> Iterator[Problem]:
    """A file is UTF-8 JSON without duplicate keys, nested at most 64 deep, with one root key that holds an object."""
    yield from ()  # reported by the reader, which stops there


@error("SuperDSC bundle interface specification", "C")
def bundle_text(_text: object) -> Iterator[Problem]:
    """`bundle.mlir` is MLIR that verifies."""
    yield from ()  # reported by the reader, which stops there


RULES: tuple[Rule[Any], ...] = (json_text, *FILE_RULES, bundle_text, *BUNDLE_RULES, *HOST_RULES, *LAYOUT_RULES)


def check_path(path: Path, context: Context, spec: SpyreSpec = SPYRE) -> tuple[Finding, ...]:
    """Return all rule violations of a SuperDSC file or a bundle directory, errors first.

    A bundle names its card itself; a file by itself is for `spec`.

    Raises:
        InputError: there is no such file or directory.
    """
    if path.is_dir():
        return check_bundle(path, context)
    if not path.exists():
        raise InputError(
            "no such file or directory", where=str(path), hint="name a SuperDSC file or a bundle directory"
        )
    try:
        text = read_text(path)
    except ReadError as unreadable:
        return (_unreadable(json_text, str(path), unreadable),)
    return check_text(text, str(path), spec)


def check_text(text: str, file: str, spec: SpyreSpec = SPYRE) -> tuple[Finding, ...]:
    """Return all rule violations of the text of a SuperDSC file, errors first."""
    try:
        return check_value(_one_object(load_text(text, file)), file, spec)
    except ReadError as unreadable:
        return (_unreadable(json_text, file, unreadable),)


def _one_object(value: Json) -> JsonObject:
    """The file's value, if it is an object with one root key that holds an object."""
    if not isinstance(value, dict) or len(value) != 1 or not all(isinstance(one, dict) for one in value.values()):
        Cursor(value, "$").fail("an object with one root key that holds an object")
    return value


def _unreadable(rule: Rule[Any], file: str, wrong: ReadError) -> Finding:
    if isinstance(wrong, Misread):
        return rule.finding(file, Problem(wrong.path, wrong.expected, wrong.got))
    expected, _, got = wrong.message.removeprefix("expected ").partition(", got ")
    place = (wrong.where or "").removeprefix(file).lstrip(": ,") or "$"
    return rule.finding(file, Problem(place, expected, got or "something else", wrong.hint))


def check_bundle(directory: Path, context: Context, *, files: bool = True) -> tuple[Finding, ...]:
    """Return all rule violations of a bundle directory.

    Args:
        directory: the bundle.
        context: knows the bundle's dialects.
        files: whether the SuperDSC files that it runs are checked too, each by itself.
    """
    check_one_program(directory)
    if not (directory / BUNDLE_FILE).exists() and (directory / PROGRAM_FILE).exists():
        return _check_launches(directory, context, files=files)
    parsed: dict[Path, ModuleOp] = {}
    found = _check_folder(directory, context, parsed, files=files)
    if not any(one.severity is Severity.ERROR for one in found):
        found |= dict.fromkeys(check_host(directory, context, parsed))
    return _ordered(found)


def _ordered(found: Mapping[Finding, None]) -> tuple[Finding, ...]:
    return tuple(sorted(found, key=lambda one: one.severity is not Severity.ERROR))


def _check_folder(
    directory: Path, context: Context, parsed: dict[Path, ModuleOp], *, files: bool
) -> dict[Finding, None]:
    """Everything that one folder with a `bundle.mlir` breaks, and the files it runs; keeps the module it has parsed."""
    bundle = _parsed(directory, context)
    if isinstance(bundle, Finding):
        return {bundle: None}
    parsed[directory / BUNDLE_FILE] = bundle.module
    found: dict[Finding, None] = {}
    for rule in BUNDLE_RULES:
        found |= dict.fromkeys(_apply(rule, bundle))
    names = dict.fromkeys(op.sdsc_filename.data for op in bundle.executes)
    for name in names if files else ():
        if is_file_of(directory, name):
            found |= dict.fromkeys(check_path(directory / name, context, bundle.spec))
    if not any(one.severity is Severity.ERROR for one in found):
        found |= dict.fromkeys(_verified(bundle))
    return found


def _check_launches(directory: Path, context: Context, *, files: bool) -> tuple[Finding, ...]:
    """Everything that a program of several launches, or of none, breaks: each launch is a bundle in a folder."""
    found: dict[Finding, None] = {}
    parsed: dict[Path, ModuleOp] = {}
    try:
        program = parsed[directory / PROGRAM_FILE] = read_module(directory / PROGRAM_FILE, context)
        folders = launch_folders(directory, program)
    except ReadError as unreadable:
        problem = Problem(PROGRAM_FILE, "a host program", unreadable.message, unreadable.hint)
        return (host_files.finding(str(directory), problem),)
    for folder in folders.values():
        found |= _check_folder(folder, context, parsed, files=files)
    if not any(one.severity is Severity.ERROR for one in found):
        found |= dict.fromkeys(check_host(directory, context, parsed))
    return _ordered(found)


def _parsed(directory: Path, context: Context) -> Bundle | Finding:
    path = directory / BUNDLE_FILE
    try:
        module = parse_module(decode(contained(directory, BUNDLE_FILE).read_bytes(), str(path)), context, str(path))
    except OSError as unreadable:
        return bundle_text.finding(str(path), Problem("1:1", "a readable file", unreadable.strerror or "none"))
    except ReadError as unreadable:
        return bundle_text.finding(str(path), Problem("1:1", "UTF-8 text of the directory", unreadable.message))
    except ParseError as wrong:
        place = str(wrong.span.get_location()).removeprefix(f"{path}:")
        return bundle_text.finding(str(path), Problem(place, "MLIR of the bundle's dialects", wrong.msg))
    bundle = Bundle(directory, module, {}, spec := spec_at(module))
    names = {op.sdsc_filename.data for op in bundle.executes}
    there = (name for name in sorted(names) if is_file_of(directory, name))
    read = {name: value for name in there if (value := _read(directory / name, spec)) is not None}
    return Bundle(directory, module, read, spec)


def _read(path: Path, spec: SpyreSpec) -> SdscJson | None:
    """A file for the bundle's rules, or None where its own check will say what is wrong with it."""
    try:
        value = _one_object(load_text(read_text(path), str(path)))
    except ReadError:
        return None
    ((root, _),) = value.items()
    return SdscJson(root, Cursor(value, "$").at(root), spec)


def _apply(rule: Rule[Bundle], bundle: Bundle) -> Iterator[Finding]:
    file = str(bundle.directory / BUNDLE_FILE)
    try:
        for one in rule.find(bundle):
            yield rule.finding(file, one)
    except Misread:
        return  # the check of the SuperDSC file itself names the place


def _verified(bundle: Bundle) -> Iterator[Finding]:
    try:
        verify_module(bundle.module)
    except VerifyException as wrong:
        file = str(bundle.directory / BUNDLE_FILE)
        yield bundle_text.finding(file, Problem("module", "a module that verifies", str(wrong)))

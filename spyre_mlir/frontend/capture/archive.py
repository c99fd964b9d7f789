"""Reading of a saved program, and inspection before torch reads it, because reading can execute its contents.

`torch.export.load` unpickles some members, evaluates the expressions of symbolic sizes, resolves operators by any
dotted name below `torch`, loads compiled libraries, and writes names into Python text that it compiles. Everything of
this that is not plain data of a graph is refused here, by the same reader that torch uses, before anything is loaded.

Decision: docs/decisions/0111-a-saved-program-is-looked-at.md
"""

from __future__ import annotations

import io
import json
import logging
import pickle
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import torch
from torch.export import ExportedProgram

from spyre_mlir.errors import ImportProgramError
from spyre_mlir.frontend.capture.symbol_text import is_size
from spyre_mlir.frontend.capture.torch_warnings import torch_noise_hidden
from spyre_mlir.frontend.capture.tracing.torch_errors import REFUSED, first_line
from spyre_mlir.frontend.program.unknown_classes import (
    modules_of_keys,
    names_of_classes,
    stand_ins_for,
    structures_of,
)
from spyre_mlir.frontend.torch_private import SpecViolationError, pt2_records

_HINT = "a program is a graph, its tensors and its example inputs; save the model again with torch.export.save"
_MODELS, _WEIGHTS, _CONSTANTS = "models/", "data/weights/", "data/constants/"
_PICKLES = ("data/sample_inputs/", _WEIGHTS, _CONSTANTS)  # members `….pt` of these are unpickled
_OLD_PROGRAM = "serialized_exported_program.json"
_OLD_PICKLES = ("serialized_state_dict", "serialized_constants", "serialized_example_inputs")
_LIBRARIES = "data/aotinductor/"
_MOST_EXPANDED = 64  # torch stores members as they are: what unpacks to many times its size is no program

# How torch pickles an example input without values; it is JSON, with expressions of sizes in it.
_FAKE_TENSOR = "torch._export.serde.serialize._reconstruct_fake_tensor"

_NAME = re.compile(r"\w+(?:\.\w+)*")
_WEIGHT_NAME = re.compile(r"[^\"'\\\x00-\x1f]*")
_OPERATOR = re.compile(
    r"torch\.ops\.\w+\.\w+(?:\.\w+)?|torch\.sym_[a-z]+|math\.trunc|#\w+:[\w.:]+|"
    r"_operator\.(?:eq|ne|le|ge|lt|gt|neg|pos|mul|add|sub|floordiv|mod|pow|truediv|and_|or_|lshift|rshift|getitem)|"
    r"torch\._functorch\.predispatch\.(?:_[a-z_]*(?:nesting|batch_dim)|lazy_load_decompositions)"
)
# Keys of torch's schema whose strings become names in Python text, or are looked up.
_NAMES = frozenset({"name", "as_name", "as_sym_int", "root", "graph_name"})
_OPERATORS = frozenset({"target", "as_operator"})
_WEIGHTS_KEYS = frozenset({"parameter_name", "buffer_name", "tensor_constant_name", "custom_obj_name", "fqn"})
_FREE = frozenset({"metadata", "as_string", "as_strings", "guards_code"})  # never run: `module_of` drops the guards


def check_archive(path: Path) -> set[str]:
    """Refuse a saved program that holds more than a graph, its tensors and its example inputs.

    Returns:
        Names of the classes in the structures of its calls.

    Raises:
        ImportProgramError: names the member, and what is wrong with it.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            _check_members(archive, path)
            records = pt2_records(path)
            if records is None:
                records = _old_records(archive)
        return _Look(path, *records).check()
    except (zipfile.BadZipFile, RuntimeError, AssertionError, OSError, EOFError, UnicodeDecodeError) as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise ImportProgramError(
            f"this is no .pt2 file that torch can read: {reason}", where=str(path), hint=_HINT
        ) from error


def _check_members(archive: zipfile.ZipFile, path: Path) -> None:
    """Readers of archives differ in which of two members of one name they take; there is to be one."""
    members = archive.infolist()
    twice = [name for name, times in Counter(m.filename.casefold() for m in members).items() if times > 1]
    if twice:
        raise _refusal(path, twice[0], "is there twice")
    for member in members:
        if member.file_size > _MOST_EXPANDED * max(member.compress_size, 1):
            raise _refusal(path, member.filename, f"claims to unpack to {member.file_size:,} bytes")


def _old_records(archive: zipfile.ZipFile) -> tuple[list[str], Callable[[str], bytes]]:
    """Members as torch 2.7 and earlier wrote them."""
    return archive.namelist(), archive.read


def _refusal(path: Path, member: str, reason: str) -> ImportProgramError:
    return ImportProgramError(f"the member {member} {reason}", where=str(path), hint=_HINT)


class _Look:
    """One archive: names of its members, and what reads one."""

    def __init__(self, path: Path, names: list[str], read: Callable[[str], bytes]) -> None:
        self._path, self._names, self._read = path, names, read
        self._classes: set[str] = set()

    def check(self) -> set[str]:
        """Refuses members that run code when they are loaded, and returns the names of classes in calls."""
        for name in self._names:
            if name.startswith(_LIBRARIES):
                raise _refusal(self._path, name, "is compiled code, which loading would run")
            if name.startswith((_WEIGHTS, _CONSTANTS)) and name.endswith("_config.json"):
                self._check_payload(name)
            elif (name.startswith(_PICKLES) and name.endswith(".pt")) or name.startswith(_OLD_PICKLES):
                self._check_pickle(name)
            elif name.startswith(_MODELS) or name == _OLD_PROGRAM:
                self._check_program(name)
        return self._classes

    def _json(self, name: str) -> Any:
        try:
            return json.loads(self._read(name))
        except (ValueError, RecursionError) as error:
            raise _refusal(self._path, name, f"is no JSON that can be read: {error}") from error

    def _check_payload(self, name: str) -> None:
        """Weights and constants are bytes; torch pickles tensor subclasses and objects only."""
        config: object = self._json(name)
        entries = cast("dict[str, Any]", config).get("config") if isinstance(config, dict) else None
        if not isinstance(entries, dict):
            raise _refusal(self._path, name, "is no list of tensors")
        for key, entry in cast("dict[str, Any]", entries).items():
            if not isinstance(entry, dict) or cast("dict[str, Any]", entry).get("use_pickle") is not False:
                raise _refusal(self._path, name, f"has '{key}' as a pickle, which loading would run")
            if not str(cast("dict[str, Any]", entry).get("path_name")).startswith(("weight_", "tensor_")):
                raise _refusal(self._path, name, f"has '{key}' as a Python object, which loading would run")

    def _check_pickle(self, name: str) -> None:
        """A pickle holds tensors and plain values; torch tries any other without a guard."""
        data = self._read(name)
        if not data:
            return
        try:
            with torch.serialization.safe_globals([(_without_values, _FAKE_TENSOR)]):
                torch.load(io.BytesIO(data), weights_only=True)
        except pickle.UnpicklingError as error:
            said = re.search(r"GLOBAL (\S+)", str(error))
            reason = f"names {said[1]}, which loading would run" if said else "is a pickle of more than tensors"
            raise _refusal(self._path, name, reason) from error
        except (RuntimeError, ValueError, TypeError, KeyError, AttributeError, IndexError, EOFError) as error:
            raise _refusal(self._path, name, f"holds no tensors that can be read: {error}") from error

    def _check_program(self, name: str) -> None:
        program = self._json(name)
        for reason in _wrong_texts(program):
            raise _refusal(self._path, name, reason)
        structures = structures_of(program)
        for module in modules_of_keys(structures):
            raise _refusal(self._path, name, f"has keys of an enumeration of {module}, which loading would import")
        self._classes |= names_of_classes(structures)


def _without_values(description: bytes, _is_parameter: bool) -> torch.Tensor:
    """Takes the place of what makes a tensor without values: looks at its description, and makes none."""
    for reason in _wrong_texts(json.loads(description)):
        raise pickle.UnpicklingError(reason)
    return torch.empty(0)


def _wrong_texts(program: object) -> Iterator[str]:
    """Texts of a program that torch would evaluate, or write into Python text, and that are no plain names."""
    waiting: list[tuple[str, object]] = [("", program)]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(k, v) for k, v in cast("dict[str, object]", value).items() if k not in _FREE]
        elif isinstance(value, list):
            waiting += [(key, v) for v in cast("list[object]", value)]
        elif isinstance(value, str) and not _is_plain(key, value):
            yield f"has {key} {value[:80]!r}, which is none that torch.export writes"


def _is_plain(key: str, text: str) -> bool:
    if key == "expr_str":
        return is_size(text)
    if key in _OPERATORS:
        return _OPERATOR.fullmatch(text) is not None
    if key in _NAMES or key == "forward_arg_names":
        return text == "" or _NAME.fullmatch(text) is not None
    if key == "in_spec":
        return _are_keyword_names(text)
    return key not in _WEIGHTS_KEYS or _WEIGHT_NAME.fullmatch(text) is not None


def _are_keyword_names(spec: str) -> bool:
    """Return whether the keyword arguments of a tree of inputs, which become parameters of a function, are names."""
    try:
        tree: Any = json.loads(spec) if spec else None
        children: Any = tree[1]["children_spec"] if tree is not None else ()
        keywords: Any = children[1]["context"] if len(children) > 1 else None
        names: Any = json.loads(keywords) if isinstance(keywords, str) else keywords
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        return False
    return names is None or all(isinstance(n, str) and _NAME.fullmatch(n) for n in cast("list[object]", names))


def load_pt2(path: str | Path) -> ExportedProgram:
    """Read a program written by `torch.export.save`, after checking that reading executes nothing.

    Raises:
        ImportProgramError: there is no such file, or it is truncated or something else, or holds more than a program.
    """
    file = Path(path)
    hint = "write the file with torch.export.save(torch.export.export(model, args), path)"
    if file.suffix == ".mlir" and file.is_file():
        raise ImportProgramError(
            "this is text of a level, and no .pt2 file",
            where=str(file),
            hint="spyre-opt lowers text, for example with --to superdsc, and spyre-run runs it",
        )
    if not file.is_file():
        message = "this is no file" if file.exists() else "there is no such file"
        raise ImportProgramError(message, where=str(file), hint=hint)
    if not zipfile.is_zipfile(file):
        with file.open("rb") as stream:
            begins_as_zip = stream.read(2) == b"PK"
        message = (
            "the file is truncated: its zip directory is missing"
            if begins_as_zip
            else "this is no .pt2 file: not a zip archive"
        )
        raise ImportProgramError(message, where=str(file), hint=hint)
    if _is_of_torch_save(file):
        hint += "; weights go after --weights, or to bind()"
        raise ImportProgramError("torch.save has written this file, not torch.export.save", where=str(file), hint=hint)
    with torch_noise_hidden() as hidden:
        classes = check_archive(file)
        try:
            with stand_ins_for(classes):
                program = torch.export.load(str(file))
            if program.call_spec.out_spec is None:
                raise ValueError("it does not say how it is called")
        except (*REFUSED, SpecViolationError, OSError, zipfile.BadZipFile) as error:
            message = f"this is no .pt2 file that torch can read: {_cause(error, hidden)}"
            if (operator := _unknown_operator(hidden)) is not None:
                message = f"the program calls {operator}, which is not registered with torch"
                hint = "import the module that registers it first; a plugin does so for the command line"
            raise ImportProgramError(message, where=str(file), hint=hint) from error
    return program


def _is_of_torch_save(file: Path) -> bool:
    """Return whether a zip archive is a pickle of `torch.save`, such as a state dict or a whole module."""
    try:
        with zipfile.ZipFile(file) as archive:
            return any(re.fullmatch(r"[^/]+/data\.pkl", name) for name in archive.namelist())
    except (zipfile.BadZipFile, OSError, UnicodeDecodeError):  # refused by name elsewhere
        return False


def _cause(error: Exception, logged: list[logging.LogRecord]) -> str:
    """What is wrong with a file, of which torch may raise only that a warning says it."""
    said = first_line(error)
    traces = [logging.Formatter().format(r).strip() for r in logged if r.name == torch.export.__name__ and r.exc_info]
    return traces[-1].rpartition("\n")[2] if traces and "check the warnings" in said else said


def _unknown_operator(logged: list[logging.LogRecord]) -> str | None:
    """The operator of a saved program that torch does not know; its error does not say so, but what it logs does."""
    text = "".join(logging.Formatter().format(r) for r in logged if r.name == torch.export.__name__)
    found = re.search(r"failed to resolve torch\.ops\.(\w+)\.(\w+)", text)
    return None if found is None else f"{found[1]}::{found[2]}"

"""A lowered program as the content of an entry, and back: text and numbers, no code.

The last level is not stored: the files of the bundle are, and who asks for the module gets it from the level above by
the last stage, which takes no longer than reading its text would.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields, replace
from functools import partial
from typing import Any, TypeVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.backend.json_file import flat_text, load_text
from spyre_mlir.backend.rendered import RenderedBundle
from spyre_mlir.backend.stored import PROGRAM_FILE
from spyre_mlir.dialects.superdsc.model.json_value import Json, JsonObject
from spyre_mlir.errors import ReadError
from spyre_mlir.options import PassOptions
from spyre_mlir.pipeline import LEVELS, Lowered, StageRecord, lower_last
from spyre_mlir.text.render import module_text, parse_module, verify_module
from spyre_mlir.transforms.loop_to_kernel.precision_loss import PrecisionLosses
from spyre_mlir.transforms.utils.host_fallback import HostStep

_NAME = "cache entry"
_QUICKLY = 1  # of zlib's levels: texts are repetitive, and shrink to a tenth
_MOST_BYTES = 1 << 31
_T = TypeVar("_T")


def packed(lowered: Lowered, bundle: RenderedBundle) -> bytes:
    """Return the content of an entry.

    Args:
        lowered: a program at every level.
        bundle: its files.
    """
    levels = {level: module_text(lowered.modules[level], locations=True) for level in LEVELS[:-1]}
    value: JsonObject = {
        "records": [_plain(replace(record, seconds=0.0)) for record in lowered.records],
        "host_steps": [_plain(step) for step in lowered.host_steps],
        "losses": _plain(lowered.losses),
        "levels": dict(levels),
        "files": dict(bundle.texts),
        "manifest": bundle.manifest,
    }
    return zlib.compress(flat_text(value).encode(), _QUICKLY)


def unpacked(content: bytes, context: Context, options: PassOptions) -> Lowered:
    """Return the lowered program of an entry; levels are read when they are asked for.

    Args:
        content: as `packed` made it.
        context: dialects, passes and the machine.
        options: fields of passes that the program was lowered with.

    Raises:
        ReadError: the content is another one.
    """
    try:
        unzip = zlib.decompressobj()
        text = unzip.decompress(content, _MOST_BYTES).decode()
        value = _object(load_text(text, _NAME))
        levels, files = (_texts(value[name]) for name in ("levels", "files"))
        if not unzip.eof or tuple(levels) != LEVELS[:-1]:
            raise ReadError("the entry is cut off, or has other levels", where=_NAME)
        return Lowered(
            modules=StoredLevels(levels, context, options),
            records=[_made(StageRecord, record) for record in _list(value["records"])],
            host_steps=tuple(_made(HostStep, step) for step in _list(value["host_steps"])),
            losses=_made(PrecisionLosses, value["losses"]),
            rendered=RenderedBundle(
                partial(_module, files[PROGRAM_FILE], context, PROGRAM_FILE), files, _object(value["manifest"])
            ),
            recalled=True,
        )
    except (zlib.error, UnicodeDecodeError, KeyError, TypeError) as error:
        raise ReadError(f"the entry has another form: {error}", where=_NAME) from error


class StoredLevels(Mapping[str, ModuleOp]):
    """Modules by level, each made when it is first asked for.

    Args:
        texts: by level, the last left out.
        context: dialects, passes and the machine.
        options: fields of passes that the program was lowered with.
    """

    def __init__(self, texts: Mapping[str, str], context: Context, options: PassOptions) -> None:
        self._texts = texts
        self._context = context
        self._options = options
        self._modules: dict[str, ModuleOp] = {}

    def __getitem__(self, level: str) -> ModuleOp:
        """Read the text of a level, or lower the one above it.

        Raises:
            KeyError: there is no such level.
            ReadError: the text is none of ours.
        """
        if level not in self._modules:
            self._modules[level] = self._made(level)
        return self._modules[level]

    def _made(self, level: str) -> ModuleOp:
        if level == LEVELS[-1]:
            return lower_last(self[LEVELS[-2]], self._context, self._options)
        return _module(self._texts[level], self._context, level)

    def __iter__(self) -> Iterator[str]:
        """The levels in order."""
        return iter(LEVELS)

    def __len__(self) -> int:
        """Return their number."""
        return len(LEVELS)


def _module(text: str, context: Context, name: str) -> ModuleOp:
    # Ops without a place in the model get none in this text.
    module = parse_module(text, context, name, locations=False)
    verify_module(module)
    return module


def _plain(value: Any) -> JsonObject:
    return asdict(value)


def _made(kind: type[_T], value: Json) -> _T:
    """An object of a dataclass of texts and numbers."""
    given = _object(value)
    for field in fields(cast(Any, kind)):
        wanted = {"str": str, "int": int, "float": float}[cast(str, field.type)]
        if type(given[field.name]) is not wanted:
            raise TypeError(f"{field.name} of {kind.__name__} is {given[field.name]!r}")
    return kind(**given)


def _texts(value: Json) -> dict[str, str]:
    texts = _object(value)
    if not all(isinstance(text, str) for text in texts.values()):
        raise TypeError("a text is something else")
    return cast("dict[str, str]", texts)


def _object(value: Json) -> JsonObject:
    if not isinstance(value, dict):
        raise TypeError(f"expected an object, got {type(value).__name__}")
    return value


def _list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list, got {type(value).__name__}")
    return value

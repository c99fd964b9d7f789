"""Key of a lowered program: a digest of all that lowering depends on."""

from __future__ import annotations

import sys
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version

from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.cache.errors import NotCacheableError
from spyre_mlir.cache.identity import identity
from spyre_mlir.cache.sources import VERSIONED, compiler_digest
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.options import PassOptions
from spyre_mlir.plugins.registry import load_plugins, registrations
from spyre_mlir.text.render import module_text

# Changes with the form of entries.
_FORM = "1"


def program_key(module: ModuleOp, options: PassOptions, spec: SpyreSpec) -> str:
    """Return the key of a program: of its text with all places in the model, the options, the card, and the code.

    Args:
        module: at the aten level.
        options: fields of passes.
        spec: the card.

    Raises:
        NotCacheableError: something it depends on has no identity.
    """
    load_plugins()
    parts = [
        _FORM,
        *_code(),
        identity(sorted((name, sorted(fields.items())) for name, fields in options.items())),
        identity(spec),
        _registered(),
        module_text(module, generic=True, locations=True),
    ]
    digest = sha256()
    for part in parts:
        digest.update(f"{len(part)}:{part}".encode())
    return digest.hexdigest()


@cache
def _code() -> tuple[str, ...]:
    """What computes: this compiler by its source, others by their versions."""
    return (compiler_digest(), sys.version, *(f"{name} {_version(name)}" for name in VERSIONED))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError as error:
        raise NotCacheableError(f"the version of {name} is not known") from error


def _registered() -> str:
    found = registrations()
    return identity(found) if found else ""

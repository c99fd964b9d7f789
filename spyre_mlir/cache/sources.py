"""Digests of packages: by the record of an installed distribution, else by their source files."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from spyre_mlir.backend.json_file import load_text
from spyre_mlir.cache.errors import NotCacheableError

_LOADED = time.time()
_SUFFIXES = frozenset({".py", ".so", ".pyd"})
_MOST_BYTES = 1 << 28
# What these are is said by the versions in a key.
VERSIONED = ("xdsl", "torch", "numpy", "ml_dtypes")


def is_versioned(module: str) -> bool:
    """Return whether the versions in a key say what a module is."""
    root = module.partition(".")[0]
    return root == "spyre_mlir" or root in VERSIONED or root in sys.stdlib_module_names


def package_digest(name: str) -> str:
    """Return the digest of a package or of a module that is in none.

    Raises:
        NotCacheableError: it has no source that can be read, or one that has changed since this process began.
    """
    return f"record {recorded}" if (recorded := _recorded(name)) is not None else _source_digest(name)


@cache
def _recorded(name: str) -> str | None:
    """The digest of an installed distribution's list of files and digests; None if its files may change in place."""
    try:
        found = distribution(name)
    except (PackageNotFoundError, ValueError):
        return None
    record = found.read_text("RECORD")
    origin = load_text(found.read_text("direct_url.json") or "{}", f"direct_url.json of {name}")
    editable = isinstance(origin, dict) and "dir_info" in origin
    return None if editable or not record else sha256(record.encode()).hexdigest()


@cache
def _source_digest(name: str) -> str:
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        raise NotCacheableError(f"the package {name} has no source")
    return tree_digest(name, _roots(spec), _LOADED)


def _roots(spec: ModuleSpec) -> list[Path]:
    if spec.submodule_search_locations is not None:
        return [Path(place) for place in spec.submodule_search_locations]
    return [] if spec.origin is None else [Path(spec.origin)]


def tree_digest(name: str, roots: list[Path], loaded: float) -> str:
    """Return the digest of the source files in folders, or of single files.

    Args:
        name: of the package, for errors.
        roots: folders or files.
        loaded: when the code may have been loaded; later files may not be what runs.

    Raises:
        NotCacheableError: a file cannot be read or is later, or there is none, or they are too many.
    """
    total, digest = 0, sha256()
    for path, label in (pair for root in roots for pair in _files(root)):
        try:
            state, content = path.stat(), path.read_bytes()
        except OSError as error:
            raise NotCacheableError(f"the source of {name} cannot be read: {path}: {error.strerror}") from error
        if state.st_mtime > loaded:
            raise NotCacheableError(f"the source of {name} has changed since this process began: {path}")
        total += len(content)
        if total > _MOST_BYTES:
            raise NotCacheableError(f"the source of {name} has more than {_MOST_BYTES:,} bytes")
        digest.update(f"{label}\0{len(content)}\0".encode() + content)
    if not total:
        raise NotCacheableError(f"the package {name} has no source")
    return f"source {digest.hexdigest()}"


def _files(root: Path) -> Iterator[tuple[Path, str]]:
    if root.is_file():
        yield root, root.name
        return
    for path in sorted(p for p in root.rglob("*") if p.suffix in _SUFFIXES):
        yield path, path.relative_to(root).as_posix()


@cache
def compiler_digest() -> str:
    """Return the digest of this package's source.

    Raises:
        NotCacheableError: the source has changed since this process began.
    """
    return tree_digest("spyre_mlir", [Path(__file__).parent.parent], _LOADED)

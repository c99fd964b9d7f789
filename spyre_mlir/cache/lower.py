"""Lowering by way of the cache.

Decision: docs/decisions/0122-a-cache-of-text.md
"""

from __future__ import annotations

import logging
import os

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.cache.entry import packed, unpacked
from spyre_mlir.cache.errors import NotCacheableError
from spyre_mlir.cache.key import program_key
from spyre_mlir.cache.settings import store_of
from spyre_mlir.cache.store import DamagedEntryError, Store, sealed
from spyre_mlir.errors import EmitError, ReadError
from spyre_mlir.options import CompileOptions
from spyre_mlir.pipeline import LEVELS, Lowered, PassWatcher, lower
from spyre_mlir.transforms.utils.host_fallback import tell_host_steps

log = logging.getLogger(__name__)


def lower_once(
    module: ModuleOp,
    context: Context,
    options: CompileOptions,
    *,
    until: str = LEVELS[-1],
    watch: PassWatcher | None = None,
    rare: bool = False,
    saved: Store | None = None,
) -> Lowered:
    """Lower an aten module, or take its lowered program from the cache.

    Args:
        module: verified, at the aten level.
        context: dialects, passes and the machine.
        options: which may refuse the cache.
        until: the last level wanted; only programs at all levels are cached.
        watch: is told of every pass that runs.
        rare: whether the program is one of many that may never come again; then only the second time keeps it, because
            writing an entry takes nearly as long as lowering.
        saved: entries of a saved model, which are looked for first, whatever the options say of the cache.

    Raises:
        InputError: the environment asks for a cache of no size.
        UnsupportedError: host steps are refused; all of them are listed.
        LoweringError: the program does not fit the machine.
    """
    store = store_of(os.environ) if options.cache and until == LEVELS[-1] else None
    places = [place for place in (saved, store) if place is not None]
    key = lowered_key(module, options) if places else None
    for place in places:
        if key is not None and (found := _recalled(place, key, context, options)) is not None:
            tell_host_steps(found.host_steps, options.host_fallback)
            return found
    fields, fallback = options.passes(), options.host_fallback
    lowered = lower(module, context, until=until, options=fields, watch=watch, host_fallback=fallback)
    if store is not None and key is not None and (not rare or store.met(key)):
        _keep(store, key, lowered)
    return lowered


def lowered_key(module: ModuleOp, options: CompileOptions) -> str | None:
    """Return the key of the lowered program of an aten module; None if it depends on an object without an identity."""
    try:
        return program_key(module, options.passes(), options.spec)
    except NotCacheableError as error:
        log.info("not cached: %s", error)
        return None


def _recalled(store: Store, key: str, context: Context, options: CompileOptions) -> Lowered | None:
    try:
        content = store.read(key)
        if content is None:
            return None
        lowered = unpacked(content, context, options.passes())
    except (DamagedEntryError, ReadError) as error:
        log.warning("a cache entry is damaged, and the program is compiled again: %s: %s", store.path(key), error)
        store.remove(key)
        return None
    log.info("lowered before: %s", store.path(key))
    return lowered


def entry_of(key: str, lowered: Lowered) -> bytes | None:
    """Return the bytes of the entry of a lowered program; None if it cannot be written as files."""
    content = _content(lowered)
    return None if content is None else sealed(key, content)


def _content(lowered: Lowered) -> bytes | None:
    try:
        lowered.rendered = lowered.bundle()
    except EmitError as error:
        log.info("not cached: %s", error.message)
        return None
    return packed(lowered, lowered.rendered)


def _keep(store: Store, key: str, lowered: Lowered) -> None:
    content = _content(lowered)
    if content is not None and store.write(key, content):
        log.info("cached: %s", store.path(key))

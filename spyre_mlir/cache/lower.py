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
from spyre_mlir.cache.store import DamagedEntryError, Store
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
) -> Lowered:
    """Lower an aten module, or take from the cache what lowering it has given before.

    Args:
        module: verified, at the aten level.
        context: dialects, passes and the machine.
        options: which may refuse the cache.
        until: the last level wanted; only programs at all levels are cached.
        watch: is told of every pass that runs.
        rare: whether the program is one of many that may never come again; then only the second time keeps it, because
            writing an entry takes nearly as long as lowering.

    Raises:
        InputError: the environment asks for a cache of no size.
        UnsupportedError: host steps are refused; all of them are listed.
        LoweringError: the program does not fit the machine.
    """
    store = store_of(os.environ) if options.cache and until == LEVELS[-1] else None
    key = None if store is None else _key(module, options)
    if store is not None and key is not None and (found := _recalled(store, key, context, options)) is not None:
        tell_host_steps(found.host_steps, options.host_fallback)
        return found
    fields, fallback = options.passes(), options.host_fallback
    lowered = lower(module, context, until=until, options=fields, watch=watch, host_fallback=fallback)
    if store is not None and key is not None and (not rare or store.met(key)):
        _keep(store, key, lowered)
    return lowered


def _key(module: ModuleOp, options: CompileOptions) -> str | None:
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


def _keep(store: Store, key: str, lowered: Lowered) -> None:
    try:
        lowered.rendered = lowered.bundle()
    except EmitError as error:
        log.info("not cached: %s", error.message)
        return
    if store.write(key, packed(lowered, lowered.rendered)):
        log.info("cached: %s", store.path(key))

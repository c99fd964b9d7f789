"""One pass per file; the file is named after the pass, and some are in a folder of their kind.

`spyre_mlir.pipeline` says which run, and when.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.errors import RegistrationError
from spyre_mlir.plugins import registry
from spyre_mlir.text.render import verify_module

FOLDERS = ("", "aten_forms", "buffer_layouts", "cut_nests", "host_program")
"""Where every module is a pass: in this folder, and in these. `PlaceLxPass` of `place_lx.py` is `place-lx`."""


@cache
def _modules() -> Mapping[str, str]:
    """Modules of our passes by the names of these, in alphabetical order."""
    found: dict[str, str] = {}
    for folder in FOLDERS:
        for module in iter_modules([str(Path(place, folder)) for place in __path__]):
            if not module.ispkg:
                home = ".".join(filter(None, (__name__, folder, module.name)))
                found[module.name.replace("_", "-")] = home
    return MappingProxyType(dict(sorted(found.items())))


def _load(name: str) -> type[ModulePass]:
    pass_: type[ModulePass] = getattr(import_module(_modules()[name]), f"{name.title().replace('-', '')}Pass")
    return pass_


def get_all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Return loaders of our passes and of plugin passes, by name.

    Raises:
        RegistrationError: a plugin claims the name of a pass of ours.
    """
    ours = {name: partial(_load, name) for name in _modules()}
    for registered in registry.all_passes():
        if registered.op in ours:
            raise RegistrationError(
                f"the pass {registered.op} is claimed by both spyre_mlir and {registered.owner}",
                hint="give yours another name",
            )
    return ours | {r.op: partial(_of_plugin, r) for r in registry.all_passes()}


def _of_plugin(registered: registry.Registered) -> type[ModulePass]:
    """A pass as its author wrote it; mistakes in it, and IR that does not verify, are told with the author's name."""
    theirs = cast("type[ModulePass]", registered.function)

    class Blamed(theirs):
        def apply(self, ctx: Context, op: ModuleOp) -> None:
            with registered.blamed():
                cast(Any, super()).apply(ctx, op)
            try:
                verify_module(op)
            except VerifyException as error:
                message = f"the pass {registered.op} of {registered.owner} leaves IR that does not verify: {error}"
                raise RegistrationError(message, where=str(getattr(error, "op", op).location)) from error

    return Blamed

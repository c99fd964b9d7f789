"""xDSL definitions of the levels; every dialect loads when a file first uses it.

Decision: docs/decisions/0017-dialects-folder.md
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Dialect


def get_all_dialects() -> dict[str, Callable[[], Dialect]]:
    """Return factories of our dialects by name."""

    def aten() -> Dialect:
        from spyre_mlir.dialects.aten import Aten

        return Aten

    def control() -> Dialect:
        from spyre_mlir.dialects.ir.control import Control

        return Control

    def spyre() -> Dialect:
        from spyre_mlir.dialects.spyre import Spyre

        return Spyre

    def superdsc() -> Dialect:
        from spyre_mlir.dialects.superdsc import Superdsc

        return Superdsc

    def sdscbundle() -> Dialect:
        from spyre_mlir.dialects.sdscbundle import Sdscbundle

        return Sdscbundle

    def ktdp() -> Dialect:
        from spyre_mlir.dialects.ktdp import Ktdp

        return Ktdp

    def spyreop() -> Dialect:
        from spyre_mlir.dialects.ktdp import Spyreop

        return Spyreop

    return {
        "aten": aten,
        "control": control,
        "spyre": spyre,
        "superdsc": superdsc,
        "sdscbundle": sdscbundle,
        "ktdp": ktdp,
        "spyreop": spyreop,
    }

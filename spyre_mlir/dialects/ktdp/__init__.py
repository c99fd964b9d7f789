"""KTIR, the kernel language of tiles: the dialect `ktdp`, and the type of `spyreop` that its programs use.

Written after RFC 0682 and the front end's and the CPU interpreter's sources (torch-spyre); likely. The text is the one
both of them read: custom assembly only, a region's brace at the end of its line, dictionaries without values.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from spyre_mlir.dialects.ktdp.attributes import (
    AccessTileType,
    Df16Type,
    MemorySpaceAttr,
    SpyreMemorySpaceAttr,
    TileFutureType,
)
from spyre_mlir.dialects.ktdp.cores import InterTileProduceOp, InterTileReduceOp, YieldPartialOp, YieldReducedOp
from spyre_mlir.dialects.ktdp.grid import CoreidOp, GetComputeTileIdOp
from spyre_mlir.dialects.ktdp.indirect import ConstructIndirectAccessTileOp
from spyre_mlir.dialects.ktdp.tiles import ConstructAccessTileOp, LoadOp, StoreOp
from spyre_mlir.dialects.ktdp.views import ConstructDistributedMemoryViewOp, ConstructMemoryViewOp

Ktdp = Dialect(
    "ktdp",
    [
        GetComputeTileIdOp,
        CoreidOp,
        ConstructMemoryViewOp,
        ConstructDistributedMemoryViewOp,
        ConstructAccessTileOp,
        ConstructIndirectAccessTileOp,
        LoadOp,
        StoreOp,
        InterTileProduceOp,
        YieldPartialOp,
        InterTileReduceOp,
        YieldReducedOp,
    ],
    [AccessTileType, TileFutureType, MemorySpaceAttr, SpyreMemorySpaceAttr],
)

Spyreop = Dialect("spyreop", [], [Df16Type])

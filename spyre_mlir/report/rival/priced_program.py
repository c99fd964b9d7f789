"""A program by one planner: kernels and their times, each with the operation that it was made for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.dialects.places import source_of
from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.hw.cost_parameters import Profile
from spyre_mlir.machine.bundle.schedule import Items, launches
from spyre_mlir.machine.bundle.timeline import TimedKernel, Timeline
from spyre_mlir.report.graphs.building import flat_copy, kernels_in
from spyre_mlir.report.plan_picture import PlannedRow, kernel_row
from spyre_mlir.report.rival.attention import PlacedItem, TiledAttention, with_tiles
from spyre_mlir.report.rival.beside import SideKernel
from spyre_mlir.report.shares import moves
from spyre_mlir.report.timing import module_schedule, schedule_timeline
from spyre_mlir.text.render import value_names


@dataclass(frozen=True)
class PricedProgram:
    """A program by one planner.

    Attributes:
        kernels: the operation of each, by number, what it is, and its time.
        divided: kernels that the planner divided one by one.
        timeline: of the program.
        tiles: attentions that run in tiles, by number of the operation; those in loops of the program do not.
        modules: they hold the kernels.
    """

    kernels: Sequence[tuple[int, PlannedRow, TimedKernel]]
    divided: Sequence[KernelOp]
    timeline: Timeline
    tiles: Mapping[int, TiledAttention]
    modules: Sequence[ModuleOp] = field(repr=False)

    @staticmethod
    def of(
        kernels: ModuleOp, files: ModuleOp, profile: Profile, tiles: Mapping[int, TiledAttention] | None = None
    ) -> PricedProgram:
        """Price a program at the last two levels, with loops over tiles in the place of some attentions, by number."""
        flat, schedule = flat_copy(kernels), module_schedule(files)
        own = _placed(schedule.items, kernels_in(flat))
        tiles = {one.number: tiles[one.number] for one in own if tiles is not None and one.number in tiles}
        placed = with_tiles(own, tiles)
        timeline = schedule_timeline(files, replace(schedule, items=tuple([one.item for one in placed])), profile)
        # Equal attentions share a module.
        modules = list(dict.fromkeys([flat, *(one.module for one in tiles.values())]))
        texts = {value: name for module in modules for value, name in value_names(module).items()}
        ops = [(number, op) for one in placed for number, op in one.ops]
        rows = [
            (number, kernel_row(op, 0, texts, timed.launch.file.removesuffix(".json")), timed)
            for (number, op), timed in zip(ops, timeline.kernels, strict=True)
        ]
        divided = [op for one in own if one.number not in tiles for _, op in one.ops]
        return PricedProgram(rows, divided, timeline, tiles, modules)

    def side(self, number: int) -> tuple[SideKernel, ...]:
        """Return the kernels that were made for an operation."""
        return tuple(
            SideKernel(row, k.cost.total, k.work.trips, k.work.moved() * k.work.trips, moves(k))
            for own, row, k in self.kernels
            if own == number
        )


def _placed(items: Items, kernels: Sequence[KernelOp]) -> list[PlacedItem]:
    """Launches and loops of a program with their kernels."""
    following: Iterator[KernelOp] = iter(kernels)
    found = list[PlacedItem]()
    for item in items:
        ops = [next(following) for _ in launches((item,))]
        found.append(PlacedItem(item, tuple((source_of(op.location).number, op) for op in ops)))
    if next(following, None) is not None:
        raise ValueError(f"{len(kernels)} kernels, and fewer launches")
    return found


__all__ = ["PricedProgram"]

"""Pass `plan`: divides kernels over the cores and chooses loops around groups of them, by predicted time.

A division that is quickest for one kernel may send what it shares with its neighbours through device memory, so the
kernels of a block are divided together with the choice of what stays in the scratchpads. A group of kernels that
share a loop may run in blocks of its rows, so that what they hand to each other fits there; a second loop may go around
inside, and what they sum over the rows may grow from trip to trip. Of the loops that are worth trying the one that
gains most is taken, if it gains clearly. Kernels that are divided already stay as they are.

Divisions and places are in the text of the kernels. Loops are notes, which `materialize-plan` follows.

Decision: docs/decisions/0129-kernels-are-planned-together.md
Decision: docs/decisions/0193-plans-share-what-they-know.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block
from xdsl.passes import ModulePass

from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.target import spec_of
from spyre_mlir.transforms.kernel_loops.group_loops import GroupLoops, PutNest
from spyre_mlir.transforms.kernel_loops.hinted_loops import put_hinted_loops
from spyre_mlir.transforms.kernel_loops.repeated_weights import repeat_weights
from spyre_mlir.transforms.kernel_loops.row_blocks import cut_rows
from spyre_mlir.transforms.kernel_plans.divided_blocks import (
    divide_as_usual,
    divide_block,
    divide_trips,
    kernels_in,
    move_to,
)
from spyre_mlir.transforms.kernel_plans.kernel_choices import KernelChoices
from spyre_mlir.transforms.kernel_plans.plan_record import PlanRecord
from spyre_mlir.transforms.kernel_plans.sliced_sums import slice_sums
from spyre_mlir.transforms.place_lx import without_room
from spyre_mlir.transforms.plan_notes.kernel_forms import KernelForms
from spyre_mlir.transforms.plan_notes.notes import has_notes, put_time
from spyre_mlir.transforms.planned_loops.loop_search import LoopSearch
from spyre_mlir.transforms.planned_loops.written_loops import note_loops, times_of
from spyre_mlir.transforms.utils.cost_numbers import given_numbers
from spyre_mlir.transforms.utils.hints import has_tile, hinted_place, refuse_untiled, settle_hints
from spyre_mlir.transforms.utils.kernels.widened_weights import widens_any

NO_LOOPS = "options ask for no loops (tile=False, or concrete addresses without loops=unroll): change them or the hint"


@dataclass(frozen=True)
class PlanPass(ModulePass):
    """Chooses divisions and loops for the kernels of every function.

    Attributes:
        together: whether kernels are divided together; if not, all is left to `divide-work`, and no loop is made.
        loops: whether kernels may be put into loops.
        shortest_us: a group that takes less is put into no loop: the shortest kernel that was measured took 15 us.
        numbers: of the cost model that differ from its calibrated profile, as ``name=value``.
    """

    name = "plan"

    together: bool = True
    loops: bool = True
    shortest_us: int = 15
    numbers: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Plan every function of the module; what cannot be divided is left to `divide-work`, loops are noted."""
        for one, us in times_of(self._plan(ctx, op, noted=True)).items():
            put_time(one, us)

    def recorded(self, ctx: Context, op: ModuleOp) -> PlanRecord:
        """Plan every function of the module with its loops in place, and return what was looked at."""
        return self._plan(ctx, op, noted=False)

    def predicted_us(self, ctx: Context, op: ModuleOp) -> list[float | None]:
        """Return the predicted time of each function; None of one whose kernels are not planned together.

        Args:
            ctx: has the card.
            op: the module; it is changed, and more may be in the scratchpads than there is room for.
        """
        return self._plan(ctx, op, noted=False, fits=False).us

    def _plan(self, ctx: Context, op: ModuleOp, *, noted: bool, fits: bool = True) -> PlanRecord:
        record = PlanRecord()
        choices = partial(KernelChoices.known, spec_of(ctx, op), given_numbers(self.numbers), narrow=widens_any(op))
        for function in functions(op):
            if has_notes(function):
                continue  # it is planned
            spare = function.body.clone() if self.together and self.loops else None
            kernels, blocks = kernels_in(function.body.block), len(record.blocks)
            found = self._planned(choices(), function.body.block, record, search=self.loops, fits=fits)
            if spare is not None and not found.gains:
                tried, spare = spare, spare.clone() if noted and any(map(has_tile, kernels_in(spare.block))) else None
                function.detach_region(function.body)
                function.add_region(tried)
                record.start_again(blocks, dict(zip(kernels, kernels_in(tried.block), strict=True)))
                found = self._planned(choices(), tried.block, record, search=False, fits=fits)
            if noted and spare is not None and found.nests:
                note_loops(function, spare, found.nests, found.forms, record, spec_of(ctx, op))
        return record

    def _planned(
        self, choices: KernelChoices, block: Block, record: PlanRecord, *, search: bool, fits: bool
    ) -> _Planned:
        """Plan a block; without a search only loops that hints ask for are put, and `fits` looks for room."""
        written = [op for op in block.ops if isinstance(op, scf.ForOp)]
        trips = [op for loop in written for op in kernels_in(loop.body.block)]
        settle_hints([*kernels_in(block), *trips], choices.spec)
        builder, forms = GroupLoops(choices, record), KernelForms(kernels_in(block))
        if self.together and search and choices.narrow:
            repeat_weights(block, choices.is_widened, forms, choices.spec, choices.parameters)
            cut_rows(block, choices.is_widened, forms, choices.parameters)
            choices.moved()
        hinted_us = 0.0
        if self.together and self.loops:
            hinted_us = put_hinted_loops(block, builder)
        else:
            refuse_untiled(kernels_in(block), NO_LOOPS)
        if not (self.together and divide_as_usual(block, choices)):
            for value in [op.output for op in kernels_in(block) if hinted_place(op.output) == "lx"]:
                move_to(value, "lx")  # `place-lx` finds room for it, or refuses
            record.us.append(None)
            return _Planned(True, builder.nests, forms)
        slice_sums(block, choices, forms)
        loops = LoopSearch(block, builder, forms, self.shortest_us)
        if search:
            loops.put()
        others_us = divide_block(block, choices, record) + sum(
            divide_trips(loop, choices, record) for loop in written if divide_as_usual(loop.body.block, choices)
        )
        for alloc in without_room(block, choices.spec) if fits else ():
            if hinted_place(alloc.result) != "lx":
                move_to(alloc.result, "hbm")
        record.us.append(hinted_us + (loops.inside_us or 0.0) + others_us)
        gains = loops.inside_us is None or loops.inside_us + others_us <= loops.without_us
        return _Planned(gains, builder.nests, forms)


@dataclass(frozen=True)
class _Planned:
    """A block after planning.

    Attributes:
        gains: whether loops around some of its kernels take no more from the others than they gain.
        nests: these loops.
        forms: its kernels before any loop.
    """

    gains: bool
    nests: Sequence[PutNest]
    forms: KernelForms

"""The best placement of buffers in a scratchpad, by OR-Tools' constraint solver: what `packing.py` compares with.

Needs `pip install spyre-mlir[exact]`. One worker and a deterministic limit, so equal problems have equal answers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from ortools.sat.python import cp_model

from spyre_mlir.hw.placement import Pair, Request

DETERMINISTIC_SECONDS = 2.0


def most_saved(requests: Sequence[Request], capacity: int, takeovers: Collection[Pair]) -> tuple[int, bool]:
    """Return what the best placement saves, and whether that is proved."""
    model = cp_model.CpModel()
    able = [r for r in requests if r.size <= capacity]
    has = {r.number: model.new_bool_var(f"has{r.number}") for r in able}
    at = {r.number: model.new_int_var(0, capacity - r.size, f"at{r.number}") for r in able}
    by_number = {r.number: r for r in able}
    takes = dict[Pair, cp_model.IntVar]()
    for dying, born in takeovers:
        if dying in has and born in has and by_number[dying].size == by_number[born].size:
            taken = takes[dying, born] = model.new_bool_var(f"takes{dying}_{born}")
            model.add_implication(taken, has[dying])
            model.add_implication(taken, has[born])
            model.add(at[dying] == at[born]).only_enforce_if(taken)
    given, times, places = defaultdict[int, list[cp_model.IntVar]](list), [], []
    for (dying, _), taken in takes.items():
        given[dying].append(taken)
    for r in able:
        # The last point in time of a buffer whose address is taken over is the other's.
        model.add_at_most_one(given[r.number])
        end = r.last + 1 - sum(given[r.number])
        length = r.last + 1 - r.first - sum(given[r.number])
        times.append(model.new_optional_interval_var(r.first, length, end, has[r.number], f"time{r.number}"))
        places.append(model.new_optional_fixed_size_interval_var(at[r.number], r.size, has[r.number], f"at{r.number}"))
    model.add_no_overlap_2d(times, places)
    model.add_cumulative(times, [r.size for r in able], capacity)
    model.maximize(sum(r.saved * has[r.number] for r in able))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = DETERMINISTIC_SECONDS
    status = solver.solve(model)
    return round(solver.objective_value), status == cp_model.OPTIMAL

"""Packing of scratchpads: hard problems, and what placements of captured problems leave in device memory.

`python benchmarks/packing.py` shows steps and CPU seconds for the problems of `tests/data/minimalloc`, then compares
first fit, `spyre_mlir.planning.scratchpad` and the best placement there is: bytes that cross device memory because
their buffer has no place. Problems are the requests of real place-lx calls in `data/lx_requests.csv`, at 100, 50 and
25 % of a scratchpad and at 75, 50 and 25 % of the bytes that the problem has alive at once. Those where first fit has a
place for everything are not listed.

`--capture` writes the requests anew, from Llama layers and the zoo; `--exact` the best placements, with OR-Tools
(`pip install spyre-mlir[exact]`). A best placement is proved by the solver, or by saving what the bound allows.
"""

from __future__ import annotations

import csv
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spyre_mlir.hw.placement import Pair, Request, first_fit
from spyre_mlir.hw.spec import SPYRE, STICK_BYTES
from spyre_mlir.planning.packing import Buffer, live_peak, pack
from spyre_mlir.planning.scratchpad import choose, place

ROOT = Path(__file__).resolve().parent.parent
REQUESTS = ROOT / "benchmarks" / "data" / "lx_requests.csv"
OPTIMA = ROOT / "benchmarks" / "data" / "lx_optima.csv"
HARD_BYTES = 1_048_576
HARD_STEPS = 400_000
EVERY_STATE = 1_000_000
# Hidden size, tokens, inner size, heads, key and value heads; the first ones are Granite's.
LAYERS = [
    (4096, 512, 12800, 32, 8),
    (4096, 2048, 12800, 32, 8),
    (4096, 128, 12800, 32, 8),
    (4096, 64, 12800, 32, 8),
    (4096, 4, 12800, 32, 8),
    (2048, 1024, 8192, 32, 8),
    (2048, 512, 8192, 32, 8),
    (2048, 128, 8192, 32, 8),
    (1024, 2048, 3072, 16, 8),
    (1024, 512, 3072, 8, 4),
    (1024, 128, 3072, 8, 4),
    (768, 512, 3072, 12, 12),
]


@dataclass
class Problem:
    """Requests of one place-lx call."""

    requests: list[Request] = field(default_factory=list[Request])
    takeovers: set[Pair] = field(default_factory=set[Pair])

    def capacities(self) -> Iterator[tuple[str, int, int]]:
        """Capacities to try: of what, percent, bytes."""
        alive = live_peak([Buffer(r.first, r.last + 1, r.size) for r in self.requests])
        for of, whole, shares in (("lx", SPYRE.lx_usable_bytes, (100, 50, 25)), ("alive", alive, (75, 50, 25))):
            for percent in shares:
                if capacity := whole * percent // 100 // STICK_BYTES * STICK_BYTES:
                    yield of, percent, capacity

    def left(self, addresses: Mapping[int, int]) -> int:
        """Sticks that cross device memory for buffers without an address."""
        return sum(r.saved for r in self.requests if r.number not in addresses)


def problems() -> dict[str, Problem]:
    found = defaultdict[str, Problem](Problem)
    with REQUESTS.open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            numbers = {name: int(row[name]) for name in ("number", "size", "first", "last", "saved")}
            problem = found[row["model"]]
            problem.requests.append(Request(**numbers))
            problem.takeovers |= {(int(dying), numbers["number"]) for dying in row["takes_over"].split()}
    return found


def hard_problems() -> None:
    print(f"{'problem':8} {'buffers':>7} {'steps':>8} {'CPU s':>6}")
    for path in sorted((ROOT / "tests" / "data" / "minimalloc").glob("*.csv")):
        with path.open(encoding="utf-8") as lines:
            rows = csv.DictReader(lines)
            buffers = [Buffer(int(row["lower"]), int(row["upper"]), int(row["size"])) for row in rows]
        started = time.process_time()
        found = pack(buffers, HARD_BYTES, HARD_STEPS)
        seconds = time.process_time() - started
        packed = "" if found.addresses is not None else "  not packed"
        print(f"{path.name[0]:8} {len(buffers):7} {found.steps:8} {seconds:6.1f}{packed}", flush=True)


def captured_problems() -> None:
    captured, worst, worst_quick, better, seconds = problems(), 1.0, 1.0, 0, 0.0
    with OPTIMA.open(encoding="utf-8") as lines:
        optima = list(csv.DictReader(lines))
    print(f"\n{'model':26} {'requests':>8} {'capacity':>12} {'first fit':>12} {'placed':>12} {'best':>12}  bytes left")
    for row in optima:
        problem, capacity = captured[row["model"]], int(row["capacity"])
        quick = problem.left(first_fit(problem.requests, capacity, problem.takeovers))
        started = time.process_time()
        left = problem.left(place(problem.requests, capacity, problem.takeovers))
        seconds += time.process_time() - started
        best = int(row["left"])
        worst, worst_quick = max(worst, left / best), max(worst_quick, quick / best)
        better += left < quick
        share = f"{row['percent']} % {row['of']}"
        figures = " ".join(f"{sticks * STICK_BYTES:12,}" for sticks in (quick, left, best))
        print(f"{row['model']:26} {len(problem.requests):8} {share:>12} {figures}")
    print(
        f"{len(optima)} problems of {len(captured)} models; {better} better than first fit, {seconds:.1f} CPU s for all"
    )
    print(f"at most {worst:.3f} times the bytes of the best placement; first fit: {worst_quick:.3f}")


def write_optima() -> None:
    from exact_placement import most_saved

    with OPTIMA.open("w", encoding="utf-8", newline="") as lines:
        out = csv.writer(lines, lineterminator="\n")
        out.writerow(["model", "of", "percent", "capacity", "left", "proof"])
        for name, problem in problems().items():
            for of, percent, capacity in problem.capacities():
                if len(first_fit(problem.requests, capacity, problem.takeovers)) == len(problem.requests):
                    continue
                saved, proved = most_saved(problem.requests, capacity, problem.takeovers)
                proof = "solver"
                if not proved:
                    bound = choose(problem.requests, capacity, problem.takeovers, EVERY_STATE)
                    proof, proved = "bound", bound.exact and bound.saved == saved
                if proved:
                    left = sum(r.saved for r in problem.requests) - saved
                    out.writerow([name, of, percent, capacity, left, proof])
                else:
                    print(f"{name}, {percent} % of {of}: no proof", flush=True)


def write_requests() -> None:
    from unittest.mock import patch

    from llama import layer

    from spyre_mlir.frontend import import_program
    from spyre_mlir.pipeline import lower
    from spyre_mlir.transforms import place_lx
    from spyre_mlir.universe import make_context

    sys.path.insert(0, str(ROOT))
    from tests.models.zoo import ZOO, build

    calls = list[tuple[Sequence[Request], set[Pair]]]()

    def watched(requests: Sequence[Request], capacity: int, takeovers: set[Pair]) -> dict[int, int]:
        calls.append((requests, takeovers))
        return place(requests, capacity, takeovers)

    makers = {f"llama_{size[0]}_{size[1]}": lambda size=size: layer(*size) for size in LAYERS}
    makers |= {name: lambda name=name: build(name) for name in ZOO}
    with REQUESTS.open("w", encoding="utf-8", newline="") as lines, patch.object(place_lx, "place", watched):
        out = csv.writer(lines, lineterminator="\n")
        out.writerow(["model", "number", "size", "first", "last", "saved", "takes_over"])
        for name, make in makers.items():
            calls.clear()
            model, inputs = make()
            module = import_program(model, inputs if isinstance(inputs, tuple) else (inputs,)).module
            lower(module, make_context())
            requests, takeovers = max(calls, key=lambda call: len(call[0]), default=((), set[Pair]()))
            for r in requests if len(requests) > 1 else ():
                donors = " ".join(str(dying) for dying, born in sorted(takeovers) if born == r.number)
                out.writerow([name, r.number, r.size, r.first, r.last, r.saved, donors])
            print(name, len(requests), flush=True)


def main() -> int:
    if "--capture" in sys.argv:
        write_requests()
    if "--exact" in sys.argv:
        write_optima()
    hard_problems()
    captured_problems()
    return 0


if __name__ == "__main__":
    sys.exit(main())

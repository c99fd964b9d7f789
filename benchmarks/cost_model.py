"""The cost model beside published measurements: error per point and class, rank correlation, sensitivity.

`python benchmarks/cost_model.py [--points] [--profile calibrated]`. Needs no card and no torch: every measured kernel
is described by hand from its op, shape and division, and given to `spyre_mlir.hw.cost`. The measurements and where
they come from are in `benchmarks/data/`. Nothing is fitted here.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from spyre_mlir.hw.cost import CostKind, MatmulLoops, Traffic, Work, cost
from spyre_mlir.hw.cost_parameters import LAWS, PROFILES, CostParameters, scaled, uncertain
from spyre_mlir.hw.formats import DL16

DATA = Path(__file__).parent / "data" / "measurements.csv"
BYTES = DL16.bits // 8
LANES = DL16.elements_per_stick()
PEAK_GB_PER_S = PROFILES["peak"].hbm_gb_per_s


@dataclass(frozen=True)
class Point:
    """One published measurement."""

    group: str
    op: str
    shape: tuple[int, ...]
    cores: int
    splits: tuple[int, int, int, int]
    inside: tuple[bool, bool, bool]  # whether the batch of left, right and result lies inside of the rows in memory
    trips: int
    us: float
    source: str

    def __str__(self) -> str:
        split = "" if self.group not in PRODUCTS else f" over {'x'.join(map(str, self.splits))}"
        if self.group == "batched matmul":
            split += f", outermost {' '.join('rows' if inner else 'batch' for inner in self.inside)},"
        loops = f", {self.trips} trips" if self.trips > 1 else ""
        return f"{self.op} {'x'.join(map(str, self.shape))}{split} on {self.cores}{loops}"


PRODUCTS = ("matmul", "batched matmul", "decode")


def read(path: Path = DATA) -> list[Point]:
    with path.open(encoding="utf-8", newline="") as file:
        return [_point(row) for row in csv.DictReader(file)]


def _point(row: dict[str, str]) -> Point:
    splits = tuple(map(int, (row["split"] or "1_1_1_1").split("_")))
    shape = tuple(map(int, row["shape"].split("x")))
    inside = tuple(flag == "1" for flag in (row["inside"] or "1_1_1").split("_"))  # the front end's default layout
    assert len(splits) == 4 and len(inside) == 3
    trips, us = int(row["trips"]), float(row["us"])
    return Point(row["class"], row["op"], shape, int(row["cores"]), splits, inside, trips, us, row["source"])


def sticks(elements: int) -> int:
    """Elements rounded up to whole sticks."""
    return -(-elements // LANES) * LANES


def tensor(rows: int, columns: int, cores: int, *, written: bool = False, small: bool = False) -> Traffic:
    """An operand of `rows` rows, sticks along the columns; a single column is sparse: one stick per row."""
    size = rows * sticks(columns) * BYTES
    share = size if small else size // cores
    return Traffic(bytes=size, needed=rows * columns * BYTES, per_core=share, written=written, small=small)


def product(point: Point) -> Work:
    """A matrix product, operands in device memory."""
    batch, m, k, n = point.shape
    cores, splits = point.cores, point.splits
    _, sm, sn, sk = splits
    left, right, out = (batch * a * sticks(b) * BYTES for a, b in ((m, k), (k, n), (m, n)))
    operands = (
        Traffic(bytes=left, needed=left, per_core=left * sn // cores, readers=sn),
        Traffic(bytes=right, needed=right, per_core=right * sm // cores, readers=sm),
        Traffic(bytes=out, needed=out, per_core=out * sk // cores, written=True),
    )
    left_inside, right_inside, out_inside = (batch if inner else 1 for inner in point.inside)
    inside = left_inside, right_inside, out_inside
    loops = MatmulLoops(batch=batch, rows=m, columns=n, depth=k, splits=splits, inside=inside)
    return Work(kind=CostKind.PRODUCT, cores=cores, elements=loops.macs, operands=operands, product=loops)


def plain(kind: CostKind, rows: int, columns: int, cores: int, operands: Sequence[Traffic], trips: int = 1) -> Work:
    return Work(kind=kind, cores=cores, elements=rows * columns, operands=tuple(operands), rows=rows, trips=trips)


def kernels(point: Point) -> list[Work]:
    """The kernels that a measurement ran, one after the other."""
    if point.group in PRODUCTS:
        return [product(point)]
    rows, columns = point.shape
    if point.op.startswith("softmax"):
        return softmax(point.op, rows, columns, point.cores, point.trips)
    if point.op in CHAINS:
        return [OPS["add"](rows, columns, point.cores)] * CHAINS[point.op]
    return [OPS[point.op](rows, columns, point.cores)]


CHAINS = {"add3": 2, "add4": 3}  # a sum of three and of four tensors


def _pointwise(inputs: int) -> Callable[[int, int, int], Work]:
    def build(r: int, c: int, n: int) -> Work:
        whole = [tensor(r, c, n)] * inputs
        return plain(CostKind.POINTWISE, r, c, n, [*whole, tensor(r, c, n, written=True)])

    return build


def _broadcast(*shapes: str) -> Callable[[int, int, int], Work]:
    """Inputs by shape: `rc` whole, `1c` a row, `r1` a column, `11` a number."""

    def build(r: int, c: int, n: int) -> Work:
        sizes = {"rc": (r, c), "1c": (1, c), "r1": (r, 1), "11": (1, 1)}
        inputs = [tensor(*sizes[s], n, small=s != "rc") for s in shapes]
        return plain(CostKind.POINTWISE, r, c, n, [*inputs, tensor(r, c, n, written=True)])

    return build


def _row_reduction(r: int, c: int, n: int) -> Work:
    return plain(CostKind.ROW_REDUCTION, r, c, n, [tensor(r, c, n), tensor(r, 1, n, written=True)])


def _whole_reduction(r: int, c: int, n: int) -> Work:
    return plain(CostKind.ROW_REDUCTION, r, c, n, [tensor(r, c, n), tensor(1, 1, n, written=True)])


def _outer_reduction(r: int, c: int, n: int) -> Work:
    return plain(CostKind.OUTER_REDUCTION, r, c, n, [tensor(r, c, n), tensor(1, c, n, written=True)])


def _restickify(r: int, c: int, n: int) -> Work:
    return plain(CostKind.RESTICKIFY, r, c, n, [tensor(r, c, n), tensor(r, c, n, written=True)])


def _doubled(r: int, c: int, n: int) -> Work:
    """cat([x, x]): one read, two writes."""
    return plain(CostKind.POINTWISE, 2 * r, c, n, [tensor(r, c, n), tensor(2 * r, c, n, written=True)])


def _outer_transpose(r: int, c: int, n: int) -> Work:
    """[r, 8, c] to [8, r, c]."""
    return plain(CostKind.POINTWISE, 8 * r, c, n, [tensor(8 * r, c, n), tensor(8 * r, c, n, written=True)])


OPS: dict[str, Callable[[int, int, int], Work]] = {
    **dict.fromkeys(("neg", "gelu", "exp"), _pointwise(1)),
    **dict.fromkeys(("add", "mul"), _pointwise(2)),
    "copy": _broadcast("rc", "11"),
    "bcast": _broadcast("rc", "1c"),
    "mulbcast": _broadcast("rc", "1c"),
    "bcastcol": _broadcast("rc", "r1"),
    "write": _broadcast("1c", "r1"),
    **dict.fromkeys(("sumrow", "amax", "mean", "read"), _row_reduction),
    "sumall": _whole_reduction,
    "sumcol": _outer_reduction,
    "transpose": _restickify,
    **dict.fromkeys(("cat0", "cat1"), _doubled),
    "transpose_outer": _outer_transpose,
}


def softmax(op: str, r: int, c: int, n: int, trips: int) -> list[Work]:
    """max, sub, exp, sum, div; in the scratchpads is what the name says, and in a tiled one all but the ends."""
    lx = {
        "softmax-hbm": (),
        "softmax-lx-reductions": ("max", "sum"),
        "softmax-lx-inplace": ("max", "sub", "exp", "sum"),
        "softmax-lx": ("x", "max", "sub", "exp", "sum"),
        "softmax-tiled": ("max", "sub", "exp", "sum"),
    }[op]
    r //= trips  # of one trip
    # The oldest measurements reduce the rows, so that sums lie dense; the tiled ones reduce the lanes.
    folded = (1, c) if trips == 1 else (r, 1)

    def use(name: str, written: bool = False) -> Traffic:
        size = folded if name in ("max", "sum") else (r, c)
        t = tensor(*size, n, written=written)
        return Traffic(bytes=t.bytes, needed=t.needed, per_core=t.bytes // n, written=written, local=name in lx)

    kind = CostKind.OUTER_REDUCTION if trips == 1 else CostKind.ROW_REDUCTION
    steps = [(kind, ("x", "max")), (CostKind.POINTWISE, ("x", "max", "sub")), (CostKind.POINTWISE, ("sub", "exp"))]
    steps += [(kind, ("exp", "sum")), (CostKind.POINTWISE, ("exp", "sum", "div"))]
    works = [plain(k, r, c, n, [*map(use, names[:-1]), use(names[-1], True)], trips) for k, names in steps]
    if "x" in lx:
        source = tensor(r, c, n)
        works.insert(0, plain(CostKind.POINTWISE, r, c, n, [source, use("x", True)], trips))
    works[0] = replace(works[0], iterations=trips if trips > 1 else 0)
    return works


def predicted(point: Point, parameters: CostParameters) -> float:
    return sum(cost(work, parameters).total for work in kernels(point))


def beyond_peak(point: Point) -> bool:
    """Whether the measurement moves its bytes faster than the memory's published peak."""
    return sum(w.moved() * w.trips for w in kernels(point)) / (point.us * 1000) > PEAK_GB_PER_S


def errors(points: Sequence[Point], parameters: CostParameters) -> np.ndarray:
    """Relative errors, prediction less measurement over measurement."""
    return np.array([predicted(p, parameters) / p.us - 1 for p in points])


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's, equal values sharing the mean of their ranks."""

    def ranks(values: Sequence[float]) -> np.ndarray:
        array = np.asarray(values)
        below, equal = (array[None, :] < array[:, None]).sum(1), (array[None, :] == array[:, None]).sum(1)
        return below + (equal - 1) / 2

    return float(np.corrcoef(ranks(one), ranks(other))[0, 1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", choices=list(PROFILES), default="calibrated")
    parser.add_argument("--law", choices=list(LAWS), help="a variant of the calibrated profile")
    parser.add_argument("--points", action="store_true", help="print every point")
    arguments = parser.parse_args()
    parameters, points = LAWS.get(arguments.law, PROFILES[arguments.profile]), read()
    e = errors(points, parameters)
    if arguments.points:
        print(f"{'class':16} {'measured us':>11} {'model us':>9} {'error':>7}  kernel")
        for point, error in zip(points, e, strict=True):
            times = f"{point.us:11.1f} {point.us * (1 + error):9.1f} {error:+7.0%}"
            print(f"{point.group:16} {times}  {point} [{point.source}]")
        print()
    print(f"{'class':16} {'n':>4} {'RMS':>6} {'mean':>6} {'worst':>7} {'rank corr.':>10}")
    model = [p.us * (1 + x) for p, x in zip(points, e, strict=True)]
    for group in [*dict.fromkeys(p.group for p in points), None]:
        at = [i for i, p in enumerate(points) if group in (None, p.group)]
        some, worst = e[at], e[at][np.abs(e[at]).argmax()]
        correlation = rank_correlation([points[i].us for i in at], [model[i] for i in at])
        print(f"{group or 'all':16} {len(at):4} {rms(some):6.1%} {some.mean():+6.1%} {worst:+7.0%} {correlation:10.3f}")
    print("\nRMS by source")
    for source in dict.fromkeys(p.source for p in points):
        at = [i for i, p in enumerate(points) if p.source == source]
        print(f"{source:16} {len(at):4} {rms(e[at]):6.1%}")
    possible = np.array([not beyond_peak(p) for p in points])
    print(f"\nwithout the {(~possible).sum()} that move bytes faster than the memory's peak: {rms(e[possible]):.1%}")
    print("\neffect of +-50 % on the RMS over all, percentage points")
    changes = {
        name: [100 * (rms(errors(points, scaled(parameters, name, f))) - rms(e)) for f in (0.5, 1.5)]
        for name in uncertain()
    }
    for name in sorted(changes, key=lambda n: -max(map(abs, changes[n]))):
        print(f"{name:46} {changes[name][0]:+7.1f} {changes[name][1]:+7.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

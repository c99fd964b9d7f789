"""An independent reader of SuperDSC files: which byte holds which logical element, on which core.

Written from the published description of the format alone; it imports nothing of the compiler, so that
what the compiler emits and what its machine computes can be held against it. Everything is an explicit
list of coordinates and addresses: slow and obvious on purpose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

STICK_BYTES = 128
SEGMENT_BYTES = 16 * 1024**3
DENSE = 8  # bytes that numbers may be apart, on average, to be counted instead of sorted
SPAN_BYTES = 256 * 1024**2
MOST_KEPT = 1 << 16  # elements of an operand on a core whose addresses are kept: all checks ask for the same ones
RESTICKIFY = ("ReStickifyOpHBM", "ReStickifyOpLx")


class WitnessError(Exception):
    """The file is not one this decoder can vouch for."""


@dataclass(frozen=True)
class WitnessOperand:
    """One tensor of a SuperDSC, as the file states it."""

    index: int
    name: str
    order: tuple[str, ...]
    scale: Mapping[str, int]
    stick: str
    stick_elements: int
    word_bytes: int
    data_format: str
    component: str
    symbolic: bool
    starts: Mapping[int, int]
    gaps: Mapping[str, Mapping[int, int]]
    own_slices: Mapping[int, Mapping[str, int]]
    folds: Mapping[str, Mapping[str, Any]]
    indirection: str
    partner: str

    @property
    def dims(self) -> tuple[str, ...]:
        """The dims the operand really has, inner to outer."""
        return tuple(d for d in self.order if self.scale[d] > 0)

    @property
    def sparse(self) -> bool:
        """Whether a whole stick holds one element, in lane 0."""
        return self.scale.get(self.stick, -2) < 0

    def gap(self, dim: str, core: int) -> int:
        """Elements between the end of this core's extent and the end of the buffer along ``dim``."""
        per_core = self.gaps.get(dim, {})
        return per_core.get(core, per_core.get(-1, 0))


@dataclass
class CoverageReport:
    """Whether the cores' outputs are disjoint (but for reduction cohorts) and cover the output."""

    overlaps: list[str] = field(default_factory=list)
    cohort_mismatches: list[str] = field(default_factory=list)
    missing: int = 0
    written: int = 0

    @property
    def ok(self) -> bool:
        """True when every output element is written exactly once."""
        return not self.overlaps and not self.cohort_mismatches and self.missing == 0


class Decoder:
    """Reads one SuperDSC.

    Args:
        json_obj: the parsed file.
        symbols: byte address of every symbol id, for files with symbolic start addresses.
        device_extents: ``{operand index: {dim: elements}}``; needed only for a restickify with a back gap of less
            than a stick along an operand's stick, where the file alone does not tell a shortfall from a surplus.
    """

    def __init__(
        self,
        json_obj: Mapping[str, Any],
        symbols: Mapping[int, int] | None = None,
        device_extents: Mapping[int, Mapping[str, int]] | None = None,
    ) -> None:
        self._symbols = dict(symbols or {})
        self._device_extents = device_extents or {}
        self._known: dict[tuple[int, int], tuple[dict[str, Ints], Ints]] = {}
        self._top, self._dsc = _find_dsc(json_obj)
        compute = self._dsc["computeOp_"][0]
        self.op_func: str = compute["opFuncName"]
        self.sizes: dict[str, int] = {k[:-1]: v for k, v in self._dsc["N_"].items() if _is_dim(k, v)}
        self.splits: dict[str, int] = dict(self._top["numWkSlicesPerDim_"])
        self.slices: dict[int, dict[str, int]] = {int(c): dict(s) for c, s in self._top["coreIdToWkSlice_"].items()}
        self.cores = sorted(self.slices)
        nodes = sorted(self._dsc["scheduleTree_"], key=lambda node: node["ldsIdx_"])
        self.operands = tuple(self._operand(node) for node in nodes)
        index_of = {f"{o.name}-idx{o.index}": o.index for o in self.operands}
        self.inputs = tuple(index_of[name] for name in compute["inputLabeledDs"])
        self.output = index_of[compute["outputLabeledDs"][-1]]
        self.constants = _constants(self._dsc["constantInfo_"])

    @cached_property
    def valid(self) -> dict[str, int]:
        """Logical extent of every dim that is masked; other dims are not in it."""
        return {dim: int(pairs[0][0]) for dim, pairs in self._dsc.get("coordinateMasking_", {}).items()}

    def _operand(self, node: Mapping[str, Any]) -> WitnessOperand:
        index = int(node["ldsIdx_"])
        tensor = next(t for t in self._dsc["labeledDs_"] if t["ldsIdx_"] == index)
        layout = self._dsc["primaryDsInfo_"][tensor["dsType_"]]
        if len(layout["stickDimOrder_"]) != 1:
            raise WitnessError(f"operand {index}: {len(layout['stickDimOrder_'])} stick dims")
        symbolic = bool(node.get("isStartAddrSymbolic_", 0))
        coordinates = node.get("coordinates_", {})
        return WitnessOperand(
            index=index,
            name=tensor["dsName_"],
            order=tuple(node["layoutDimOrder_"]),
            scale=dict(zip(layout["layoutDimOrder_"], tensor["scale_"], strict=True)),
            stick=layout["stickDimOrder_"][0],
            stick_elements=int(layout["stickSize_"][0]),
            word_bytes=int(tensor["wordLength"]),
            data_format=tensor["dataFormat_"],
            component=node["component_"],
            symbolic=symbolic,
            starts=self._starts(index, node["startAddressCoreCorelet_"], symbolic),
            gaps=_gaps(node.get("backGapCore_", {})),
            own_slices={int(c): dict(s) for c, s in coordinates.get("coreIdToWkSlice_", {}).items()},
            folds={dim: info["folds"] for dim, info in coordinates.get("coordInfo", {}).items()},
            indirection=node.get("indirectAllocType_", "no_indirection"),
            partner=node.get("relatedIndirectAccessAlloc_", ""),
        )

    def _starts(self, index: int, folds: Mapping[str, Any], symbolic: bool) -> dict[int, int]:
        per_core = "Map" in folds["dim_prop_func"][0]
        starts: dict[int, int] = {}
        for core in self.cores:
            value = int(folds["data_"][f"[{core if per_core else 0}, 0, 0]"])
            if symbolic:
                if value not in self._symbols:
                    raise WitnessError(f"operand {index}, core {core}: symbol {value} has no address")
                value = self._symbols[value]
            starts[core] = value
        return starts

    def _distribution(self, operand: WitnessOperand, core: int) -> tuple[dict[str, int], dict[str, int]]:
        """Splits and this core's slices as this operand sees them: its own map wins over the descriptor's."""
        if not operand.own_slices:
            return self.splits, self.slices[core]
        own = operand.own_slices
        splits = {d: 1 + max(s.get(d, 0) for s in own.values()) for d in self.sizes}
        return splits, {d: own[core].get(d, 0) for d in self.sizes}

    def _allocation(self, operand: WitnessOperand, core: int) -> dict[str, int]:
        """Extent of the buffer along every dim of the operand's order, in elements."""
        splits, _ = self._distribution(operand, core)
        known = self._device_extents.get(operand.index, {})
        extents: dict[str, int] = {}
        for dim in operand.order:
            gap = operand.gap(dim, core)
            if operand.scale[dim] < 0:
                extents[dim] = operand.stick_elements if operand.scale[dim] == -2 else 1
            elif dim in known:
                extents[dim] = known[dim]
            elif self._may_be_shortfall(operand, dim, gap):
                raise WitnessError(f"operand {operand.index}: back gap {gap} of {dim} in a restickify is ambiguous")
            else:
                base = self.sizes[dim] // splits[dim] if operand.component == "lx" else self.sizes[dim]
                extents[dim] = base + gap
        return extents

    def _may_be_shortfall(self, operand: WitnessOperand, dim: str, gap: int) -> bool:
        """Whether a gap may say what a buffer lacks: dims are padded where they are sticks, by less than one."""
        sticks = {other.stick for other in self.operands}
        return self.op_func in RESTICKIFY and dim in sticks and gap % operand.stick_elements != 0

    def addresses(self, operand: int, core: int) -> tuple[dict[str, Ints], Ints]:
        """Every element of one operand that one core touches.

        Returns:
            The global coordinate along each dim the operand has, and the byte address, as flat arrays of the
            same length. Addresses of ``lx`` operands count from the start of that core's own scratchpad.
        """
        if (known := self._known.get((operand, core))) is not None:
            return known
        found = self._addresses(operand, core)
        if len(found[1]) <= MOST_KEPT:
            self._known[operand, core] = found
        return found

    def _addresses(self, operand: int, core: int) -> tuple[dict[str, Ints], Ints]:
        op = self.operands[operand]
        if op.indirection == "value_tensor":
            raise WitnessError(f"operand {operand}: addresses of a gathered tensor depend on data")
        splits, slices = self._distribution(op, core)
        extents = self._allocation(op, core)
        size = {d: self.sizes[d] // splits[d] for d in op.dims}
        first = {d: slices[d] * size[d] for d in op.dims}
        grids = np.meshgrid(*(np.arange(size[d], dtype=np.int64) for d in op.dims), indexing="ij")
        local: dict[str, Ints] = {d: g.reshape(-1) for d, g in zip(op.dims, grids, strict=True)}
        count = int(np.prod([size[d] for d in op.dims], dtype=np.int64))
        slot = np.zeros(count, dtype=np.int64)
        unit = 1
        for dim in op.order:
            along = extents[dim]
            if dim == op.stick:
                along = 1 if op.sparse else -(-along // op.stick_elements)
            if op.scale[dim] > 0:
                slot += unit * (local[dim] // op.stick_elements if dim == op.stick else local[dim])
            unit *= along
        lane = np.zeros(count, dtype=np.int64) if op.sparse else local[op.stick] % op.stick_elements
        coords: dict[str, Ints] = {d: local[d] + first[d] for d in op.dims}
        addresses = op.starts[core] + op.word_bytes * (lane + op.stick_elements * slot)
        inside = np.ones(count, dtype=bool)
        for dim in self._device_extents.get(operand, {}):
            if self._may_be_shortfall(op, dim, op.gap(dim, core)):
                inside &= coords[dim] < extents[dim]
        return {d: c[inside] for d, c in coords.items()}, addresses[inside]

    def gathered_addresses(self, operand: int, core: int, rows: Ints) -> tuple[dict[str, Ints], Ints]:
        """Every element of a gathered table that one core touches, given the index tensor's contents.

        The index tensor's dims stand in the table's order in place of its outermost dim, and what they would have
        added to the address is the row number instead.

        Args:
            operand: the table.
            core: which core.
            rows: index tensor over its dims in the order of `sizes`, all cores.
        """
        table = self.operands[operand]
        index = next(op for op in self.operands if op.indirection == "index_tensor" and op.name in table.partner)
        inner = tuple(d for d in table.order if d not in index.dims)
        if table.order[: len(inner)] != inner:
            raise WitnessError(f"operand {operand}: the gathered dim is not outermost")
        axes = [d for d in self.sizes if d in table.order]
        size = {d: self.sizes[d] // self.splits[d] for d in axes}
        grids = np.meshgrid(*(np.arange(size[d], dtype=np.int64) for d in axes), indexing="ij")
        local: dict[str, Ints] = {d: g.reshape(-1) for d, g in zip(axes, grids, strict=True)}
        coords: dict[str, Ints] = {d: local[d] + self.slices[core][d] * size[d] for d in axes}
        slot, unit = np.zeros(len(local[axes[0]]), dtype=np.int64), 1
        for dim in inner:
            step = table.stick_elements if dim == table.stick else 1
            slot += unit * (local[dim] // step)
            unit *= -(-(self.sizes[dim] + table.gap(dim, core)) // step)
        slot += unit * rows[tuple(coords[d] for d in axes if d in index.dims)]
        lane = local[table.stick] % table.stick_elements
        return coords, table.starts[core] + table.word_bytes * (lane + table.stick_elements * slot)

    def cohorts(self) -> dict[tuple[int, ...], list[int]]:
        """Cores that work on the same output elements, by the output's slice numbers."""
        out = self.operands[self.output]
        groups: dict[tuple[int, ...], list[int]] = {}
        for core in self.cores:
            _, slices = self._distribution(out, core)
            groups.setdefault(tuple(slices[d] for d in out.dims), []).append(core)
        return groups

    def output_coverage(self) -> CoverageReport:
        """Hold the cores' output ranges against each other and against the whole output."""
        out = self.operands[self.output]
        report = CoverageReport()
        places: list[Ints] = []
        elements: list[Ints] = []
        for cores in self.cohorts().values():
            if out.component != "lx" and len({out.starts[c] for c in cores}) > 1:
                report.cohort_mismatches.append(f"cores {cores} share output elements but not an address")
            coords, addresses = self.addresses(self.output, cores[0])
            scratchpad = (cores[0] + 1) << 44 if out.component == "lx" else 0
            places.append(addresses + scratchpad)
            flat = np.zeros_like(addresses)
            for dim in out.dims:
                flat = flat * self.sizes[dim] + coords[dim]
            elements.append(flat)
        report.overlaps += [f"byte {a} is written by {n} cohorts" for a, n in repeated(np.concatenate(places)).items()]
        total = int(np.prod([self.sizes[d] for d in out.dims], dtype=np.int64))
        seen = np.zeros(total, dtype=bool)
        seen[np.concatenate(elements)] = True
        report.written = int(seen.sum())
        report.missing = total - report.written
        return report

    def problems(self) -> list[str]:
        """Everything a loader can check without knowing the program; empty for a sound file."""
        found: list[str] = []
        cores = int(self._top["numCoresUsed_"])
        if int(np.prod(list(self.splits.values()))) != cores or len(self.cores) != cores:
            found.append(f"splits {self.splits} do not give {cores} cores")
        if len({tuple(sorted(s.items())) for s in self.slices.values()}) != len(self.cores):
            found.append("two cores hold the same work slice")
        found += [
            f"{d}: {n} is not a multiple of its {self.splits[d]} slices"
            for d, n in self.sizes.items()
            if n % self.splits[d]
        ]
        for op in self.operands:
            found += self._operand_problems(op)
        return found

    def _operand_problems(self, op: WitnessOperand) -> list[str]:
        found: list[str] = []
        where = f"operand {op.index} ({op.name})"
        if op.indirection == "value_tensor":
            return found
        for core in self.cores:
            splits, _ = self._distribution(op, core)
            # Whole sticks per core are asked of data tensors, not of index tensors (specification, address rules).
            whole = op.indirection != "index_tensor" or splits[op.stick] > 1
            if whole and not op.sparse and (self.sizes[op.stick] // splits[op.stick]) % op.stick_elements:
                found.append(f"{where}: core {core} has a broken stick along {op.stick}")
            _, addresses = self.addresses(op.index, core)
            low, high = int(addresses.min()), int(addresses.max()) + op.word_bytes
            if op.starts[core] % STICK_BYTES:
                found.append(f"{where}: start {op.starts[core]} of core {core} is not on a stick")
            if op.component == "hbm" and low // SEGMENT_BYTES != (high - 1) // SEGMENT_BYTES:
                found.append(f"{where}: core {core} crosses a segment end")
            if high - low > SPAN_BYTES:
                found.append(f"{where}: core {core} spans {high - low} bytes")
        if not op.own_slices:
            found += self._fold_problems(op)
        return found

    def _fold_problems(self, op: WitnessOperand) -> list[str]:
        """The coordinate folds must enumerate exactly the elements one core holds."""
        found: list[str] = []
        for dim, folds in op.folds.items():
            factors = [int(a["factor_"]) for a in folds["dim_prop_attr"]]
            alphas = [int(f["Affine"]["alpha_"]) for f in folds["dim_prop_func"]]
            size = self.sizes[dim] // self.splits[dim]
            if op.scale[dim] < 0:
                inner = op.stick_elements if op.scale[dim] == -2 else 1
                good = int(np.prod(factors)) == inner
            elif dim == op.stick:
                good = factors[0] == self.splits[dim] and alphas[0] == size
                sticks = -(-size // op.stick_elements)
                good = good and factors[-1] == op.stick_elements and factors[-2] == sticks
            else:
                good = factors[0] == self.splits[dim] and alphas[0] == size and factors[-1] == size
            if not good:
                found.append(f"operand {op.index} ({op.name}): folds of {dim} have factors {factors}, alphas {alphas}")
        return found


def _is_dim(key: str, value: object) -> bool:
    return key.endswith("_") and key != "name_" and isinstance(value, int) and value >= 0


def _find_dsc(json_obj: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The one compute descriptor of the file; the root key need not be its name."""
    for top in json_obj.values():
        for entry in top.get("dscs_", []):
            for dsc in entry.values():
                if dsc.get("computeOp_"):
                    return top, dsc
    raise WitnessError("no compute descriptor in this file")


def _gaps(entry: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[int, int]]:
    return {dim: {int(core): int(gap) for core, gap in per_core.items()} for dim, per_core in entry.items()}


def _constants(entry: Any) -> dict[str, int]:
    """Name to bit pattern; the file spells "no constants" as the string ``{}``."""
    if isinstance(entry, str):
        return {}
    return {c["name_"]: int(next(iter(c["data_"]["data_"].values()))[0]) for c in entry.values()}


def repeated(numbers: Ints) -> dict[int, int]:
    """How often each number is there that is there more than once."""
    low, high = int(numbers.min()), int(numbers.max())
    if high - low <= DENSE * numbers.size:  # counting is faster than sorting
        counts = np.bincount(numbers - low)
        found = np.flatnonzero(counts > 1)
        return dict(zip((found + low).tolist(), counts[found].tolist(), strict=True))
    found, counts = np.unique(numbers, return_counts=True)
    return dict(zip(found[counts > 1].tolist(), counts[counts > 1].tolist(), strict=True))

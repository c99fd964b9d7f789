"""Hand-written descriptors of the example files: sizes, splits, layouts and addresses as the references state them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from spyre_mlir.dialects.superdsc.model.descriptor import Constant, Descriptor, Dim, OpClass, Operand, Version
from spyre_mlir.dialects.superdsc.model.json_value import Json, JsonObject

DL16 = "SEN169_FP16"
SEGMENT = 0x4_0000_0000


def starts(cores: int, address: Callable[[int], int]) -> tuple[str, ...]:
    return tuple(str(address(core)) for core in range(cores))


@dataclass(frozen=True)
class Case:
    file: str
    version: Version
    descriptor: Descriptor


def _rows(segment: int, step: int, cores: int = 32) -> tuple[str, ...]:
    """Every core starts one step after its neighbour."""
    return starts(cores, lambda core: segment * SEGMENT + step * core)


def _same(segment: int, cores: int = 32) -> tuple[str, ...]:
    return starts(cores, lambda core: segment * SEGMENT)


def _plain(start: tuple[str, ...], kind: str = DL16) -> Operand:
    """(128, 256) with columns in the stick."""
    return Operand(("mb", "out"), (128, 256), "out", kind, start)


def _add_128x256(*operands: Operand, cores: int = 32) -> Descriptor:
    dims = (Dim("mb", 128, cores), Dim("out", 256))
    return Descriptor(0, "add", "sfp", OpClass.POINTWISE, dims, operands)


def _real_add() -> Descriptor:
    """512 x 512, stick along mb, out split 32: 16 rows of one 128-byte stick each, 2048 bytes per core."""
    operands = tuple(Operand(("out", "mb"), (512, 512), "mb", DL16, _rows(segment, 2048)) for segment in (3, 1, 4))
    return Descriptor(1, "add", "sfp", OpClass.POINTWISE, (Dim("mb", 512), Dim("out", 512, 32)), operands)


def _real_restickify() -> Descriptor:
    """512 x 512, mb in 8, out in 4: out columns of 2 sticks x 512 rows, mb slices of 64 rows, and the transpose."""
    source = starts(32, lambda core: 64 * 128 * (core % 8) + 2 * 512 * 128 * (core // 8))
    target = starts(32, lambda core: 3 * SEGMENT + 512 * 128 * (core % 8) + 128 * 128 * (core // 8))
    operands = (
        Operand(("mb", "out"), (512, 512), "out", DL16, source),
        Operand(("out", "mb"), (512, 512), "mb", DL16, target),
    )
    dims = (Dim("mb", 512, 8), Dim("out", 512, 4))
    return Descriptor(0, "ReStickifyOpHBM", "sfp", OpClass.RESTICKIFY, dims, operands)


def _matmul(m: int, n: int, k: int, splits: tuple[int, int, int], *start: tuple[str, ...]) -> Descriptor:
    dims = (Dim("mb", m, splits[0]), Dim("out", n, splits[1]), Dim("in", k, splits[2]))
    operands = (
        Operand(("mb", "in"), (m, k), "in", DL16, start[0]),
        Operand(("in", "out"), (k, n), "out", DL16, start[1]),
        Operand(("mb", "out"), (m, n), "out", DL16, start[2]),
    )
    return Descriptor(0, "batchmatmul", "pt", OpClass.MATMUL, dims, operands)


def _matmul_k_split() -> Descriptor:
    """256 x 512 x 128, mb 4, out 2, in 4; four neighbouring cores share a result.

    A: 64 rows x 128 B = 8192 per mb, 2 sticks x 256 rows = 65536 per in. B: 128 rows = 16384 per in, a stick column of
    512 rows = 65536 per out. C: 8192 per mb, a stick column of 256 rows = 32768 per out.
    """

    def of(base: int, per_in: int, per_mb: int, per_out: int) -> tuple[str, ...]:
        return starts(32, lambda core: base + per_in * (core % 4) + per_mb * (core // 4 % 4) + per_out * (core // 16))

    a, b = of(0, 65536, 8192, 0), of(SEGMENT, 16384, 0, 65536)
    return _matmul(256, 128, 512, (4, 2, 4), a, b, of(2 * SEGMENT, 0, 8192, 32768))


def _sum_columns(*, padded: bool) -> Descriptor:
    """Sum over the columns of (128, 256 or 200): the result has one valid lane per stick."""
    dims = (Dim("mb", 128, 32), Dim("out", 256, valid=200 if padded else None))
    sparse = Operand(("mb",), (128,), None, DL16, _rows(1, 512))
    constants = (Constant("samv-maskvalue", DL16, 0),) if padded else ()
    operands = (_plain(_rows(0, 512)), sparse)
    return Descriptor(0, "sum", "sfp", OpClass.REDUCTION, dims, operands, constants, 0 if padded else -1)


def _sum_rows() -> Descriptor:
    """Sum over the rows of (128, 256), mb in 8, out in 4: eight cores share each output stick."""
    source = starts(32, lambda core: 16 * 128 * (core % 8) + 128 * 128 * (core // 8))
    target = starts(32, lambda core: SEGMENT + 128 * (core // 8))
    operands = (_plain(source), Operand(("out",), (256,), "out", DL16, target))
    return Descriptor(0, "sum", "sfp", OpClass.REDUCTION, (Dim("mb", 128, 8), Dim("out", 256, 4)), operands)


def _clamp() -> Descriptor:
    constants = (Constant("clipMin", DL16, 0xBC00), Constant("clipMax", DL16, 0x4000))
    dims = (Dim("mb", 128, 32), Dim("out", 256))
    operands = (_plain(_rows(0, 512)), _plain(_rows(1, 512)))
    return Descriptor(0, "clip", "sfp", OpClass.POINTWISE, dims, operands, constants)


def _bias() -> Descriptor:
    bias = Operand(("out",), (256,), "out", DL16, _same(1))
    return _add_128x256(_plain(_rows(0, 512)), bias, _plain(_rows(2, 512)))


def _small_restickify() -> Descriptor:
    """128 x 256 on 8 cores: one 64 x 64 block each."""
    source = starts(8, lambda core: 64 * 128 * (core % 2) + 128 * 128 * (core // 2))
    target = starts(8, lambda core: SEGMENT + 256 * 128 * (core % 2) + 64 * 128 * (core // 2))
    operands = (_plain(source), Operand(("out", "mb"), (256, 128), "mb", DL16, target))
    dims = (Dim("mb", 128, 2), Dim("out", 256, 4))
    return Descriptor(0, "ReStickifyOpHBM", "sfp", OpClass.RESTICKIFY, dims, operands)


_THREE = (0, 1, 2)
_MB32 = _matmul(256, 128, 512, (32, 1, 1), _rows(0, 1024), _same(1), _rows(2, 1024))
_FP32 = tuple(_plain(_rows(segment, 512), "IEEE_FP32") for segment in _THREE)

CASES = [
    Case("superdsc_real/01_add_512x512_32core_hbm", Version.TS25, _real_add()),
    Case("superdsc_real/02_ReStickifyOpHBM_512x512", Version.TS25, _real_restickify()),
    Case(
        "superdsc_real/03_batchmatmul_512_mb32",
        Version.TS25,
        _matmul(512, 512, 512, (32, 1, 1), _rows(0, 2048), _same(1), _rows(2, 2048)),
    ),
    Case(
        "superdsc_worked/a1_add_128x256_1core",
        Version.TS26,
        _add_128x256(*(_plain(_same(segment, 1)) for segment in _THREE), cores=1),
    ),
    Case(
        "superdsc_worked/a32_add_128x256_32core",
        Version.TS26,
        _add_128x256(*(_plain(_rows(segment, 512)) for segment in _THREE)),
    ),
    Case("superdsc_worked/b32_matmul_256x512x128_mb32", Version.TS26, _MB32),
    Case("superdsc_worked/b32k_matmul_256x512x128_mb4_out2_in4", Version.TS26, _matmul_k_split()),
    Case("superdsc_worked/c32_sum_lastdim_128x256", Version.TS26, _sum_columns(padded=False)),
    Case("superdsc_worked/c32n_sum_dim0_128x256_nonstick", Version.TS26, _sum_rows()),
    Case("superdsc_worked/c32p_sum_lastdim_128x200_padded", Version.TS26, _sum_columns(padded=True)),
    Case("superdsc_worked/d32_clamp_128x256", Version.TS26, _clamp()),
    Case("superdsc_worked/e32_add_bias_128x256_plus_256", Version.TS26, _bias()),
    Case("superdsc_worked/f32_add_fp32_128x256", Version.TS26, _add_128x256(*_FP32)),
    Case("superdsc_worked/g8_restickify_128x256", Version.TS26, _small_restickify()),
]


def small_add(**changes: Any) -> Descriptor:
    """The addition of (4, 128) on two cores: two rows of two sticks each."""
    operand = Operand(("mb", "out"), (4, 128), "out", DL16, ("0", "256"))
    dims = (Dim("mb", 4, 2), Dim("out", 128))
    return replace(Descriptor(0, "add", "sfp", OpClass.POINTWISE, dims, (operand,) * 3), **changes)


def coordinate(alphas: list[int], factors: list[int], padding: str = "nopad") -> JsonObject:
    """The coordinate of a dim whose folds add alpha times their index: over cores, corelets, rows, then elements."""
    elements = len(alphas) - 3
    names = ["core_fold", "corelet_fold", "row_fold", *(f"elem_arr_{elements - 1 - n}" for n in range(elements))]
    funcs: list[Json] = [{"Affine": {"alpha_": alpha, "beta_": 0}} for alpha in alphas]
    attrs: list[Json] = [{"factor_": f, "label_": name} for f, name in zip(factors, names, strict=True)]
    head: JsonObject = {"spatial": 3, "temporal": 0, "elemArr": elements, "padding": padding}
    return head | {"folds": {"dim_prop_func": funcs, "dim_prop_attr": attrs}}

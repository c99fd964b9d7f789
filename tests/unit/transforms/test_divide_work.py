"""Dividing loops one kernel at a time: products by published rules, gathers, and which divisions are legal."""

from __future__ import annotations

from math import prod

import pytest

from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.hw.division import DividedLoop, Footprint, divisions
from spyre_mlir.hw.spec import SPYRE
from tests.unit.transforms.test_place_lx import through


def tensor(*shape: int) -> str:
    return f"!spyre.tensor<{list(shape)} x SEN169_FP16, order [1, 0], stick 1, hbm>"


def matmul(m: int, k: int, n: int) -> str:
    """A product of two tensors from the host."""
    a, b, c = tensor(m, k), tensor(k, n), tensor(m, n)
    return f"""func.func @main(%x: tensor<{m}x{k}xf16>, %w: tensor<{k}x{n}xf16>) -> tensor<{m}x{n}xf16> {{
    %0 = spyre.kernel.to_device %x : tensor<{m}x{k}xf16> to {a}
    %1 = spyre.kernel.to_device %w : tensor<{k}x{n}xf16> to {b}
    %2 = spyre.kernel.alloc : {c}
    spyre.kernel.compute "batchmatmul" [m = {m}, n = {n}, k = {k}]
      ins(%0[m, k] : {a}, %1[k, n] : {b}) outs(%2[m, n] : {c})
    %3 = spyre.kernel.from_device %2 : {c} to tensor<{m}x{n}xf16>
    func.return %3 : tensor<{m}x{n}xf16>
    }}"""


def splits(text: str, products: str = "default", cores: int | None = None) -> dict[str, int]:
    module = through(text, "divide-work", options={"divide-work": {"products": products, "cores": cores}})
    (op,) = [o for o in module.walk() if isinstance(o, KernelOp) and o.is_product]
    return op.space_splits()


def test_a_long_product() -> None:
    """Rows over all cores as usual; 4 x 8 as torch-spyre's planner has it."""
    assert splits(matmul(512, 4096, 4096)) == {"m": 32, "n": 1, "k": 1}
    assert splits(matmul(512, 4096, 4096), "published") == {"m": 4, "n": 8, "k": 1}


def test_a_short_product_is_divided_by_rows() -> None:
    """Real files of 256 x 512 x 128 divide the rows over 32 cores."""
    assert splits(matmul(256, 512, 128)) == {"m": 32, "n": 1, "k": 1}


def test_fewer_cores() -> None:
    assert prod(splits(matmul(512, 4096, 4096), cores=8).values()) == 8
    assert prod(splits(matmul(512, 4096, 4096), "published", cores=8).values()) == 8


@pytest.mark.parametrize("least", [1, 12])
def test_divisions_are_all_and_legal(least: int) -> None:
    loops = [
        DividedLoop("m", 4, True),
        DividedLoop("n", 3, True),
        DividedLoop("k", 2, False),
        DividedLoop("j", 2, False),
    ]
    found = list(divisions(loops, [Footprint({})], least, SPYRE))
    every = [(m, n, k, j) for m in (1, 2, 4) for n in (1, 3) for k in (1, 2) for j in (1, 2)]
    wanted = [s for s in every if least <= prod(s) <= 32 and not (s[2] > 1 and s[3] > 1)]
    assert sorted(tuple(f.values()) for f in found) == sorted(wanted)


def gather(shape: tuple[int, ...], indices: tuple[int, ...]) -> dict[str, int]:
    """How a gather of rows of a table is divided: the loops of the indices are i0, i1, …, those of a row r1, r2, …"""
    table = f"<{list(shape)} x SEN169_FP16, order {list(range(len(shape)))}, stick {len(shape) - 1}, hbm>"
    rows, last = list(range(len(indices))), len(indices) - 1
    index = f"<{list(indices)} x SENUINT32, order {rows}, stick {last}, hbm>"
    result = (*indices, *shape[1:])
    order = [*range(1, len(result)), 0]
    out = f"<{list(result)} x SEN169_FP16, order {order}, stick {len(result) - 1}, hbm>"
    own, along = [f"i{n}" for n in rows], [f"r{n}" for n in range(1, len(shape))]
    loops = ", ".join(f"{name} = {extent}" for name, extent in zip([*own, *along], result, strict=True))
    text = f"""func.func @main() {{
    %i = spyre.kernel.alloc : !spyre.tensor{index}
    %t = spyre.kernel.alloc : !spyre.tensor{table}
    %o = spyre.kernel.alloc : !spyre.tensor{out}
    spyre.kernel.gather axis 0 [{loops}] ins(%i[{", ".join(own)}] : !spyre.tensor{index},
      %t[{", ".join(["0", *along])}] : !spyre.tensor{table}) outs(%o[{", ".join([*own, *along])}] : !spyre.tensor{out})
    func.return
    }}"""
    (op,) = [o for o in through(text, "divide-work").walk() if isinstance(o, KernelOp)]
    return {name: split for name, split in op.space_splits().items() if split > 1}


@pytest.mark.parametrize(
    ("shape", "indices", "divided"),
    [
        ((128, 64, 512), (256,), {"i0": 8}),  # the worked example of torch-spyre: 8 sticks of 32 indices
        ((2000, 4096), (1, 16), {}),  # half a stick of indices
        ((1000, 512), (256,), {"i0": 8}),
        ((1000, 128), (5,), {}),
        ((1000, 128), (4, 64), {"i0": 4, "i1": 2}),
    ],
)
def test_only_the_indices_of_a_gather_are_divided(
    shape: tuple[int, ...], indices: tuple[int, ...], divided: dict[str, int]
) -> None:
    assert gather(shape, indices) == divided

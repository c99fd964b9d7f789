"""Copies that a loop would repeat in every trip: which are left out, and that the values stay numpy's."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.dialects.spyre.kernel import ComputeOp, KernelOp
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.planning.trips import TripSpan
from spyre_mlir.text.render import verify_module
from spyre_mlir.transforms.kernel_loops.repeated_copies import repeats
from spyre_mlir.transforms.kernel_loops.row_groups import RowGroup, grow
from spyre_mlir.transforms.kernel_loops.tiled_body import TiledBody, install
from tests.unit.transforms.levels import ops, passed

X = "!spyre.tensor<[64, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>"
T = "!spyre.tensor<[4, 64, 128] x SEN169_FP16, order [0, 1, 2], stick 2, hbm>"
W = "!spyre.tensor<[4, 128, 192] x SEN169_FP16, order [1, 2, 0], stick 2, hbm>"
Y = "!spyre.tensor<[4, 64, 192] x SEN169_FP16, order [1, 2, 0], stick 2, hbm>"
PRODUCT = (
    f'spyre.kernel.compute "batchmatmul" [e = 4, m = 64, n = 192, k = 128] '
    f"ins(%2[e, m, k] : {T}, %1[e, k, n] : {W}) outs(%3[e, m, n] : {Y})"
)


def experts(
    copy: str = "ins(%0[b, c] : {X})", product: str = PRODUCT, loops: str = "b = 64", more: str = ""
) -> ModuleOp:
    """x times four matrices, relu of it: x is copied for each of them."""
    return passed(f"""func.func @main(%x: tensor<64x128xf32>, %w: tensor<4x128x192xf32>) -> tensor<4x64x192xf32> {{
      %0 = spyre.kernel.to_device %x : tensor<64x128xf32> to {X}
      %1 = spyre.kernel.to_device %w : tensor<4x128x192xf32> to {W}
      %2 = spyre.kernel.alloc : {T}
      spyre.kernel.compute "identity" [a = 4, {loops}, c = 128] {copy.format(X=X)} outs(%2[a, b, c] : {T}) {more}
      %3 = spyre.kernel.alloc : {Y}
      {product}
      %4 = spyre.kernel.alloc : {Y}
      spyre.kernel.compute "relufwd" [a = 4, b = 64, c = 192] ins(%3[a, b, c] : {Y}) outs(%4[a, b, c] : {Y})
      %5 = spyre.kernel.from_device %4 : {Y} to tensor<4x64x192xf32>
      func.return %5 : tensor<4x64x192xf32>
    }}""")


def by_matrix(module: ModuleOp) -> RowGroup:
    """The group of all kernels by the matrices."""
    first, *rest = ops(module, KernelOp)
    return next(group for group in grow(first, rest) if group.loops[0] == "a")


def names(body: TiledBody) -> list[str]:
    return [op.function_name for op in body.kernels]


def numpy_experts(x: np.ndarray, w: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    return np.maximum(x @ w, 0)


def test_the_product_of_a_trip_reads_the_matrix_itself() -> None:
    module = experts()
    body = TiledBody(by_matrix(module), TripSpan.of_all(4))
    assert names(body) == ["batchmatmul", "relufwd"]
    assert body.sources == [1, 2]
    product = body.kernels[0]
    assert product.inputs[0] is ops(module, ComputeOp)[0].inputs[0]
    assert list(product.space.extents) == ["m", "n", "k"]
    body.drop()


def test_values_are_numpys() -> None:
    module = experts()
    rng = np.random.default_rng(0)
    x, w = rng.uniform(-1, 1, (64, 128)), rng.uniform(-1, 1, (4, 128, 192))
    install([TiledBody(by_matrix(module), TripSpan.of_all(4))])
    verify_module(module)
    assert [op.function_name for op in ops(module, KernelOp)] == ["batchmatmul", "relufwd"]
    (got,) = run_function(module, [x, w])
    np.testing.assert_allclose(got, numpy_experts(x, w), rtol=1e-12, atol=1e-12)


def test_rows_inside_of_the_matrices() -> None:
    """A second loop begins at the first kernel that is left, and takes blocks of the matrix."""
    module = experts()
    rng = np.random.default_rng(1)
    x, w = rng.uniform(-1, 1, (64, 128)), rng.uniform(-1, 1, (4, 128, 192))
    first, *rest = ops(module, KernelOp)
    rows = next(group for group in grow(first, rest) if group.loops[0] == "b")
    body = TiledBody(by_matrix(module), TripSpan.of_all(4))
    install([body])
    within = body.within(rows.loops)
    assert within is not None
    assert within.loops == ["m", "b"]
    install([TiledBody(within, TripSpan.of_all(2))])
    verify_module(module)
    (got,) = run_function(module, [x, w])
    np.testing.assert_allclose(got, numpy_experts(x, w), rtol=1e-12, atol=1e-12)


def test_a_copy_may_be_in_one_of_two_loops() -> None:
    """Two matrices in one trip, then the other two one by one."""
    module = experts()
    rng = np.random.default_rng(2)
    x, w = rng.uniform(-1, 1, (64, 128)), rng.uniform(-1, 1, (4, 128, 192))
    bodies = [TiledBody(by_matrix(module), TripSpan(1, 2, 4)), TiledBody(by_matrix(module), TripSpan(2, 1, 4, start=2))]
    assert [body.sources for body in bodies] == [[0, 1, 2], [1, 2]]
    install(bodies)
    verify_module(module)
    (got,) = run_function(module, [x, w])
    np.testing.assert_allclose(got, numpy_experts(x, w), rtol=1e-12, atol=1e-12)


def test_a_copy_stays_where_a_trip_has_two_matrices() -> None:
    body = TiledBody(by_matrix(experts()), TripSpan.of_all(2))
    assert names(body) == ["identity", "batchmatmul", "relufwd"]
    assert list(body.kernels[1].space.extents.values()) == [2, 64, 192, 128]
    body.drop()


def test_a_copy_stays_that_somebody_else_reads() -> None:
    module = experts()
    group = by_matrix(module).first(1)
    assert names(TiledBody(group, TripSpan.of_all(4))) == ["identity"]


def test_a_copy_stays_that_a_hint_is_about() -> None:
    module = experts(more='attributes {spyre.hint = {place = "hbm"}}')
    assert names(TiledBody(by_matrix(module), TripSpan.of_all(4))) == ["identity", "batchmatmul", "relufwd"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ins(%0[b, c] : {X})", {"a": (1, 2)}),
        ("ins(%0[b + 16, c] : {X})", {}),  # from another row on
        ("ins(%0[0, c] : {X})", {}),  # repeats along two loops
    ],
)
def test_what_repeats_its_source(text: str, found: dict[str, tuple[int, ...]]) -> None:
    loops = "b = 48" if "16" in text else "b = 64"
    copy = ops(experts(text, loops=loops), ComputeOp)[0]
    assert dict(repeats(copy)) == found


def test_only_copies_repeat() -> None:
    assert [dict(repeats(op)) for op in ops(experts(), ComputeOp)[1:]] == [{}, {}]

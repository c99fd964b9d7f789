"""Where cores must wait for one another, a KTIR function ends; a loop cannot end there, and is refused."""

import numpy as np
import pytest

import spyre_mlir
from spyre_mlir.errors import UnsupportedError
from tests.functions import FunctionModel
from tests.unit.transforms.ktir_programs import TOLERANCE, half, ktir_of, program_of

CLASH = """
!t = !spyre.tensor<[64, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
func.func @main(%x: tensor<64x128xf16>) -> tensor<64x128xf16> {
  %a = spyre.kernel.to_device %x : tensor<64x128xf16> to !t
  %b = spyre.kernel.alloc : !t
  %c = spyre.kernel.alloc : !t
  spyre.kernel.compute "exp" [m = 64 over 2, n = 128] ins(%a[m, n] : !t) outs(%b[m, n] : !t)
  spyre.kernel.compute "neg" [m = 64, n = 128 over 2] ins(%b[m, n] : !t) outs(%c[m, n] : !t)
  %r = spyre.kernel.from_device %c : !t to tensor<64x128xf16>
  func.return %r : tensor<64x128xf16>
}
"""


def test_a_function_ends_where_cores_must_wait() -> None:
    """Rows, then columns: the second kernel needs what other cores wrote."""
    assert ktir_of(CLASH).count("func.func") == 2
    alike = CLASH.replace("[m = 64, n = 128 over 2]", "[m = 64 over 2, n = 128]")
    assert ktir_of(alike).count("func.func") == 1
    for text in (CLASH, alike):
        (got,) = program_of(text, ktir_of(text)).run([half(64, 128).numpy()])
        np.testing.assert_allclose(got, -np.exp(half(64, 128).double().numpy()), rtol=2e-3)


def test_a_scratchpad_buffer_of_two_functions_goes_through_device_memory() -> None:
    function = lambda a: (a.sum(-1), a.sum(0), a.amax(-1))  # noqa: E731
    x = half(128, 200)
    model = spyre_mlir.compile(FunctionModel(function), (x,))
    text = model.ktir()
    assert text.count("func.func") > 1
    for one, other in zip(
        program_of(model.mlir("spyre.kernel"), text).run([x.numpy()]), function(x.double()), strict=True
    ):
        assert np.abs(one - other.numpy()).max() <= TOLERANCE * np.abs(other.numpy()).max()


TURN = """
!t = !spyre.tensor<[512, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
!rows = !spyre.tensor<[128, 128] x SEN169_FP16, order [1, 0], stick 1, extents [512, 128], hbm>
func.func @main(%x: tensor<512x128xf16>) -> tensor<512x128xf16> {
  %d = spyre.kernel.to_device %x : tensor<512x128xf16> to !t
  %b = spyre.kernel.alloc : !t
  %o = spyre.kernel.alloc : !t
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %dt = spyre.kernel.tile %d dim 0 at %i * 128 : !t to !rows
    %bt = spyre.kernel.tile %b dim 0 at %i * 128 : !t to !rows
    %ot = spyre.kernel.tile %o dim 0 at %i * 128 : !t to !rows
    spyre.kernel.compute "exp" [m = 128 over 2, n = 128] ins(%dt[m, n] : !rows) outs(%bt[m, n] : !rows)
    spyre.kernel.compute "neg" [m = 128, n = 128 over 2] ins(%bt[m, n] : !rows) outs(%ot[m, n] : !rows)
  }
  %r = spyre.kernel.from_device %o : !t to tensor<512x128xf16>
  func.return %r : tensor<512x128xf16>
}
"""


def test_a_loop_in_which_cores_wait_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="a loop in which cores wait for one another: neg touches") as raised:
        ktir_of(TURN)
    assert "unroll" in str(raised.value)


def test_a_loop_of_several_numbers_of_cores_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="a loop whose kernels run on 2 and 4 cores"):
        ktir_of(TURN.replace("m = 128, n = 128 over 2", "m = 128 over 2, n = 128 over 2"))

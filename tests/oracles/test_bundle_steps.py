"""The host steps of a host program, counted from its text."""

from __future__ import annotations

from pathlib import Path

from tests.oracles.bundle_steps import Step, host_steps, transfers

PROGRAM = r"""
builtin.module @m {
  func.func @main(%x: tensor<4xf32>) -> (tensor<2xf32>) {
    %0 = spyre.kernel.to_device %x : tensor<4xf32> to !spyre.tensor<[4] x SEN169_FP16, order [0], stick 0, hbm>
    spyre.kernel.launch @sdsc_bundle(%0) : !spyre.tensor<[4] x SEN169_FP16, order [0], stick 0, hbm>
    %1 = spyre.kernel.from_device %0 : !spyre.tensor<[4] x SEN169_FP16, order [0], stick 0, hbm> to tensor<4xf32>
    %2 = spyre.kernel.host "aten.sort" because "the \"network\" is too long" (%1) : (tensor<4xf32>) -> (tensor<4xf32>)
    %4 = spyre.kernel.host "aten.slice.Tensor"(%2) {end = 2} : (tensor<4xf32>) -> (tensor<2xf32>)
    func.return %4 : tensor<2xf32>
  }
}
"""


def test_steps_and_transfers(tmp_path: Path) -> None:
    (tmp_path / "program.mlir").write_text(PROGRAM)
    sort, cut = host_steps(tmp_path)
    assert sort == Step("aten.sort", r"the \"network\" is too long")
    assert cut == Step("aten.slice.Tensor", "")
    assert transfers(tmp_path) == 2


def test_a_program_without_steps(tmp_path: Path) -> None:
    (tmp_path / "program.mlir").write_text("builtin.module {}\n")
    assert host_steps(tmp_path) == ()

"""Weights that kernels widen: which buffers they are, and how their kernels count the cores."""

from __future__ import annotations

import pytest

from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.transforms.utils.kernels.widened_weights import KernelCounts, counted_as_read, is_widened, keeps_widened
from tests.unit.transforms.levels import ops, passed


def program(source: str = "w", place: str = "hbm") -> list[KernelOp]:
    """A conversion of an eight-bit weight, its product with a scale, and a product of matrices that reads this."""
    text = """
    !n = !spyre.tensor<[256, 128] x SEN143_FP8, order [0, 1], stick 0, hbm, qfp8ch>
    !t = !spyre.tensor<[256, 128] x SEN169_FP16, order [0, 1], stick 0, PLACE>
    !s = !spyre.tensor<[256, 1] x SEN169_FP16, order [0, 1], stick 0, hbm>
    !x = !spyre.tensor<[4, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
    !y = !spyre.tensor<[4, 256] x SEN169_FP16, order [1, 0], stick 1, hbm>
    func.func @main(%w: tensor<256x128xf8E4M3FN>, %s: tensor<256x1xf16>, %x: tensor<4x128xf16>) -> tensor<4x256xf16> {
      %w1 = spyre.kernel.to_device %w : tensor<256x128xf8E4M3FN> to !n
      %w2 = spyre.kernel.alloc : !n
      %s1 = spyre.kernel.to_device %s : tensor<256x1xf16> to !s
      %x1 = spyre.kernel.to_device %x : tensor<4x128xf16> to !x
      %a = spyre.kernel.alloc : !t
      spyre.kernel.convert [d0 = 256, d1 = 128] ins(%SOURCE[d0, d1] : !n) outs(%a[d0, d1] : !t)
      %b = spyre.kernel.alloc : !t
      spyre.kernel.compute "mul" [i = 256, j = 128] ins(%a[i, j] : !t, %s1[i, 0] : !s) outs(%b[i, j] : !t)
      %y = spyre.kernel.alloc : !y
      spyre.kernel.compute "batchmatmul" [m = 4, n = 256, k = 128]
          ins(%x1[m, k] : !x, %b[n, k] : !t) outs(%y[m, n] : !y)
      %z = spyre.kernel.from_device %y : !y to tensor<4x256xf16>
      func.return %z : tensor<4x256xf16>
    }
    """
    module = passed(text.replace("%SOURCE", f"%{source}").replace("PLACE", place))
    found = ops(module, KernelOp)
    _KEPT.append(module)
    return found


_KEPT: list[object] = []  # modules, as their ops do not hold them


def test_what_elementwise_kernels_make_of_it_is_one_too() -> None:
    assert [is_widened(op.output) for op in program("w1")] == [True, True, False]


def test_what_the_program_computes_is_no_weight() -> None:
    assert not any(is_widened(op.output) for op in program("w2"))


def test_the_summed_loop_comes_first() -> None:
    convert, scale, product = program("w1")
    assert [d.name for d in counted_as_read(convert).data] == ["d1", "d0"]
    assert [d.name for d in counted_as_read(scale).data] == ["j", "i"]
    assert counted_as_read(product) == product.space


@pytest.mark.parametrize(("place", "kept"), [("hbm", [False] * 3), ("lx", [True] * 3)])
def test_kernels_around_the_scratchpads_are_divided(place: str, kept: list[bool]) -> None:
    assert [keeps_widened(op) for op in program("w1", place)] == kept


def test_a_long_chain_of_kernels_is_no_weight() -> None:
    """It ends after a few kernels, whatever the chain begins with."""
    kind = "!spyre.tensor<[4, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>"
    lines = [f"%a0 = spyre.kernel.to_device %x : tensor<4x64xf16> to {kind}"]
    for n in range(1, 1500):
        operands = f"ins(%a{n - 1}[i, j] : {kind}) outs(%a{n}[i, j] : {kind})"
        lines += [f"%a{n} = spyre.kernel.alloc : {kind}", f'spyre.kernel.compute "neg" [i = 4, j = 64] {operands}']
    lines += [f"%z = spyre.kernel.from_device %a1499 : {kind} to tensor<4x64xf16>", "func.return %z : tensor<4x64xf16>"]
    module = passed("func.func @main(%x: tensor<4x64xf16>) -> tensor<4x64xf16> {\n" + "\n".join(lines) + "\n}")
    known: KernelCounts = {}
    chain = [op.output for op in ops(module, KernelOp)]
    assert not any(is_widened(value, known) for value in reversed(chain))
    assert set(chain) <= set(known)


@pytest.mark.parametrize("backwards", [False, True])
def test_it_is_known_once_it_was_asked(backwards: bool) -> None:
    """Whichever is asked first, and as if each were asked by itself."""
    known: KernelCounts = {}
    values = [op.output for op in program("w1")]
    for value in reversed(values) if backwards else values:
        assert is_widened(value, known) == is_widened(value)
    assert [known[value] for value in values] == [1, 2, None]

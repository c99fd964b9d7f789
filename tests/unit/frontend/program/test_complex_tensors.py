"""Complex tensors at the border of a program."""

from __future__ import annotations

import torch

from spyre_mlir.frontend.program.complex_tensors import as_complex, as_real, complex_type

Z = torch.tensor([[1 + 2j, 3 - 1j], [0j, -4j]])


def test_parts_lie_in_the_memory_of_the_tensor() -> None:
    parts = as_real(Z)
    assert parts.tolist() == [[[1, 2], [3, -1]], [[0, 0], [0, -4]]]
    assert parts.data_ptr() == Z.data_ptr()
    assert as_complex(parts).data_ptr() == Z.data_ptr()
    assert as_real(real := torch.ones(3)) is real


def test_a_conjugate_is_resolved_in_memory_of_its_own() -> None:
    parts = as_real(Z.conj())
    assert parts[..., 1].tolist() == [[-2, 1], [0, 4]]
    assert parts.data_ptr() != Z.data_ptr()


def test_parts_that_are_no_neighbours_are_copied() -> None:
    turned = torch.stack([Z.real, Z.imag]).permute(1, 2, 0)
    assert torch.equal(as_complex(turned), Z)


def test_no_elements_and_odd_strides() -> None:
    empty = torch.empty(3, 0, 2).as_strided((3, 0, 2), (0, 2, 2))
    assert as_complex(empty).shape == (3, 0)
    one = torch.ones(8).as_strided((1, 2), (3, 1))
    assert as_complex(one).tolist() == [1 + 1j]
    assert as_complex(as_real(Z.mT)).stride() == Z.mT.stride()


def test_types() -> None:
    assert complex_type(torch.float32) is torch.complex64
    assert complex_type(torch.float64) is torch.complex128

"""The generator is left as it was, and what one run drew is drawn again by another."""

import torch

from spyre_mlir.frontend.reference.generator import Replayed, drawn_by, generator_kept, seed_generator


def test_the_generator_stays() -> None:
    before = torch.get_rng_state()
    with generator_kept():
        torch.rand(3)
    assert torch.equal(before, torch.get_rng_state())


def test_a_seed() -> None:
    with generator_kept():
        seed_generator(5)
        assert torch.initial_seed() == 5


def drawing() -> tuple[torch.Tensor, ...]:
    x = torch.empty(3, dtype=torch.get_default_dtype())
    return (
        x.uniform_(),
        torch.randn(4),
        torch.randint(0, 9, (5,)),
        torch.nn.functional.dropout(torch.ones(6), 0.5, True),
    )


def test_numbers_are_drawn_again_in_double_precision() -> None:
    before = torch.get_rng_state()
    drawn = drawn_by(drawing)
    assert torch.equal(before, torch.get_rng_state())
    with generator_kept():
        wanted = drawing()
    torch.set_default_dtype(torch.float64)
    try:
        with Replayed(drawn):
            got = drawing()
    finally:
        torch.set_default_dtype(torch.float32)
    for a, b in zip(got, wanted, strict=True):
        assert torch.equal(a, b.to(a.dtype))
    assert got[0].dtype is torch.float64
    assert torch.equal(before, torch.get_rng_state())

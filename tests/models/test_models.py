"""Models of the zoo, from torch to the bundle on disk: every level agrees, and nothing runs on the host."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("transformers")

import spyre_mlir
from spyre_mlir.report import Verification
from tests.models.zoo import ZOO, build

TOLERANCE = 1e-4
IN_EVERY_RUN = ("llama", "gpt2", "bert", "llama_static_decode", "mlp")
CASES = [pytest.param(n, marks=() if n in IN_EVERY_RUN else pytest.mark.slow) for n in ZOO]
HOST_OPS = ("builtin.", "func.", "spyre.kernel.", "superdsc.", "sdscbundle.", "arith.constant", "arith.addi")


def summary(name: str, compiled: object, verification: Verification, host_steps: int) -> str:
    record = compiled._lowered.records[-1]  # pyright: ignore
    errors = "  ".join(f"{level.level} {level.error:.1e}" for level in verification.levels)
    return f"{name}: {record.kernels} kernels, {record.device_bytes:,} bytes, {host_steps} host steps; {errors}"


@pytest.mark.parametrize("name", CASES)
def test_every_level_agrees_with_torch(name: str) -> None:
    model, inputs = build(name)
    compiled = spyre_mlir.compile(model, inputs, numerics="exact")
    module = compiled._lowered.modules["superdsc"]
    host_steps = [op.name for op in module.walk() if not op.name.startswith(HOST_OPS)]
    verification = compiled.verify(*inputs, tolerance=TOLERANCE)
    print(summary(name, compiled, verification, len(host_steps)))
    assert host_steps == []
    assert '"aten.' not in compiled.mlir("aten"), "an aten.call is left"
    assert verification, str(verification)


@pytest.mark.slow
def test_prefill_then_decode_is_what_torch_generates() -> None:
    """The program for the prompt writes the cache that the program for single tokens goes on with."""
    prompt, _ = build("llama_static_prefill")
    tokens = torch.randint(5, 127, (1, 18), generator=torch.Generator().manual_seed(3))
    reference, _ = build("llama_static_prefill")
    wanted = [reference(tokens[:, :16], torch.tensor(0))[:, -1]]
    wanted += [reference(tokens[:, i : i + 1], torch.tensor(i))[:, -1] for i in (16, 17)]
    first = spyre_mlir.compile(prompt, (tokens[:, :16], torch.tensor(0)), numerics="exact")
    got = [first(tokens[:, :16], torch.tensor(0))[:, -1]]
    single = spyre_mlir.compile(prompt, (tokens[:, 16:17], torch.tensor(16)), numerics="exact")
    for name in first._program.mutations.values():
        single._values[name] = first._values[name]
    got += [single(tokens[:, i : i + 1], torch.tensor(i))[:, -1] for i in (16, 17)]
    for a, b in zip(got, wanted, strict=True):
        assert float((a - b).abs().max() / b.abs().max()) < TOLERANCE


def test_padding_of_a_sentence_does_not_reach_the_other_words() -> None:
    """The mask is an input of the program: another one needs no other program."""
    model, (words, mask) = build("bert")
    compiled = spyre_mlir.compile(model, (words, mask), numerics="exact")
    padded = mask.clone()
    padded[0, 10:] = 0
    assert compiled.verify(words, padded, tolerance=TOLERANCE)
    assert not torch.allclose(compiled(words, padded)[0], compiled(words, mask)[0], atol=1e-3)

"""Compiles a 2-layer Llama, writes its bundle, runs it from disk, and compares with torch."""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

import spyre_mlir

HIDDEN, TOKENS, LAYERS, VOCABULARY = 256, 64, 2, 512
TOLERANCE = 1e-4


class Logits(torch.nn.Module):
    """A causal language model that returns its logits only."""

    def __init__(self, model: LlamaForCausalLM) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Logits [batch, tokens, vocabulary] of token numbers [batch, tokens]."""
        return self.model(input_ids=input_ids, use_cache=False).logits


def build() -> tuple[torch.nn.Module, torch.Tensor]:
    """A Llama with random weights, and a prompt."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=HIDDEN,
        intermediate_size=2 * HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    return Logits(LlamaForCausalLM(config)).eval(), torch.randint(0, VOCABULARY, (1, TOKENS))


def main() -> int:
    """Runs the demo; returns 0 if every level agrees with torch."""
    warnings.filterwarnings("ignore", category=FutureWarning, module="copyreg")
    started = time.perf_counter()
    model, prompt = build()
    print(f"Llama: {LAYERS} layers, hidden {HIDDEN}, {TOKENS} tokens")
    compiled = spyre_mlir.compile(model, (prompt,))
    print(compiled.report())
    with tempfile.TemporaryDirectory() as folder:
        bundle = compiled.save(Path(folder) / "llama")
        files = [path for path in bundle.rglob("*") if path.is_file()]
        print(f"bundle: {len(files)} files, {sum(f.stat().st_size for f in files):,} bytes")
    logits = compiled(prompt)
    with torch.no_grad():
        difference = float((logits - model(prompt)).abs().max())
    print(f"logits {tuple(logits.shape)} from the bundle on disk, largest difference from torch {difference:.2e}")
    verification = compiled.verify(prompt, tolerance=TOLERANCE)
    print(verification)
    print(f"{time.perf_counter() - started:.1f} s")
    return 0 if verification else 1


if __name__ == "__main__":
    sys.exit(main())

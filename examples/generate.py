"""Trains a character model on the README, and generates text on the hardware model: `python examples/generate.py`.

The model is one of transformers, and `generate` is called as always. Behind it there is one program that reads the
prompt and one that reads a character; they share the weights, and the cache stays on the card. The same text comes from
torch.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import torch
import transformers

import spyre_mlir
from spyre_mlir import Generation

README = Path(__file__).parents[1] / "README.md"
WINDOW, BATCH, RATE = 64, 16, 3e-3
PROMPT = "spyre-opt "


def character_model(characters: int) -> transformers.LlamaForCausalLM:
    """A Llama of two layers of hidden size 64, whose tokens are characters."""
    config = transformers.LlamaConfig(
        vocab_size=characters,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=0,
    )
    return transformers.LlamaForCausalLM(config)


def train(model: transformers.LlamaForCausalLM, text: torch.Tensor, steps: int) -> float:
    """Trains on random windows of the text, and returns the loss of the last step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    loss = torch.zeros(())
    for _ in range(steps):
        starts = torch.randint(0, len(text) - WINDOW, (BATCH,))
        windows = torch.stack([text[start : start + WINDOW] for start in starts.tolist()])
        loss = model(input_ids=windows, labels=windows).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main() -> int:
    """Prints both texts; 1 if they differ in exact numerics."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200, help="of training")
    parser.add_argument("--tokens", type=int, default=64, help="to generate")
    parser.add_argument("--numerics", choices=("exact", "device"), default="exact")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    text = README.read_text(encoding="utf-8")
    characters = sorted(set(text))
    codes = {character: code for code, character in enumerate(characters)}
    model, begun = character_model(len(characters)), time.perf_counter()
    loss = train(model, torch.tensor([codes[c] for c in text]), arguments.steps)
    print(f"trained for {time.perf_counter() - begun:.0f} s to a loss of {loss:.2f}")
    model.eval()

    prompt = torch.tensor([[codes[c] for c in PROMPT]])
    how = {"max_new_tokens": arguments.tokens, "do_sample": False}
    expected = model.generate(prompt, cache_implementation="static", **how)
    compiled = spyre_mlir.compile(model, generation=Generation(), numerics=arguments.numerics)
    begun = time.perf_counter()
    found = compiled.generate(prompt, **how)
    for name, tokens in (("torch", expected), ("spyre", found)):
        print(f"--- {name}\n{''.join(characters[n] for n in tokens[0].tolist())}")
    same = torch.equal(found, expected)
    print(f"--- {'the same text' if same else 'texts differ'}, {len(compiled.programs)} programs")
    print(f"{time.perf_counter() - begun:.0f} s with compiling them")
    for step, programs in (("prefill", compiled.prefill), ("decode", compiled.decode)):
        print(f"{step}: {', '.join(f'{program.kernels} kernels' for program in programs)}")
    return 0 if same or arguments.numerics == "device" else 1


if __name__ == "__main__":
    sys.exit(main())

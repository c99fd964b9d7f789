"""Time of a generated token on the machine beside torch eager: CPU seconds after the first token, in one process.

Both sides run the same `generate` of transformers on a Llama of 4 layers of hidden size 256, in turns, with one thread:
CPU seconds of more threads include their waiting for one another, which makes eager look slow. Medians of the rounds
are compared. The first text of ours, with compilation, is counted by itself.
Run it alone on the machine: ``python benchmarks/generation.py [--cache sliding] [--numerics exact] [--tokens 64]
[--profile]``.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import transformers
from transformers.generation.streamers import BaseStreamer

import spyre_mlir
from spyre_mlir import Generation

LIMIT = 30.0
PROMPT, WINDOW = 16, 32


class Stamps(BaseStreamer):
    """CPU seconds of the process when each token is known."""

    def __init__(self) -> None:
        """Starts without any."""
        self.seconds: list[float] = []

    def put(self, value: torch.Tensor) -> None:  # noqa: ARG002 - transformers' interface
        """Notes the time; the first value is the prompt."""
        self.seconds.append(time.process_time())

    def end(self) -> None:
        """Does nothing."""

    @property
    def per_token(self) -> float:
        """Seconds of a token after the first."""
        return (self.seconds[-1] - self.seconds[1]) / (len(self.seconds) - 2)


def model_of(layers: int, hidden: int, cache: str) -> Any:
    """A model with random weights; one with a window for a sliding cache."""
    sizes: dict[str, Any] = {
        "vocab_size": 512,
        "hidden_size": hidden,
        "intermediate_size": 4 * hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "eos_token_id": None,
        "pad_token_id": 0,
    }
    torch.manual_seed(0)
    if cache == "sliding":
        return transformers.MistralForCausalLM(transformers.MistralConfig(**sizes, sliding_window=WINDOW)).eval()
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes)).eval()


def text(generate: Callable[..., Any], prompt: torch.Tensor, how: dict[str, Any]) -> tuple[torch.Tensor, float]:
    """The tokens of a text, and the seconds of one."""
    stamps = Stamps()
    return generate(prompt, streamer=stamps, **how), stamps.per_token


def profile(call: Callable[[], Any]) -> None:
    """Prints where the time of a text goes."""
    import cProfile
    import pstats

    profiler = cProfile.Profile()
    profiler.runcall(call)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


def main() -> int:
    """Prints the comparison; 1 if the ratio is over its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", choices=("static", "sliding", "growing"), default="static")
    parser.add_argument("--numerics", choices=("device", "exact", "none"), default="device")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--profile", action="store_true", help="print where a text of ours spends its time")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model = model_of(arguments.layers, arguments.hidden, arguments.cache)
    prompt = torch.randint(1, 512, (1, PROMPT))
    how: dict[str, Any] = {"max_new_tokens": arguments.tokens, "do_sample": False}
    static = {"cache_implementation": "static"} if arguments.cache != "growing" else {}
    compiled: Any = spyre_mlir.compile(model, generation=Generation(cache=arguments.cache), numerics=arguments.numerics)
    begun = time.process_time()
    found, _ = text(compiled.generate, prompt, how)
    first = time.process_time() - begun
    if arguments.profile:
        profile(lambda: text(compiled.generate, prompt, how))
        return 0
    rounds = [
        (text(compiled.generate, prompt, how)[1], text(model.generate, prompt, how | static)[1])
        for _ in range(arguments.rounds)
    ]
    ours, theirs = (statistics.median(column) for column in zip(*rounds, strict=True))
    alike = (found == model.generate(prompt, **how, **static))[0]
    same = len(alike) if alike.all() else int(alike.long().argmin())
    shape = f"{arguments.layers} layers of hidden {arguments.hidden}"
    print(f"{shape}, {arguments.cache} cache, {arguments.numerics} numerics, {torch.get_num_threads()} threads")
    print(f"programs: {len(compiled.prefill)} for prompts, {len(compiled.decode)} for tokens; first text {first:.1f} s")
    print(f"a token: {1e3 * ours:.1f} ms, eager {1e3 * theirs:.2f} ms, ratio {ours / theirs:.1f}, limit {LIMIT:.0f}")
    print(f"tokens as torch: the first {same - PROMPT} of {arguments.tokens}")
    return int(ours / theirs > LIMIT)


if __name__ == "__main__":
    sys.exit(main())

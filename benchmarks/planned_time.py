"""Predicted time of a Llama layer under the ways in which `divide-work` divides products: default, published, fastest.

`python benchmarks/planned_time.py`. The time is the cost model's, after place-lx, so that buffers that a division sends
to device memory count. Weights are on the meta device.
"""

from __future__ import annotations

import sys
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from spyre_mlir.frontend import import_program
from spyre_mlir.pipeline import lower
from spyre_mlir.report.timing import module_timeline
from spyre_mlir.universe import make_context

SIZES = {  # hidden size, tokens, inner size, heads, key and value heads
    "256, 128 tokens": (256, 128, 768, 8, 4),
    "1024, 128 tokens": (1024, 128, 3072, 8, 4),
    "1024, 512 tokens": (1024, 512, 3072, 8, 4),
    "4096, 64 tokens": (4096, 64, 12800, 32, 8),
    "4096, 512 tokens": (4096, 512, 12800, 32, 8),
}


class Logits(torch.nn.Module):
    """A Llama that returns its logits."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.model = LlamaForCausalLM(config)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Runs the model without a cache."""
        return self.model(input_ids=input_ids, use_cache=False).logits


def layer(hidden: int, tokens: int, inner: int, heads: int, shared: int) -> tuple[Logits, torch.Tensor]:
    config = LlamaConfig(
        vocab_size=512,
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=1,
        num_attention_heads=heads,
        num_key_value_heads=shared,
    )
    with torch.device("meta"):
        return Logits(config).eval(), torch.zeros(1, tokens, dtype=torch.long)


def main() -> int:
    print(f"{'hidden size':18} {'products':10} {'us':>8} {'roofline':>8} {'HBM MB':>8} {'ratio':>6} {'lowering s':>10}")
    for name, size in SIZES.items():
        model, tokens = layer(*size)
        module = import_program(model, (tokens,)).module
        for way in ("default", "published", "fastest"):
            started = time.perf_counter()
            lowered = lower(module, make_context(), options={"divide-work": {"products": way}})
            seconds = time.perf_counter() - started
            t = module_timeline(lowered.modules["superdsc"])
            least = ">" if t.is_lower_bound else " "
            times = f"{least}{t.total_us:8.0f} {t.roofline_us:8.0f} {t.moved_bytes / 1e6:8.1f} {t.traffic_ratio:6.2f}"
            print(f"{name:18} {way:10} {times} {seconds:10.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

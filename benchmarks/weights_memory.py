"""Memory, disk and time of binding a sharded checkpoint to a Llama without weights, and of writing its bundle.

A checkpoint with random bfloat16 weights is made in a temporary directory and removed in the end; ``--layers 10`` of
the default sizes are 4.3 GB, ``--layers 40`` are 8 billion parameters. Anonymous memory (RssAnon) is sampled every 5 ms
of the process that compiles, binds and writes; mapped files are not anonymous, since the system can drop their pages.
``--compare`` also binds the checkpoint's tensors from memory, and holds the bytes of the device form together.
Run it alone on the machine: ``python benchmarks/weights_memory.py [--layers 10] [--hidden 4096] [--compare]``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

LIMIT_GB, LIMIT_DISK = 1.2, 1.05
TOKENS = 128
_GB = 1e9
_STATUS = Path("/proc/self/status")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=10)
    parser.add_argument("--hidden", type=int, default=4096)
    parser.add_argument("--intermediate", type=int, default=12800)
    parser.add_argument("--vocabulary", type=int, default=49152)
    parser.add_argument("--directory", help="where the checkpoint and the bundle are made (default: of the system)")
    parser.add_argument("--compare", action="store_true", help="also bind from memory, and compare the device form")
    parser.add_argument("--stage", choices=("make", "bind"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stage is not None:
        {"make": make, "bind": bind}[options.stage](options)
        return
    with tempfile.TemporaryDirectory(prefix="spyre-weights-", dir=options.directory) as folder:
        for stage in ("make", "bind"):
            again = [sys.executable, __file__, *sys.argv[1:], "--stage", stage, "--directory", folder]
            subprocess.run(again, check=True)


def config(options: argparse.Namespace) -> Any:
    from transformers import LlamaConfig

    return LlamaConfig(
        vocab_size=options.vocabulary,
        hidden_size=options.hidden,
        intermediate_size=options.intermediate,
        num_hidden_layers=options.layers,
        num_attention_heads=max(1, options.hidden // 128),
        num_key_value_heads=max(1, options.hidden // 512),
        tie_word_embeddings=False,
    )


def weightless(options: argparse.Namespace) -> Any:
    """The model on the meta device, in bfloat16."""
    import torch
    from transformers import LlamaForCausalLM

    class Logits(LlamaForCausalLM):
        def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
            return super().forward(input_ids=input_ids, use_cache=False).logits

    with torch.device("meta"):
        return Logits(config(options)).to(torch.bfloat16).eval()


def make(options: argparse.Namespace) -> None:
    """Write the checkpoint, a shard per layer and one for the rest."""
    import torch
    from safetensors.torch import save_file

    directory = Path(options.directory) / "checkpoint"
    directory.mkdir()
    shards: dict[str, dict[str, Any]] = {}
    for name, tensor in weightless(options).state_dict().items():
        layer = name.split(".")[2] if ".layers." in name else "rest"
        shards.setdefault(f"model-{layer}.safetensors", {})[name] = tensor
    weight_map: dict[str, str] = {}
    random = torch.Generator().manual_seed(0)
    for file, tensors in shards.items():
        made = {}
        for name, tensor in tensors.items():
            made[name] = torch.empty(tensor.shape, dtype=tensor.dtype).normal_(0.0, 0.02, generator=random)
            weight_map[name] = file
        save_file(made, directory / file)
    (directory / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))


def bind(options: argparse.Namespace) -> None:
    """Compile without weights, bind, write; print memory at every step."""
    import torch
    import transformers  # noqa: F401 - part of the interpreter, as is torch

    import spyre_mlir

    folder, shown = Path(options.directory), dict[str, float]()
    interpreter = anonymous()
    model = weightless(options)
    prompt = torch.zeros(1, TOKENS, dtype=torch.int64)
    parameters = sum(p.numel() for p in model.parameters())
    with Peak() as peak:
        compiled = timed(shown, "compile", lambda: spyre_mlir.compile(model, (prompt,), host_fallback="allow"))
        compile_peak = peak.bytes - interpreter
        bound = timed(shown, "bind", lambda: compiled.bind(folder / "checkpoint"))
        timed(shown, "save", lambda: bound.save(folder / "bundle"))
    peak_gb = (peak.bytes - interpreter) / _GB
    device = 2 * parameters  # DLFloat16
    disk = sum(p.stat().st_size for p in (folder / "bundle").rglob("*") if p.is_file())
    checkpoint = sum(p.stat().st_size for p in (folder / "checkpoint").iterdir())
    print(f"{parameters / 1e9:.2f} billion parameters, checkpoint {checkpoint / _GB:.2f} GB")
    print("seconds: " + ", ".join(f"{name} {seconds:.1f}" for name, seconds in shown.items()))
    print(f"interpreter {interpreter / _GB:.2f} GB anonymous; above it {compile_peak / _GB:.2f} GB while compiling,")
    print(f"{peak_gb:.2f} GB at most until the bundle is written; limit {LIMIT_GB}")
    print(f"bundle {disk / _GB:.2f} GB, {disk / device:.3f} x the device form of the weights; limit {LIMIT_DISK}")
    if options.compare:
        compare(compiled, folder)
    if peak_gb > LIMIT_GB or disk > LIMIT_DISK * device:
        sys.exit("above a limit")


def compare(compiled: Any, folder: Path) -> None:
    """Bind the tensors from memory, and hold the bytes of the device form against those bound from files."""
    from safetensors.torch import load_file

    tensors: dict[str, Any] = {}
    for file in sorted((folder / "checkpoint").glob("*.safetensors")):
        tensors |= load_file(file)
    compiled.bind(tensors).save(folder / "from memory", host_weights=False)
    digests = [
        json.loads((folder / name / "manifest.json").read_text())["digests"]["weights.safetensors"]
        for name in ("bundle", "from memory")
    ]
    print(f"device form from files {digests[0]}, from memory {digests[1]}")
    if digests[0] != digests[1]:
        sys.exit("the device form differs")


def timed(shown: dict[str, float], name: str, run: Callable[[], Any]) -> Any:
    started = time.perf_counter()
    result = run()
    shown[name] = time.perf_counter() - started
    return result


def anonymous() -> int:
    """Anonymous memory of this process, in bytes."""
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("RssAnon:"))
    return int(line.split()[1]) * 1024


class Peak:
    """The most anonymous memory while the block ran."""

    def __enter__(self) -> Peak:
        self.bytes, self._over = anonymous(), threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._over.wait(0.005):
            self.bytes = max(self.bytes, anonymous())

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()

"""Compile time of a Llama by stage and by number of layers, beside torch.compile (Inductor, CPU) in the same run.

Every measurement is a fresh process with cold caches; ``import torch`` and building the model are not counted.
Run it alone on the machine: ``python benchmarks/compile_time.py [--layers 1 2 4 8] [--repeat 3] [--flat]``.
Seconds of import, lowering and writing are CPU seconds; text is the length of the kernel level.

``--again`` measures the cache instead: a process that lowers, and a second one that finds what the first one kept, both
after export. Lines are the model with hidden size 256 and 8 layers, and Granite-8B with 40 layers without weights.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from itertools import pairwise

HIDDEN, TOKENS, VOCABULARY = 256, 128, 512


def returning_logits(model: object) -> object:
    """A causal language model that returns its logits only."""
    import torch

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
            return self.model(input_ids=input_ids, use_cache=False).logits

    return Logits().eval()


def build(layers: int) -> tuple[object, object]:
    """A Llama with random weights, and a prompt."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=HIDDEN,
        intermediate_size=2 * HIDDEN,
        num_hidden_layers=layers,
        num_attention_heads=8,
        num_key_value_heads=4,
    )
    return returning_logits(LlamaForCausalLM(config)), torch.randint(0, VOCABULARY, (1, TOKENS))


def measure_ours(layers: int, *, regions: bool = True) -> dict[str, float]:
    """Seconds of import, of every stage, of lowering, and of writing the bundle without weights; sizes."""
    model, prompt = build(layers)
    from spyre_mlir.frontend import import_program

    started = time.process_time()
    program = import_program(model, (prompt,))
    times = {"import": time.process_time() - started}
    from pathlib import Path

    from spyre_mlir.backend.directory import write_bundle
    from spyre_mlir.options import CompileOptions
    from spyre_mlir.pipeline import lower
    from spyre_mlir.text.render import module_text
    from spyre_mlir.universe import make_context

    begun = time.process_time()
    lowered = lower(program.module, make_context(), options=CompileOptions(regions=regions).passes())
    times["lower"] = time.process_time() - begun
    times |= {record.level: record.seconds for record in lowered.records}
    begun = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        write_bundle(Path(folder) / "bundle", lowered.modules["superdsc"], {})
    times["write"] = time.process_time() - begun
    times["total"] = time.process_time() - started
    times["text"] = float(len(module_text(lowered.modules["spyre.kernel"])))
    times["MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    times["aten ops"] = float(lowered.records[0].ops)
    times["kernels"] = float(lowered.records[-1].kernels)
    return times


def measure_inductor(layers: int) -> dict[str, float]:
    """Seconds of the first call under torch.compile, less those of the second."""
    import torch

    model, prompt = build(layers)
    compiled = torch.compile(model)
    seconds: list[float] = []
    with torch.no_grad():
        for _ in range(2):
            started = time.perf_counter()
            compiled(prompt)
            seconds.append(time.perf_counter() - started)
    return {"total": seconds[0] - seconds[1]}


def build_granite(layers: int) -> tuple[object, object]:
    """Granite-3.3-8B on meta, and a prompt of 512 tokens."""
    import torch
    from transformers import GraniteConfig, GraniteForCausalLM

    config = GraniteConfig(
        vocab_size=49159,
        hidden_size=4096,
        intermediate_size=12800,
        num_hidden_layers=layers,
        num_attention_heads=32,
        num_key_value_heads=8,
    )

    with torch.device("meta"):
        return returning_logits(GraniteForCausalLM(config).half()), torch.zeros(1, 512, dtype=torch.int64)


def measure_cached(layers: int, *, granite: bool = False) -> dict[str, float]:
    """Seconds after export: of import, of lowering by way of the cache, and of writing the bundle without weights."""
    import torch

    model, prompt = (build_granite if granite else build)(layers)
    from pathlib import Path

    from spyre_mlir.backend.directory import write_bundle
    from spyre_mlir.cache.lower import lower_once
    from spyre_mlir.frontend import import_program
    from spyre_mlir.options import CompileOptions
    from spyre_mlir.universe import make_context

    with torch.no_grad():
        exported = torch.export.export(model, (prompt,))
    begun = [time.process_time()]
    program = import_program(exported)
    begun.append(time.process_time())
    lowered = lower_once(program.module, make_context(), CompileOptions())
    begun.append(time.process_time())
    with tempfile.TemporaryDirectory() as folder:
        write_bundle(Path(folder) / "bundle", lowered.bundle(), {})
    begun.append(time.process_time())
    steps = dict(zip(("import", "lower", "write"), (b - a for a, b in pairwise(begun)), strict=True))
    return steps | {"total": begun[-1] - begun[0]}


def print_cached(repeat: int) -> None:
    """Prints a line per model: the first process, and the second."""
    columns = ("import", "lower", "write", "total")
    print(f"{'':24}  process  " + "  ".join(f"{c:>8}" for c in columns))
    for what, layers, name in (("cached", 8, "hidden 256, 8 layers"), ("granite", 40, "Granite-8B, 40 layers")):
        rows: dict[str, list[dict[str, float]]] = {"first": [], "second": []}
        for _ in range(repeat):
            with tempfile.TemporaryDirectory() as cache:
                for measured in rows.values():
                    measured.append(in_fresh_process(what, layers, SPYRE_MLIR_CACHE=cache))
        for process, measured in rows.items():
            cells = "  ".join(f"{median(measured)[c]:8.3f}" for c in columns)
            print(f"{name:24}  {process:7}  {cells}", flush=True)


def in_fresh_process(what: str, layers: int, **variables: str) -> dict[str, float]:
    """Runs one measurement in a process of its own, with an empty compiler cache."""
    with tempfile.TemporaryDirectory() as cache:
        cold = {"TORCHINDUCTOR_CACHE_DIR": cache, "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
        environment = {**os.environ, **cold, **variables}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", __file__, "--one", what, str(layers)],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
    return json.loads(done.stdout.splitlines()[-1])


def median(rows: list[dict[str, float]]) -> dict[str, float]:
    """Median of every column."""
    return {key: statistics.median(row[key] for row in rows) for key in rows[0]}


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--flat", action="store_true", help="every layer by itself, without regions")
    parser.add_argument("--again", action="store_true", help="the cache: a first and a second process")
    parser.add_argument("--one", nargs=2, metavar=("WHAT", "LAYERS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one is not None:
        measures = {
            "ours": measure_ours,
            "flat": partial(measure_ours, regions=False),
            "inductor": measure_inductor,
            "cached": measure_cached,
            "granite": partial(measure_cached, granite=True),
        }
        measure = measures[arguments.one[0]]
        print(json.dumps(measure(int(arguments.one[1]))))
        return 0
    if arguments.again:
        print_cached(arguments.repeat)
        return 0
    columns = ("import", "lower", "write", "total", "text", "MB")
    print("layers  " + "  ".join(f"{c:>12}" for c in columns) + "   kernels  us per op  inductor  ratio")
    ours_is = "flat" if arguments.flat else "ours"
    for layers in arguments.layers:
        ours = median([in_fresh_process(ours_is, layers) for _ in range(arguments.repeat)])
        theirs = median([in_fresh_process("inductor", layers) for _ in range(arguments.repeat)])
        per_op = 1e6 * (ours["total"] - ours["import"]) / ours["aten ops"]
        cells = "  ".join(f"{ours[c]:12.3f}" for c in columns)
        ratio = ours["total"] / theirs["total"]
        print(
            f"{layers:6d}  {cells}  {ours['kernels']:8.0f}  {per_op:9.0f}  {theirs['total']:8.2f}  {ratio:5.2f}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Compile time by stage: Llamas of 1 to 40 layers, Granite-8B without weights, and chains of pointwise operations.

Every measurement is a fresh process with cold caches; ``import torch`` and building the model are not counted, nor are
weights written. Seconds are CPU seconds, and *planning* is what the passes took of them that choose layouts, divisions,
loops and places: those of equal layers once. What Inductor takes cold for the same model stands beside them with
``--inductor``. ``--again`` measures the cache instead: a process that lowers, and a second one that finds what the
first one kept. Run it alone on the machine: ``python benchmarks/compile_time.py [CASE …] [--repeat 3] [--inductor]``.
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
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    Built = tuple[torch.nn.Module, tuple[torch.Tensor, ...]]

HIDDEN, TOKENS, VOCABULARY, CACHE = 256, 128, 512, 4096
PLANNING = (
    *("choose-layouts", "view-copies", "order-batches", "plan"),
    *("divide-work", "place-lx", "forward-results", "stage-transfers"),
)
STAGES = ("export", "import", "aten", "spyre.loop", "spyre.kernel", "superdsc", "write")
COLUMNS = (*STAGES, "after export", "planning", "MB")


class PlanningClock:
    """Observer of passes that adds up the CPU seconds of those that plan."""

    def __init__(self) -> None:
        self.seconds, self._begun = 0.0, 0.0

    def before(self, _name: str, _module: object) -> None:
        """Note when a pass begins."""
        self._begun = time.process_time()

    def after(self, name: str, _module: object) -> None:
        """Add the time of a pass that has run."""
        if name in PLANNING:
            self.seconds += time.process_time() - self._begun


def llama(layers: int) -> Built:
    """A Llama of hidden size 256 with random weights, and a prompt of 128 tokens."""
    from transformers import LlamaConfig

    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=HIDDEN,
        intermediate_size=2 * HIDDEN,
        num_hidden_layers=layers,
        num_attention_heads=8,
        num_key_value_heads=4,
    )
    return _language_model(config, TOKENS, device="cpu")


def granite(layers: int, tokens: int) -> Built:
    """Granite-3.3-8B without weights, and a prompt."""
    return _language_model(_granite_config(layers), tokens, device="meta")


def granite_decode(layers: int) -> Built:
    """Granite-3.3-8B without weights, which reads one token and updates a cache of 4,096 in place."""
    import torch
    from cached_decoder import CachedDecoder
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(_granite_config(layers), dtype=torch.float16)
        token, position = torch.empty(1, 1, dtype=torch.int64), torch.empty((), dtype=torch.int64)
        return CachedDecoder(model, CACHE).eval(), (token, position)


def chain(length: int) -> Built:
    """Pointwise operations, each of which reads the one before."""
    import torch

    class Chain(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            steps = (torch.tanh, torch.sigmoid, lambda v: v + x, lambda v: v * 0.5)
            for number in range(length):
                x = steps[number % len(steps)](x) if number % 7 else torch.relu(x) - number
            return x

    return Chain(), (torch.randn(64, 256),)


def _granite_config(layers: int) -> Any:
    from transformers import GraniteConfig

    return GraniteConfig(
        vocab_size=49152,
        hidden_size=4096,
        intermediate_size=12800,
        num_hidden_layers=layers,
        num_attention_heads=32,
        num_key_value_heads=8,
        max_position_embeddings=131072,
        attention_multiplier=0.0078125,
        embedding_multiplier=12.0,
        logits_scaling=16.0,
        residual_multiplier=0.22,
        pad_token_id=0,
    )


def _language_model(config: Any, tokens: int, *, device: str) -> Built:
    import torch
    from transformers import AutoModelForCausalLM

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = AutoModelForCausalLM.from_config(config, dtype=None if device == "cpu" else torch.float16)

        def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
            return self.model(input_ids=input_ids, use_cache=False).logits

    torch.manual_seed(0)
    with torch.device(device):
        return Logits().eval(), (torch.randint(0, config.vocab_size, (1, tokens)),)


CASES: dict[str, Callable[[], Built]] = {
    **{f"llama-{n}": partial(llama, n) for n in (1, 2, 4, 8, 16, 40)},
    **{f"granite-512-{n}": partial(granite, n, 512) for n in (1, 40)},
    **{f"granite-2048-{n}": partial(granite, n, 2048) for n in (1, 40)},
    **{f"granite-decode-{n}": partial(granite_decode, n) for n in (1, 40)},
    **{f"chain-{n}": partial(chain, n) for n in (64, 256, 1024)},
}


def measure_ours(case: str, *, regions: bool) -> dict[str, float]:
    """Seconds of export, import, every stage, and writing the bundle without weights; sizes."""
    model, inputs = CASES[case]()
    from spyre_mlir.backend.directory import write_bundle
    from spyre_mlir.collector import paused_collector
    from spyre_mlir.frontend import import_program
    from spyre_mlir.frontend.capture.export import export_model
    from spyre_mlir.options import CompileOptions
    from spyre_mlir.pipeline import lower
    from spyre_mlir.universe import make_context

    begun = time.process_time()
    exported = export_model(model, inputs, {}, lambda _: None)
    done = time.process_time()
    with paused_collector():  # as in `compile`
        program = import_program(exported)
        times = {"export": done - begun, "import": time.process_time() - done}
        clock, options = PlanningClock(), CompileOptions(regions=regions).passes()
        lowered = lower(program.module, make_context(), options=options, watch=clock)
    times["planning"] = clock.seconds
    times |= {record.level: record.seconds for record in lowered.records}
    begun = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        write_bundle(Path(folder) / "bundle", lowered.modules["superdsc"], {})
    times["write"] = time.process_time() - begun
    times["after export"] = time.process_time() - done
    times["MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    times["ops"] = sum(1 for _ in program.module.walk()) - 3
    times["kernels"] = lowered.records[-1].kernels
    return times


def measure_cached(case: str) -> dict[str, float]:
    """Seconds after export: of import, of lowering by way of the cache, and of writing the bundle without weights."""
    model, inputs = CASES[case]()
    from spyre_mlir.backend.directory import write_bundle
    from spyre_mlir.cache.lower import lower_once
    from spyre_mlir.frontend import import_program
    from spyre_mlir.frontend.capture.export import export_model
    from spyre_mlir.options import CompileOptions
    from spyre_mlir.universe import make_context

    exported = export_model(model, inputs, {}, lambda _: None)
    begun = [time.process_time()]
    program = import_program(exported)
    begun.append(time.process_time())
    lowered = lower_once(program.module, make_context(), CompileOptions())
    begun.append(time.process_time())
    with tempfile.TemporaryDirectory() as folder:
        write_bundle(Path(folder) / "bundle", lowered.bundle(), {})
    begun.append(time.process_time())
    steps = dict(zip(("import", "lower", "write"), (b - a for a, b in pairwise(begun)), strict=True))
    return steps | {"after export": begun[-1] - begun[0]}


def print_cached(cases: list[str], repeat: int) -> None:
    """Print two lines per model: the first process, and the second."""
    columns = ("import", "lower", "write", "after export")
    print(f"{'':18}  process" + "".join(f"{c:>13}" for c in columns))
    for case in cases:
        rows: dict[str, list[dict[str, float]]] = {"first": [], "second": []}
        for _ in range(repeat):
            with tempfile.TemporaryDirectory() as cache:
                for measured in rows.values():
                    measured.append(in_fresh_process("cached", case, SPYRE_MLIR_CACHE=cache))
        for process, measured in rows.items():
            cells = "".join(f"{median(measured)[c]:13.3f}" for c in columns)
            print(f"{case:18}  {process:7}{cells}", flush=True)


def measure_inductor(case: str) -> dict[str, float]:
    """CPU seconds of the first call under torch.compile and of its children, less those of the second call."""
    import torch

    model, inputs = CASES[case]()
    torch._inductor.config.compile_threads = 1
    compiled = torch.compile(model)
    seconds: list[float] = []
    with torch.no_grad():
        for _ in range(2):
            begun = _cpu_seconds()
            compiled(*inputs)
            seconds.append(_cpu_seconds() - begun)
    return {"inductor": seconds[0] - seconds[1]}


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def in_fresh_process(what: str, case: str, **variables: str) -> dict[str, float]:
    """Run one measurement in a process of its own, with an empty compiler cache."""
    with tempfile.TemporaryDirectory() as cache:
        cold = {"TORCHINDUCTOR_CACHE_DIR": cache, "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
        environment = {**os.environ, **cold, **variables}
        command = [sys.executable, "-W", "ignore", __file__, "--one", what, case]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def median(rows: list[dict[str, float]]) -> dict[str, float]:
    """Median of every column."""
    return {key: statistics.median(row[key] for row in rows) for key in rows[0]}


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--flat", action="store_true", help="every layer by itself, without regions")
    parser.add_argument("--inductor", action="store_true", help="compile the same model with Inductor, too")
    parser.add_argument("--again", action="store_true", help="the cache: a first and a second process")
    parser.add_argument("--one", nargs=2, metavar=("WHAT", "CASE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one is not None:
        what, case = arguments.one
        measures = {
            "ours": partial(measure_ours, regions=True),
            "flat": partial(measure_ours, regions=False),
            "inductor": measure_inductor,
            "cached": measure_cached,
        }
        print(json.dumps(measures[what](case)))
        return 0
    if arguments.again:
        print_cached(arguments.cases, arguments.repeat)
        return 0
    columns = (*COLUMNS, "ops", "ms per op", "kernels", *(("inductor", "ratio") if arguments.inductor else ()))
    print(f"{'':18}" + "".join(f"{column:>13}" for column in columns))
    for case in arguments.cases:
        row = median([in_fresh_process("flat" if arguments.flat else "ours", case) for _ in range(arguments.repeat)])
        row["ms per op"] = 1e3 * row["after export"] / row["ops"]
        if arguments.inductor:
            row |= median([in_fresh_process("inductor", case) for _ in range(arguments.repeat)])
            row["ratio"] = row["after export"] / row["inductor"]
        print(f"{case:18}" + "".join(f"{row[column]:13.2f}" for column in columns), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

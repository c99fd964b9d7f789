"""Speed of the machine beside numpy and torch eager in float32: whole calls in device numerics, all checks on.

Every measurement is a process of its own with one thread; both sides run there, in turns, and the medians of their CPU
seconds are compared. A call includes what goes to the device and what comes back; weights were sent by an earlier call.
`decode` is a step of hundreds of tiny kernels: its time is what a launch costs, ``us a kernel``. Programs are compiled
twice without the cache, and the second time counts: ``compile s`` and ``first s``, the first call, are those of a
process that has imported what it needs. ``first/next`` is the first call over a later one.
``--floor`` shows how far numpy itself is from the sum: the passes over memory that any call needs, without a machine.
Run it alone on the machine: ``python benchmarks/machine_speed.py [--only softmax] [--numerics none] [--repeat 5]
[--profile] [--floor]``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
LIMITS = {"add": 7.5, "softmax": 5.5, "matmul": 3.0, "llama": 3.0, "decode": 30.0}
# Of the step of tiny kernels: microseconds a kernel, seconds of the first call.
LAUNCH_US, FIRST_S = 200.0, 0.6
SHAPES = {
    "add": "2048x4096",
    "softmax": "2048x1024",
    "matmul": "256x1024x512",
    "llama": "4 layers, 1024, 128 tokens",
    "decode": "2 layers, 64, one token",
}


@dataclass(frozen=True)
class Pair:
    """Our call and the one it is compared with, on the same random inputs; `compiled` is the CPU time of compiling."""

    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    kernels: int
    compiled: float = 0.0


def compiled_twice(model: Any, inputs: tuple[Any, ...], numerics: str) -> tuple[Any, float]:
    """The second of two equal programs, and the CPU seconds that compiling it took; the first one is called, too."""
    import spyre_mlir

    spyre_mlir.compile(model, inputs, numerics=numerics, cache=False)(*inputs)
    started = time.process_time()
    compiled = spyre_mlir.compile(model, inputs, numerics=numerics, cache=False)
    return compiled, time.process_time() - started


def pair(name: str, numerics: str = "device") -> Pair:
    """The calls of a measurement."""
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    return {"llama": llama, "decode": decode}.get(name, partial(single, name))(numerics)


def single(name: str, numerics: str) -> Pair:
    """One operation beside numpy."""
    import numpy as np
    import torch

    def softmax(x: Any) -> Any:
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    class Operation(torch.nn.Module):
        def forward(self, *args: torch.Tensor) -> torch.Tensor:
            if name == "softmax":
                return torch.softmax(args[0], -1)
            return args[0] + args[1] if name == "add" else args[0] @ args[1]

    shapes = {"add": [(2048, 4096)] * 2, "softmax": [(2048, 1024)], "matmul": [(256, 1024), (1024, 512)]}[name]
    inputs = [torch.randn(shape) for shape in shapes]
    arrays = [x.numpy() for x in inputs]
    plain: dict[str, Callable[..., Any]] = {"add": np.add, "softmax": softmax, "matmul": np.matmul}
    compiled, took = compiled_twice(Operation(), tuple(inputs), numerics)
    return Pair(lambda: compiled(*inputs), lambda: plain[name](*arrays), compiled.kernels, took)


def llama(numerics: str) -> Pair:
    """A Llama with random weights beside torch eager."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    class Logits(torch.nn.Module):
        def __init__(self, model: torch.nn.Module) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
            return self.model(input_ids=input_ids, use_cache=False).logits

    config = LlamaConfig(
        vocab_size=512,
        hidden_size=1024,
        intermediate_size=2816,
        num_hidden_layers=4,
        num_attention_heads=16,
        num_key_value_heads=8,
    )
    model, prompt = Logits(LlamaForCausalLM(config)).eval(), torch.randint(0, 512, (1, 128))
    compiled, took = compiled_twice(model, (prompt,), numerics)
    return Pair(lambda: compiled(prompt), lambda: model(prompt), compiled.kernels, took)


def decode(numerics: str) -> Pair:
    """One token of a small Llama over a static cache of keys and values, beside torch eager."""
    import torch
    from cached_decoder import CachedDecoder
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=128,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    model, inputs = CachedDecoder(LlamaForCausalLM(config), 32).eval(), (torch.tensor([[5]]), torch.tensor(7))
    compiled, took = compiled_twice(model, inputs, numerics)
    return Pair(lambda: compiled(*inputs), lambda: model(*inputs), len(compiled.timeline().kernels), took)


def seconds(call: Callable[[], Any]) -> float:
    """CPU time of one call."""
    started = time.process_time()
    call()
    return time.process_time() - started


def measure(name: str, repeat: int, numerics: str) -> dict[str, float]:
    """Medians of both sides, after two calls of ours that are not counted: the second fills the caches."""
    calls = pair(name, numerics)
    first = seconds(calls.ours)
    calls.ours()
    calls.theirs()
    rows = [(seconds(calls.ours), seconds(calls.theirs)) for _ in range(repeat)]
    one, other = (statistics.median(column) for column in zip(*rows, strict=True))
    row = {"first": first, "ours": one, "theirs": other, "kernels": float(calls.kernels)}
    return row | {"compiled": calls.compiled}


def profile(name: str, numerics: str) -> None:
    """Prints where the time of one call goes."""
    import cProfile
    import pstats

    ours = pair(name, numerics).ours
    ours()
    profiler = cProfile.Profile()
    profiler.runcall(ours)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


def floor(repeat: int) -> None:
    """Prints what the passes of numpy take that an addition needs, in blocks that fit the cache, beside `numpy.add`.

    Two tensors go to sticks and a sum comes back: `copies` moves them. `checked` also does what rounding and its checks
    take of each of the three: magnitudes, their largest and smallest, half a unit added, and the rest cut off.
    """
    import numpy as np

    rows, sticks, together = 2048, 64, 16
    left, right = np.random.default_rng(0).standard_normal((2, rows, sticks, 64), np.float32)
    card = [np.zeros((sticks, rows, 64), np.float32) for _ in range(3)]
    scratch = np.empty((together, sticks, 64), np.uint32)

    def put(target: Any, values: Any, *, checked: bool) -> None:
        if not checked:
            np.copyto(target, values)
            return
        bits = values.view(np.uint32)
        np.bitwise_and(bits, np.uint32(0x7FFFFFFF), out=scratch)
        np.maximum.reduce(scratch, axis=None)
        np.minimum.reduce(scratch, axis=None)
        np.add(bits, np.uint32(1 << 13), out=scratch)
        np.bitwise_and(scratch, np.uint32(0xFFFFC000), out=scratch)
        np.copyto(target, scratch.view(np.float32))

    def call(*, checked: bool) -> Any:
        a, b, c = (x.transpose(1, 0, 2) for x in card)
        for given, target in ((left, a), (right, b)):
            for first in range(0, rows, together):
                part = slice(first, first + together)
                put(target[part], given[part], checked=checked)
        one, other, total = (x.reshape(-1, *scratch.shape) for x in card)
        for block in range(len(total)):
            put(total[block], one[block] + other[block], checked=checked)
        result = np.empty_like(left)
        np.copyto(result, c)
        return result

    for name, ours in (("copies", partial(call, checked=False)), ("checked", partial(call, checked=True))):
        ours()
        times = [(seconds(ours), seconds(partial(np.add, left, right))) for _ in range(repeat)]
        one, other = (statistics.median(column) for column in zip(*times, strict=True))
        print(f"add, {name:8} {1e3 * one:6.1f} ms, numpy.add {1e3 * other:6.2f} ms, ratio {one / other:4.1f}")


def in_fresh_process(name: str, *options: str) -> dict[str, float]:
    """Runs one measurement with one thread."""
    return json.loads(run_one(name, *options, capture_output=True).stdout.splitlines()[-1])


def run_one(name: str, *options: str, **how: Any) -> subprocess.CompletedProcess[str]:
    """Runs this script on one measurement, in a process with one thread."""
    command = [sys.executable, "-W", "ignore", __file__, "--one", name, *options]
    return subprocess.run(command, text=True, check=True, env={**os.environ, **ONE_THREAD}, **how)


def main() -> int:
    """Prints the table; 1 if a ratio is over its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=LIMITS, default=list(LIMITS))
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--numerics", choices=("device", "exact", "none"), default="device")
    parser.add_argument("--profile", action="store_true", help="print where one call of ours spends its time")
    parser.add_argument("--floor", action="store_true", help="print what numpy's own passes of an addition take")
    parser.add_argument("--one", choices=LIMITS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.floor:
        floor(arguments.repeat)
        return 0
    if arguments.one is not None:
        if arguments.profile:
            profile(arguments.one, arguments.numerics)
        else:
            print(json.dumps(measure(arguments.one, arguments.repeat, arguments.numerics)))
        return 0
    if arguments.profile:
        for name in arguments.only:
            run_one(name, "--profile", "--numerics", arguments.numerics)
        return 0
    print(
        "what      shape                        compile s  first s  first/next   call ms  us a kernel  baseline ms"
        "   ratio   limit"
    )
    over = False
    for name in arguments.only:
        row = in_fresh_process(name, "--repeat", str(arguments.repeat), "--numerics", arguments.numerics)
        ratio = row["ours"] / row["theirs"]
        launch = 1e6 * row["ours"] / row["kernels"]
        over = over or ratio > LIMITS[name] or (name == "decode" and (launch > LAUNCH_US or row["first"] > FIRST_S))
        print(
            f"{name:8}  {SHAPES[name]:27}  {row['compiled']:9.2f}  {row['first']:7.2f}"
            f"  {row['first'] / row['ours']:10.1f}  {1e3 * row['ours']:8.1f}  {launch:11.0f}"
            f"  {1e3 * row['theirs']:11.2f}  {ratio:6.1f}  {LIMITS[name]:6.1f}",
            flush=True,
        )
    return int(over)


if __name__ == "__main__":
    sys.exit(main())

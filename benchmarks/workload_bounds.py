"""Bounds of `workloads.toml` from sizes and two rates: multiply-adds, and bytes from and to outside, each once.

The own bound adds the inputs that no function reads as torch-spyre places them, with the last dimension in the lanes:
each is read as it lies, in whole sticks, and written once more. A product takes its second operand with its columns in
the lanes, so keys (or queries instead) are laid out again. So are the images of windows, unless it takes less to sum
over whole rows of an image, with zeros between the taps. Caches lie as a plan likes.

Imports nothing of the compiler, so that its own bounds can be held against these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

BYTES, LANES = 2, 64  # of an element, and elements of a stick
HEAD = 128
HIDDEN, INNER, HEADS, SHARED = 4096, 12800, 32, 8  # of Granite-3.3-8B
# Multiply-adds per nanosecond and core, and bytes per nanosecond of the card: fitted on cards, and at the peak.
RATES = {"calibrated": (1140.0, 150.0), "peak": (1536.0, 204.8)}
CORES = 32

Work = tuple[float, int]  # multiply-adds, elements from and to outside


def roofline_us(workload: dict[str, Any], profile: str) -> float:
    """The longer of the time of all arithmetic and of all bytes."""
    macs, elements = work(workload)
    rate, memory = RATES[profile]
    return max(macs / rate / CORES, elements * BYTES / memory) / 1000


def own_bound_us(workload: dict[str, Any], profile: str) -> float:
    """The roofline, and the time of laying out again what cannot be read as it is placed."""
    return roofline_us(workload, profile) + relaid_bytes(workload) / RATES[profile][1] / 1000


def relaid_bytes(workload: dict[str, Any]) -> int:
    """Bytes read and written to lay out again the inputs that no function reads as they are placed."""
    if workload["kind"] == "attention" and not workload.get("cached"):
        # Either operand of the scores may be the second one; their rows are whole sticks.
        rows = min(workload["heads"] * workload["queries"], workload["shared_heads"] * workload["keys"])
        return 2 * rows * HEAD * BYTES
    if workload["kind"] == "convolution" and workload["filters"][1] > 1:
        (channels, height, width), size = workload["image"], workload["filters"][1]
        macs, (rate, memory) = work(workload)[0] * width / size, RATES["calibrated"]
        moved = channels * height * (-(-width // LANES) * LANES + width) * BYTES
        rows_us, bytes_us = macs / rate / CORES / 1000, moved / memory / 1000
        return moved if rows_us > roofline_us(workload, "calibrated") + bytes_us else 0
    return 0


def work(workload: dict[str, Any]) -> Work:
    """Multiply-adds and elements of a workload; of causal attention half."""
    return KINDS[workload["kind"]](workload)


def _linear(w: dict[str, Any]) -> Work:
    rows, depth, columns = w["sizes"]
    return rows * depth * columns, rows * depth + depth * columns + rows * columns


def _swiglu(w: dict[str, Any]) -> Work:
    rows, hidden, inner = w["sizes"]
    return 3 * rows * hidden * inner, 2 * rows * hidden + 3 * hidden * inner


def _swiglu8(w: dict[str, Any]) -> Work:
    rows, hidden, inner = w["sizes"]
    return 3 * rows * hidden * inner, 2 * rows * hidden + 3 * hidden * inner // BYTES + 2 * inner + hidden


def _swiglu_integers(w: dict[str, Any]) -> Work:
    rows, hidden, inner = w["sizes"]
    weights = 3 * hidden * inner
    scales = weights // 32 if w["bits"] == 4 else 2 * inner + hidden
    return 3 * rows * hidden * inner, 2 * rows * hidden + weights * w["bits"] // (8 * BYTES) + scales


def _in_and_out(w: dict[str, Any]) -> Work:
    rows, columns = w["sizes"]
    return 0, (w.get("inputs", 1) + 1) * rows * columns


def _scores(w: dict[str, Any]) -> float:
    """Multiply-adds of both products of an attention."""
    return 2 * w["heads"] * w["queries"] * w["keys"] * HEAD * (0.5 if w.get("causal") else 1)


def _attention(w: dict[str, Any]) -> Work:
    return _scores(w), 2 * (w["heads"] * w["queries"] + w["shared_heads"] * w["keys"]) * HEAD


def _convolution(w: dict[str, Any]) -> Work:
    (channels, height, width), (filters, size) = w["image"], w["filters"]
    stride, padding, groups = (w.get(name, usual) for name, usual in (("stride", 1), ("padding", 0), ("groups", 1)))
    out = filters
    for extent in (height, width):
        out *= (extent + 2 * padding - size) // stride + 1
    weights = filters * (channels // groups) * size * size
    return out * (channels // groups) * size * size, channels * height * width + weights + out


def _bottleneck(w: dict[str, Any]) -> Work:
    (channels, height, width), inner = w["image"], w["inner"]
    weights = 2 * channels * inner + 9 * inner * inner
    return height * width * weights, 2 * channels * height * width + weights


def _experts(w: dict[str, Any]) -> Work:
    (rows, hidden, inner), count = w["sizes"], w["experts"]
    weights = count * 3 * hidden * inner
    return rows * (weights + hidden * count), 2 * rows * hidden + weights + hidden * count


def _layer(w: dict[str, Any]) -> Work:
    rows, cache = w.get("batch", 1) * w["tokens"], w.get("cache")
    weights = HIDDEN * (2 * HIDDEN + 2 * SHARED * HEAD) + 3 * HIDDEN * INNER
    keys = w["tokens"] if cache is None else cache
    scores = _scores({"heads": HEADS, "queries": rows, "keys": keys, "causal": cache is None})
    elements = 2 * rows * HIDDEN + weights + 2 * HIDDEN + 2 * w["tokens"] * HEAD
    if cache is not None:
        elements += 2 * w.get("batch", 1) * SHARED * cache * HEAD
    return rows * weights + scores, elements


KINDS: dict[str, Callable[[dict[str, Any]], Work]] = {
    "attention": _attention,
    "bottleneck": _bottleneck,
    "chain": _in_and_out,
    "convolution": _convolution,
    "experts": _experts,
    "layer": _layer,
    "layer_norm": _in_and_out,
    "linear": _linear,
    "softmax": _in_and_out,
    "swiglu": _swiglu,
    "swiglu8": _swiglu8,
    "swiglu_integers": _swiglu_integers,
}

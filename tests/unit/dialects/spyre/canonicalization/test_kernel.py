"""Buffers, kernels and transfers that `canonicalize` drops, and those that it must keep."""

from __future__ import annotations

import pytest

from tests.unit.dialects.texts import canonical

TYPES = {
    "!rows": "!spyre.tensor<[64, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>",
    "!columns": "!spyre.tensor<[64, 128] x SEN169_FP16, order [1, 0], stick 0, hbm>",
    "!half": "!spyre.tensor<[64] x SEN169_FP16, order [0, unit], stick unit, hbm>",
    "!single": "!spyre.tensor<[64] x IEEE_FP32, order [0, unit], stick unit, hbm>",
    "!index": "!spyre.tensor<[64] x SENUINT32, order [0], stick 0, hbm>",
    "!part": "!spyre.tensor<[16, 128] x SEN169_FP16, order [1, 0], stick 1, extents [64, 128], hbm>",
}
HOSTS = {"!rows": "tensor<64x128xf16>", "!half": "tensor<64xf16>", "!single": "tensor<64xf32>"}


def kept(*lines: str, argument: str = "!rows") -> list[str]:
    """The kernel ops that are left of a function with `%a`, sent in a type; the result is `%r`."""
    host = HOSTS[argument]
    body = "\n".join(("%a = spyre.kernel.to_device %x : " + f"{host} to {argument}", *lines))
    text = f"func.func @main(%x: {host}) -> {host} {{\n{body}\nfunc.return %r : {host}\n}}"
    for name, spelled in TYPES.items():
        text = text.replace(name, spelled)
    names = [op.name for op in canonical(text).walk()]
    return [name.removeprefix("spyre.kernel.") for name in names if name.startswith("spyre.kernel.")]


def back(buffer: str, kind: str = "!rows") -> str:
    return f"%r = spyre.kernel.from_device {buffer} : {kind} to {HOSTS[kind]}"


def run(function: str, source: str, target: str) -> str:
    return (
        f'spyre.kernel.compute "{function}" [m = 64, n = 128] ins({source}[m, n] : !rows) outs({target}[m, n] : !rows)'
    )


def relaid(source: str, target: str, kinds: str = "!rows !columns") -> str:
    one, other = kinds.split()
    return f"spyre.kernel.restickify [m = 64, n = 128] ins({source}[m, n] : {one}) outs({target}[m, n] : {other})"


def converted(source: str, target: str, kinds: str) -> str:
    one, other = kinds.split()
    return f"spyre.kernel.convert [m = 64] ins({source}[m] : {one}) outs({target}[m] : {other})"


def test_unused_buffers_go_with_their_ends() -> None:
    unused = (
        "%b = spyre.kernel.alloc at 128 : i64 : !rows",
        "spyre.kernel.free %b : !rows",
        "%c = spyre.kernel.constant 1.0 : f64 : !rows",
        "%d = spyre.kernel.to_device %x : tensor<64x128xf16> to !columns",
        "%e = spyre.kernel.from_device %a : !rows to tensor<64x128xf16>",
    )
    assert kept(*unused, back("%a")) == ["to_device", "from_device"]


def test_kernels_that_nobody_reads_go_one_after_the_other() -> None:
    allocs = ("%b = spyre.kernel.alloc : !rows", "%c = spyre.kernel.alloc : !rows")
    chain = (run("neg", "%a", "%b"), run("abs", "%b", "%c"))
    assert kept(*allocs, *chain, "spyre.kernel.free %c : !rows", back("%a")) == ["to_device", "from_device"]
    whole = ["to_device", "alloc", "alloc", "compute", "compute", "from_device"]
    assert kept(*allocs, *chain, back("%c")) == whole
    # It reads what it writes.
    assert kept(*allocs, *chain, run("abs", "%c", "%c"), back("%b"))[-3:] == ["compute", "compute", "from_device"]


def test_a_kernel_that_writes_what_the_host_sent_stays() -> None:
    assert kept(run("neg", "%a", "%a"), back("%a")) == ["to_device", "compute", "from_device"]


ALLOCS = ("%b = spyre.kernel.alloc : !columns", "%c = spyre.kernel.alloc : !rows")
RELAID = (relaid("%a", "%b"), relaid("%b", "%c", "!columns !rows"))


def test_a_restickify_there_and_back_goes() -> None:
    assert kept(*ALLOCS, *RELAID, back("%c")) == ["to_device", "from_device"]
    read = ("%d = spyre.kernel.alloc : !rows", run("neg", "%c", "%d"))
    assert kept(*ALLOCS, *RELAID, *read, back("%d")) == ["to_device", "alloc", "compute", "from_device"]


@pytest.mark.parametrize(
    "lines",
    [
        (*ALLOCS, *RELAID, run("neg", "%a", "%a")),  # the original changes
        (*ALLOCS, *RELAID, run("neg", "%c", "%c")),  # the copy changes
        (*ALLOCS, RELAID[0], relaid("%a", "%b"), RELAID[1]),  # what is between them is written twice
        (ALLOCS[0], "%c = spyre.kernel.alloc at 0 : i64 : !rows", *RELAID),  # the pool is settled
        ("%b = spyre.kernel.alloc at 0 : i64 : !columns", ALLOCS[1], *RELAID),
        (*ALLOCS, *RELAID, "spyre.kernel.free %a : !rows"),
        (
            "%p = spyre.kernel.alloc at 0 : i64 : !rows",
            run("neg", "%a", "%p"),
            *ALLOCS,
            relaid("%p", "%b"),
            RELAID[1],
        ),
    ],
)
def test_a_restickify_stays_if_a_buffer_has_another_life(lines: tuple[str, ...]) -> None:
    assert kept(*lines, back("%c")).count("restickify") == sum("restickify" in line for line in lines)


def test_a_computed_original_without_a_place_is_read_instead() -> None:
    computed = ("%p = spyre.kernel.alloc : !rows", run("neg", "%a", "%p"))
    left = kept(*computed, *ALLOCS, relaid("%p", "%b"), RELAID[1], back("%c"))
    assert left == ["to_device", "alloc", "compute", "from_device"]


def test_only_readers_of_the_copy_change() -> None:
    """The buffer between the two is read by another kernel, so the first one stays."""
    read = (
        "%d = spyre.kernel.alloc : !columns",
        'spyre.kernel.compute "neg" [m = 64, n = 128] ins(%b[m, n] : !columns) outs(%d[m, n] : !columns)',
        "%e = spyre.kernel.alloc : !rows",
        relaid("%d", "%e", "!columns !rows"),
        "%f = spyre.kernel.alloc : !rows",
        'spyre.kernel.compute "add" [m = 64, n = 128] ins(%e[m, n] : !rows, %c[m, n] : !rows) outs(%f[m, n] : !rows)',
    )
    left = kept(*ALLOCS, *RELAID, *read, back("%f"))
    assert left.count("restickify") == 2 and left.count("alloc") == 4


@pytest.mark.parametrize(("wide", "narrow", "goes"), [("!single", "!half", True), ("!half", "!single", False)])
def test_conversions_that_keep_every_number(wide: str, narrow: str, goes: bool) -> None:
    """There and back by a format that has all the numbers, or by one that has not."""
    lines = (
        f"%b = spyre.kernel.alloc : {wide}",
        f"%c = spyre.kernel.alloc : {narrow}",
        converted("%a", "%b", f"{narrow} {wide}"),
        converted("%b", "%c", f"{wide} {narrow}"),
        back("%c", narrow),
    )
    assert kept(*lines, argument=narrow).count("convert") == (0 if goes else 2)


def test_float32_that_was_only_sent_never_leaves_the_host() -> None:
    assert kept(back("%a", "!single"), argument="!single") == []
    assert kept(back("%a", "!half"), argument="!half") == ["to_device", "from_device"]
    written = converted("%h", "%a", "!half !single")
    sent = "%h = spyre.kernel.constant 1.0 : f64 : !half"
    left = kept(sent, written, back("%a", "!single"), argument="!single")
    assert left == ["to_device", "constant", "convert", "from_device"]


LOOP = (
    "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n%c4 = arith.constant 4 : index\n"
    "%o = spyre.kernel.alloc : !rows\n"
)


@pytest.mark.parametrize(("part", "count", "step", "left"), [("!rows", 64, 0, 0), ("!part", 16, 16, 2)])
def test_tiles_of_the_whole_tensor_go(part: str, count: int, step: int, left: int) -> None:
    body = (
        f"scf.for %i = %c0 to %c4 step %c1 {{\n%s = spyre.kernel.tile %a dim 0 at %i * {step} : !rows to {part}\n"
        f"%t = spyre.kernel.tile %o dim 0 at %i * {step} : !rows to {part}\n"
        f'spyre.kernel.compute "neg" [m = {count}, n = 128] ins(%s[m, n] : {part}) outs(%t[m, n] : {part})\n}}'
    )
    assert kept(LOOP, body, back("%o")).count("tile") == left

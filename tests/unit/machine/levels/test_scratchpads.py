"""Scratchpads at the kernel level: hand-written programs that lose, or keep, what they put there."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.errors import MachineFault
from tests.unit.machine.modules import close, main, numbers, run

HBM = "!spyre.tensor<[64, 128] x SEN169_FP16, order [0, 1], stick 1, hbm>"
LX = HBM.replace("hbm", "lx")
TURNED = "!spyre.tensor<[64, 128] x SEN169_FP16, order [1, 0], stick 0, lx>"
HOST = "tensor<64x128xf32>"


def op(function: str, sources: str, target: str, columns: str = "n = 128") -> str:
    """One element-wise op; operands are written name:type."""
    reads = ", ".join("{}[m, n] : {}".format(*s.split(":", 1)) for s in sources.split("; "))
    return 'spyre.kernel.compute "{}" [m = 64 over 2, {}] ins({}) outs({}[m, n] : {})\n'.format(
        function, columns, reads, *target.split(":", 1)
    )


def program(second_address: int, between: str = "") -> str:
    """exp(x) + (-x); the exponentials are at bytes 0 to 8192 of both cores."""
    body = f"""%0 = spyre.kernel.to_device %x : {HOST} to {HBM}
    %1 = spyre.kernel.alloc at 0 : i64 : {LX}
    {op("exp", f"%0:{HBM}", f"%1:{LX}")}
    %2 = spyre.kernel.alloc at {second_address} : i64 : {LX}
    {op("neg", f"%0:{HBM}", f"%2:{LX}")}
    {between}
    %3 = spyre.kernel.alloc : {HBM}
    {op("add", f"%1:{LX}; %2:{LX}", f"%3:{HBM}")}
    %out = spyre.kernel.from_device %3 : {HBM} to {HOST}"""
    return main(f"%x: {HOST}", body, HOST)


def test_buffers_side_by_side() -> None:
    x = numbers(64, 128)
    close(run(program(8192), x), np.exp(x) - x)


@pytest.mark.parametrize("address", [0, 4096, 8064])
def test_what_was_overwritten_cannot_be_read(address: int) -> None:
    with pytest.raises(MachineFault, match=r"input 0 is in bytes 0 to 8192 of the scratchpads, which neg has written"):
        run(program(address), numbers(64, 128))


def test_what_was_freed_cannot_be_read() -> None:
    with pytest.raises(MachineFault, match="input 0 was freed"):
        run(program(8192, between=f"spyre.kernel.free %1 : {LX}"), numbers(64, 128))


@pytest.mark.parametrize("first", ["exp", "gather"])
def test_a_gather_reads_and_overwrites_the_scratchpads(first: str) -> None:
    """What it writes there is there, and nothing else: a buffer in the same bytes is lost."""
    words = "spyre.kernel.gather axis 0 [m = 64 over 2, n = 128] ins(%di[m] : {}, %dt[0, n] : {}) outs(%g[m, n] : {})"
    ids, table = "!spyre.tensor<[64] x SENUINT32, order [0], stick 0, hbm>", HBM
    steps = [op("exp", f"%dt:{HBM}", f"%e:{LX}"), words.format(ids, table, LX)]
    body = f"""%di = spyre.kernel.to_device %i : tensor<64xi64> to {ids}
    %dt = spyre.kernel.to_device %t : {HOST} to {HBM}
    %e = spyre.kernel.alloc at 0 : i64 : {LX}
    %g = spyre.kernel.alloc at 4096 : i64 : {LX}
    {chr(10).join(steps if first == "exp" else steps[::-1])}
    %3 = spyre.kernel.alloc : {HBM}
    {op("neg", f"%{'e' if first == 'exp' else 'g'}:{LX}", f"%3:{HBM}")}
    %out = spyre.kernel.from_device %3 : {HBM} to {HOST}"""
    with pytest.raises(MachineFault, match="of the scratchpads, which"):
        run(main(f"%i: tensor<64xi64>, %t: {HOST}", body, HOST), np.arange(64)[::-1], numbers(64, 128))
    apart = body.replace("at 4096", "at 8192")
    x, wanted = numbers(64, 128), np.exp if first == "exp" else np.flipud
    close(run(main(f"%i: tensor<64xi64>, %t: {HOST}", apart, HOST), np.arange(64)[::-1], x), -wanted(x))


def test_an_undefined_buffer_cannot_be_read() -> None:
    body = f"""%1 = spyre.kernel.alloc at 0 : i64 : {LX}
    %2 = spyre.kernel.alloc : {HBM}
    {op("exp", f"%1:{LX}", f"%2:{HBM}")}
    %out = spyre.kernel.from_device %2 : {HBM} to {HOST}"""
    with pytest.raises(MachineFault, match="uninitialised-read: exp computes element"):
        run(main(f"%x: {HOST}", body, HOST), numbers(64, 128))


def test_a_result_may_take_the_place_of_its_operand() -> None:
    x = numbers(64, 128)
    body = f"""%0 = spyre.kernel.to_device %x : {HOST} to {HBM}
    %1 = spyre.kernel.alloc at 128 : i64 : {LX}
    {op("exp", f"%0:{HBM}", f"%1:{LX}")}
    %2 = spyre.kernel.alloc at 128 : i64 : {LX}
    {op("neg", f"%1:{LX}", f"%2:{LX}")}
    %3 = spyre.kernel.alloc : {HBM}
    {op("abs", f"%2:{LX}", f"%3:{HBM}")}
    %out = spyre.kernel.from_device %3 : {HBM} to {HOST}"""
    close(run(main(f"%x: {HOST}", body, HOST), x), np.exp(x))


@pytest.mark.parametrize("address", [0, 128])
def test_a_result_in_another_order_may_not(address: int) -> None:
    body = f"""%0 = spyre.kernel.to_device %x : {HOST} to {HBM}
    %1 = spyre.kernel.alloc at 0 : i64 : {LX}
    spyre.kernel.compute "exp" [m = 64, n = 128 over 2] ins(%0[m, n] : {HBM}) outs(%1[m, n] : {LX})
    %2 = spyre.kernel.alloc at {address} : i64 : {TURNED}
    spyre.kernel.restickify [m = 64, n = 128 over 2] ins(%1[m, n] : {LX}) outs(%2[m, n] : {TURNED})
    %out = spyre.kernel.from_device %0 : {HBM} to {HOST}"""
    with pytest.raises(MachineFault, match=r"reads bytes 0 to 8192 of the scratchpads and writes into them"):
        run(main(f"%x: {HOST}", body, HOST), numbers(64, 128))


@pytest.mark.parametrize("number", [0, 1])
def test_a_result_may_not_be_a_row_beyond_an_operand(number: int) -> None:
    """The rows that a core writes first are those that it reads next."""
    reads = f"%0:{HBM}; %1:{LX}" if number else f"%1:{LX}; %0:{HBM}"
    body = f"""%0 = spyre.kernel.to_device %x : {HOST} to {HBM}
    %1 = spyre.kernel.alloc at 0 : i64 : {LX}
    {op("exp", f"%0:{HBM}", f"%1:{LX}")}
    %2 = spyre.kernel.alloc at 128 : i64 : {LX}
    {op("add", reads, f"%2:{LX}")}
    %out = spyre.kernel.from_device %0 : {HBM} to {HOST}"""
    with pytest.raises(MachineFault, match=r"read-write-race: add reads bytes 0 to 8192 of the scratchpads"):
        run(main(f"%x: {HOST}", body, HOST), numbers(64, 128))

"""What nobody wrote, poison and freed buffers at the kernel level, in hand-written programs."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.errors import MachineFault
from tests.unit.machine.modules import Array, close, device, numbers, program, run, send


def test_reading_a_buffer_nobody_wrote() -> None:
    with pytest.raises(MachineFault, match=r"unwritten-output: the source: element \[0, 0\]") as caught:
        run(program({}, "", device((3, 70), 1), (3, 70)))
    assert caught.value.where is not None
    assert caught.value.where.startswith("spyre.kernel.from_device")


def test_part_nobody_wrote() -> None:
    t, u = device((6, 64), 1), device((6, 128), 1)
    body = (
        send("a", (6, 64), t)
        + f"""
        spyre.kernel.compute "identity" [m = 6, n = 64] ins(%da[m, n] : {t}) outs(%o[m, n] : {u})"""
    )
    with pytest.raises(MachineFault, match=r"element \[0, 64\] has no value \(384"):
        run(program({"a": (6, 64)}, body, u, (6, 128)), numbers(6, 64))


def test_reduction_over_elements_nobody_wrote() -> None:
    t, o = device((2, 70), 1), device((2,), None)
    body = f"""%t = spyre.kernel.alloc : {t}
        spyre.kernel.compute "sum" [m = 2, n = 70] ins(%t[m, n] : {t}) outs(%o[m] : {o})"""
    with pytest.raises(MachineFault, match=r"uninitialised-read: sum computes element \[m = 0\]"):
        run(program({}, body, o, (2,)))


def test_restickify_moves_state_with_the_values() -> None:
    s, t = device((60, 70), 1, extents=(64, 128)), device((60, 70), 0, extents=(64, 128))
    body = (
        send("a", (60, 70), s)
        + f"""
        spyre.kernel.restickify [m = 60, n = 70] ins(%da[m, n] : {s}) outs(%o[m, n] : {t})"""
    )
    a = numbers(60, 70)
    close(run(program({"a": (60, 70)}, body, t, (60, 70)), a), a)


def selection(chosen: str) -> Array:
    t = device((2, 64), 1)
    body = (
        send("c", (2, 64), t, element="i1")
        + send("a", (2, 64), t)
        + f"""%none = spyre.kernel.alloc : {t}
        spyre.kernel.compute "where3" [m = 2, n = 64] ins(%dc[m, n] : {t}, %{chosen}[m, n] : {t}, %none[m, n] : {t})
        outs(%o[m, n] : {t})"""
    )
    text = program({"c": (2, 64), "a": (2, 64)}, body, t, (2, 64), {"c": "i1"})
    return run(text, np.ones((2, 64), bool), np.full((2, 64), 3.0))


def test_selection_has_the_state_of_what_it_selects() -> None:
    close(selection("da"), np.full((2, 64), 3.0))


def test_selection_of_poison() -> None:
    with pytest.raises(MachineFault, match=r"where3 computes element \[m = 0, n = 0\]"):
        selection("none")


def test_poison_behind_lane_0_travels_and_faults_on_the_way_back() -> None:
    t = device((2, 64), 1)
    short = device((2, 1), 1)
    body = (
        send("a", (2, 1), short)
        + f"""
        spyre.kernel.compute "exp" [m = 2, n = 1] ins(%da[m, n] : {short}) outs(%t[m, n] : {t})
        spyre.kernel.compute "neg" [m = 2, n = 64] ins(%t[m, n] : {t}) outs(%o[m, n] : {t})"""
    )
    text = program({"a": (2, 1)}, f"%t = spyre.kernel.alloc : {t}\n{body}", t, (2, 64))
    with pytest.raises(MachineFault, match=r"the source: element \[0, 1\] has no value \(126"):
        run(text, numbers(2, 1))


def test_arithmetic_on_a_stick_nobody_wrote() -> None:
    t = device((2, 130), 1)
    body = f"""%t = spyre.kernel.alloc : {t}
        spyre.kernel.compute "neg" [m = 2, n = 130] ins(%t[m, n] : {t}) outs(%o[m, n] : {t})"""
    with pytest.raises(MachineFault, match=r"neg computes element \[m = 0, n = 0\]") as caught:
        run(program({}, body, t, (2, 130)))
    assert caught.value.kind == "uninitialised-read"


def test_constants_have_zero_padding() -> None:
    one = device((100, 1), 1, extents=(128, 64))
    o = device((1, 1), 1)
    iota = device((1, 100), 1)
    body = f"""%i = spyre.kernel.constant #spyre.iota<1.0, 2.0> : {iota}
        %b = spyre.kernel.constant 1.0 : f64 : {one}
        spyre.kernel.compute "batchmatmul" [m = 1, n = 1, k = 100] ins(%i[m, k] : {iota}, %b[k, n] : {one})
        outs(%o[m, n] : {o})"""
    close(run(program({}, body, o, (1, 1))), np.array([[100.0 * 100.0]]))  # the first hundred odd numbers


def test_use_after_free() -> None:
    t = device((2, 64), 1)
    body = (
        send("a", (2, 64), t)
        + f"""spyre.kernel.free %da : {t}
        spyre.kernel.compute "neg" [m = 2, n = 64] ins(%da[m, n] : {t}) outs(%o[m, n] : {t})"""
    )
    with pytest.raises(MachineFault, match="use-after-free: input 0"):
        run(program({"a": (2, 64)}, body, t, (2, 64)), numbers(2, 64))


def test_double_free() -> None:
    t = device((2, 64), 1)
    body = send("a", (2, 64), t) + f"spyre.kernel.free %da : {t}\nspyre.kernel.free %da : {t}"
    with pytest.raises(MachineFault, match="double-free"):
        run(program({"a": (2, 64)}, body, t, (2, 64)), numbers(2, 64))

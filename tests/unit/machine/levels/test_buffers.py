"""What nobody wrote, poison and freed buffers at the kernel level, in hand-written programs."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.dialects.spyre.attributes import DeviceTensorType
from spyre_mlir.dialects.spyre.kernel import ToDeviceOp
from spyre_mlir.errors import InputError, MachineFault
from spyre_mlir.machine.levels.buffers import DeviceBuffer, counted_from_end, sent_integers, source_name
from tests.unit.machine.modules import Array, close, device, numbers, parse, program, run, send


def test_reading_a_buffer_nobody_wrote() -> None:
    with pytest.raises(MachineFault, match=r"unwritten-output: the source: element \[0, 0\]") as caught:
        run(program({}, "", device((3, 70), 1), (3, 70)))
    assert caught.value.where is not None
    assert caught.value.where.startswith("spyre.kernel.from_device")


def test_a_freed_buffer_is_neither_read_back_nor_freed_again() -> None:
    t = device((6, 64), 1)
    copied = send("a", (6, 64), t) + (
        f'spyre.kernel.compute "identity" [m = 6, n = 64] ins(%da[m, n] : {t}) outs(%o[m, n] : {t})\n'
    )
    for frees, message in (
        (1, "use-after-free: the source was freed"),
        (2, "double-free: the buffer was freed before"),
    ):
        with pytest.raises(MachineFault, match=message):
            run(program({"a": (6, 64)}, copied + f"spyre.kernel.free %o : {t}\n" * frees, t, (6, 64)), numbers(6, 64))


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


def transfer(form: str = "SEN169_FP16", attributes: str = "") -> ToDeviceOp:
    """A transfer of (1, 64) integers that a function is given; the argument has a name."""
    t = device((1, 64), 1, form=form)
    module = parse(f"""func.func @main(%a: tensor<1x64xi64> {{aten.name = "ids"}}) -> tensor<1x64xi64> {{
      %d = spyre.kernel.to_device %a {attributes} : tensor<1x64xi64> to {t}
      %h = spyre.kernel.from_device %d : {t} to tensor<1x64xi64>
      func.return %h : tensor<1x64xi64>
    }}""")
    return next(op for op in module.walk() if isinstance(op, ToDeviceOp))


def sent(op: ToDeviceOp, *values: int, exact: bool = True) -> list[int]:
    assert isinstance(op.result.type, DeviceTensorType)
    return sent_integers(op, np.asarray([values]), op.result.type.data, "ids", exact=exact)[0].tolist()


@pytest.mark.parametrize(
    ("form", "fits", "beyond", "exact", "known"),
    [
        # DL16 has nine stored bits of a fraction: every number up to 1,024, and beyond that only even ones.
        ("SEN169_FP16", [1024, -1024, 1026, 0], 1025, False, "SEN169_FP16 holds every whole number up to 1,024"),
        ("IEEE_FP32", [2**24 - 1, 1 - 2**24], 2**24 + 1, False, r"IEEE_FP32 holds -16,777,21\d to 16,777,21\d"),
        ("SENUINT32", [0, 2**31], -1, True, "SENUINT32 holds 0 to"),
        ("IEEE_INT32", [2**31 - 1, -(2**31)], 2**31, True, "IEEE_INT32 holds -2,147,483,648 to 2,147,483,647"),
        (
            "SEN169_FP16",
            [1025, 2**53],
            2**53 + 1,
            True,
            "exact numerics hold SEN169_FP16 integers up to 9,007,199,254,740,992",
        ),
    ],
)
def test_integers_that_a_format_does_not_hold_are_refused(
    form: str, fits: list[int], beyond: int, exact: bool, known: str
) -> None:
    op = transfer(form)
    assert sent(op, *fits, exact=exact) == fits
    with pytest.raises(InputError, match=rf"ids holds {beyond:,} at \[0, 1\], and {known}"):
        sent(op, 0, beyond, exact=exact)


def test_numbers_that_only_bound_saturate() -> None:
    assert sent(transfer(attributes="saturate"), 1024, 1025, 5000, -1024, -1025) == [1024, 1026, 1026, -1024, -1026]


def test_exact_numerics_convert_integers_before_they_are_sent() -> None:
    """The device has none that these conversions change."""
    floats, both = transfer("IEEE_FP32", "elements [f32]"), transfer("IEEE_FP32", "elements [i32, f32]")
    assert sent(floats, 2**24 + 1, 2**60 + 2**36 + 1, -3) == [2**24, 2**60 + 2**37, -3]
    assert sent(both, 2**32 + 2**24 + 1, 2**31) == [2**24, -(2**31)]
    assert sent(transfer("SENUINT32", "elements [i32]"), 2**32 + 5) == [5]
    with pytest.raises(InputError, match="holds 16,777,217"):
        sent(floats, 2**24 + 1, exact=False)


def test_nothing_fits_anywhere() -> None:
    assert sent(transfer("SENUINT32")) == []


def test_negative_indices_count_from_the_end_of_their_table() -> None:
    op = transfer("SENUINT32", "from_end 10")
    assert counted_from_end(op, np.asarray([-1, -10, -11, 0, 9])).tolist() == [9, 0, -11, 0, 9]
    assert counted_from_end(transfer(), np.asarray([-1])).tolist() == [-1]


def test_a_transfer_is_named_by_the_argument_it_sends() -> None:
    assert source_name(transfer()) == "argument 0, 'ids',"
    t = device((6, 64), 1)
    module = parse(program({"a": (6, 64)}, send("a", (6, 64), t) + f"spyre.kernel.free %da : {t}", t, (6, 64)))
    assert source_name(next(op for op in module.walk() if isinstance(op, ToDeviceOp))) == "argument 0"


def test_a_tile_is_dead_with_the_buffer_it_is_of() -> None:
    op = transfer()
    assert isinstance(op.result.type, DeviceTensorType)
    whole = DeviceBuffer.poisoned(op.result.type.data)
    tile = DeviceBuffer(whole.tensor, whole.values, whole.initialised, whole=whole)
    assert not tile.dead
    assert np.isnan(whole.values).all() and not whole.initialised.any() and whole.values.shape == (1, 64)
    whole.freed = True
    assert tile.dead

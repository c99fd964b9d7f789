"""Host programs: transfers, launches, weights that the files hold, and what a run refuses or counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import UnknownLoc

from spyre_mlir.dialects.host_call import HostCall
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor
from spyre_mlir.errors import FaultKind, InputError, MachineFault, UnsupportedError
from spyre_mlir.hw.number_formats import dl16
from spyre_mlir.hw.spec import SEGMENT_BYTES
from spyre_mlir.machine.bundle.host_program import DeviceProgram, run_program
from spyre_mlir.machine.bundle.transfers import ResidentTensors
from spyre_mlir.machine.faults import FaultLog
from spyre_mlir.machine.memory.exact import Memory
from spyre_mlir.machine.options import MachineOptions
from tests.unit.machine.bundle.host_programs import ROWS, bundle, host, negation, numbers, program
from tests.unit.machine.modules import device, parse

Array = NDArray[Any]
DEVICE = MachineOptions(numerics="device")
SEGMENT = SEGMENT_BYTES


class Watch:
    """Keeps what a memory looked like after every launch."""

    def __init__(self) -> None:
        self.regions: list[dict[str, tuple[int, int]]] = []
        self.kernels: list[Mapping[int, int]] = []
        self.elements: list[Mapping[int, str]] = []

    def __call__(self, op: object, view: Descriptor, memory: Memory, symbols: Mapping[int, int]) -> None:
        self.regions.append({region.name: (region.base, region.size) for region in memory.regions})
        self.kernels.append(memory.integer_kernels)
        self.elements.append(memory.elements)
        assert memory.arguments >= {"argument 0", "argument 1"}


def ran(of: DeviceProgram, *inputs: Array | None, **settings: Any) -> Array:
    (result,) = run_program(of, inputs or [numbers()], **settings)
    return result


def refused(of: DeviceProgram, says: str, *inputs: Array | None, **settings: Any) -> InputError:
    with pytest.raises(InputError, match=says) as caught:
        ran(of, *inputs, **settings)
    return caught.value


def test_what_is_sent_is_negated_and_read_back() -> None:
    found = ran(program())
    assert found.dtype == np.float64
    assert np.array_equal(found, -numbers())
    narrow = ran(program(), options=DEVICE)
    assert narrow.dtype == np.float32
    assert np.array_equal(narrow, -numbers())


def test_device_numerics_round_what_is_sent() -> None:
    x = np.full((4, 64), 1 + 2.0**-12)
    assert np.array_equal(ran(program(), x), -x.astype(np.float32))
    assert np.array_equal(ran(program(), x, options=DEVICE), -np.ones((4, 64)))


def test_tensors_without_a_place_lie_one_after_the_other() -> None:
    watch = Watch()
    ran(program(watch=watch))
    assert watch.regions == [{"argument 0": (0, 512), "argument 1": (512, 512)}]
    assert (watch.kernels, watch.elements) == ([{}], [{}])


def test_tensors_lie_in_the_segments_that_the_program_says() -> None:
    watch = Watch()
    text = host("segment 6", "segment 2")
    assert np.array_equal(ran(program(text, watch=watch)), -numbers())
    assert watch.regions == [{"argument 0": (6 * SEGMENT, 512), "argument 1": (2 * SEGMENT, 512)}]


@pytest.mark.parametrize("segment", [7, -1])
def test_a_segment_that_is_none_is_refused(segment: int) -> None:
    met = refused(program(host(f"segment {segment}")), f"segment {segment} is none of the 7 for tensors")
    assert met.where is not None
    assert met.where.startswith("spyre.kernel.to_device")


FIXED = 'func.func @sdsc_bundle() {\nsdscbundle.sdsc_execute () {sdsc_filename="sdsc_0.json"}\nfunc.return\n}'
PLACED = host("segment 1", "segment 2")


def starts(segment: int) -> str:
    return f"{segment * SEGMENT} {segment * SEGMENT + 256}"


def test_files_that_hold_addresses_take_no_arguments() -> None:
    files = {"sdsc_0.json": negation(starts(1), starts(2), symbolic=False)}
    assert np.array_equal(ran(program(PLACED, files, FIXED)), -numbers())
    for text in (host(), host("segment 1")):
        met = refused(program(text, files, FIXED), "does not say in which segments they lie")
        assert met.hint == "write the bundle again"


def test_the_pool_lies_in_the_first_segment_while_a_launch_runs() -> None:
    files = {
        "sdsc_0.json": negation(starts(1), starts(0), symbolic=False),
        "sdsc_1.json": negation(starts(0), starts(2), symbolic=False, index=1),
    }
    second = 'sdscbundle.sdsc_execute () {sdsc_filename="sdsc_1.json"}\nfunc.return'
    text, watch = FIXED.replace("func.return", second), Watch()
    pooled = PLACED.replace("(%d, %o)", "(%d, %o) pool_bytes 1024")
    again = pooled.replace(
        "      %r =", f"spyre.kernel.launch @sdsc_bundle (%d, %o) pool_bytes 512 : {ROWS}, {ROWS}\n%r ="
    )
    assert np.array_equal(ran(program(again, files, text, watch=watch)), numbers())
    assert [seen["pool"] for seen in watch.regions] == [(0, 1024)] * 2 + [(0, 512)] * 2


def test_a_launch_says_which_kernels_compute_integers_and_in_which_types() -> None:
    watch = Watch()
    said = "integer_kernels [3, 64, 5, 10] elements {i64 = array<i64: 3, 5>, f32 = array<i64: 7>}"
    ran(program(host(launch=said), watch=watch))
    assert watch.kernels == [{3: 64, 5: 10}]
    assert watch.elements == [{3: "i64", 5: "i64", 7: "f32"}]


def test_padding_holds_what_the_transfer_says() -> None:
    """Three columns of a stick: only zeros let lanes be summed, and nothing else is written."""
    narrow = device((4, 3), 1)

    def text(mark: str) -> str:
        return host(mark, type_=narrow).replace("4x64x", "4x3x")

    x = numbers()[:, :3]
    seen: list[bool] = []

    def watch(op: object, view: Descriptor, memory: Memory, symbols: Mapping[int, int]) -> None:
        seen.append(bool(memory.load(np.arange(512 // 2) * 2, "SEN169_FP16")[1].all()))

    for mark in ("", "zero_padding"):
        assert np.array_equal(ran(program(text(mark), watch=watch), x), -x)
    assert seen == [False, True]


def test_constants_are_sent_with_zeros_behind_them() -> None:
    text = host().replace("spyre.kernel.to_device %x  : tensor<4x64xf32> to", "spyre.kernel.constant 0.75 : f64 :")
    assert "constant" in text
    assert np.array_equal(ran(program(text)), np.full((4, 64), -0.75))


def test_integers_are_sent_whole_or_refused() -> None:
    text = host(element="i64")
    assert np.array_equal(ran(program(text), numbers().astype(np.int64)), -numbers())
    big = np.full((4, 64), 2**20 + 1)
    met = refused(program(text), "argument 0, 'left', holds 1,048,577", big, options=DEVICE)
    assert met.where is not None
    assert np.array_equal(ran(program(text), big), -big)


# --- weights that the files hold


class Codes:
    """Gives codes, and counts how often."""

    def __init__(self, codes: Array) -> None:
        self.codes, self.calls = codes, 0

    def __call__(self) -> Array:
        self.calls += 1
        return self.codes


def held(codes: Array | None = None, text: str | None = None) -> tuple[DeviceProgram, Codes]:
    given = Codes(dl16.encode(numbers()) if codes is None else codes)
    return program(text, weights={0: given}), given


def test_a_weight_of_the_files_is_sent_as_the_device_has_it() -> None:
    of, codes = held()
    assert np.array_equal(ran(of, None, options=DEVICE), -numbers())
    assert codes.calls == 1
    assert np.array_equal(ran(of, options=DEVICE), -numbers())
    assert codes.calls == 1  # a value that is passed comes first


def test_a_weight_of_the_files_is_read_once_for_several_runs() -> None:
    of, codes = held()
    resident = ResidentTensors()
    for _ in range(2):
        assert np.array_equal(ran(of, None, options=DEVICE, resident=resident), -numbers())
    assert codes.calls == 1
    wide = replace(DEVICE, arithmetic="float64")
    assert np.array_equal(ran(of, None, options=wide, resident=resident), -numbers())
    assert codes.calls == 2


def test_padding_of_a_weight_has_a_value_where_the_transfer_says_so() -> None:
    narrow = device((4, 3), 1)
    codes = np.zeros((4, 64), np.uint16)
    codes[:, :3] = dl16.encode(numbers()[:, :3])
    seen: list[int] = []

    def watch(op: object, view: Descriptor, memory: Memory, symbols: Mapping[int, int]) -> None:
        seen.append(int(memory.load(np.arange(256) * 2, "SEN169_FP16")[1].sum()))

    for mark in ("", "zero_padding"):
        of, _ = held(codes, host(mark, type_=narrow).replace("4x64x", "4x3x"))
        found = ran(replace(of, watch=watch), None, options=DEVICE)
        assert np.array_equal(found, -numbers()[:, :3])
    assert seen == [12, 256]


def test_a_weight_has_the_shape_and_the_codes_of_its_tensor() -> None:
    for wrong, says in ((np.zeros((4, 63), np.uint16), "uint16"), (np.zeros((4, 64)), "float64")):
        of, _ = held(wrong)
        met = refused(
            of, rf"the weight is {says}\[4, 6[34]\], the program sends SEN169_FP16\[4, 64\]", None, options=DEVICE
        )
        assert met.hint == "write the bundle again"


def test_a_value_that_nobody_has() -> None:
    met = refused(program(), "argument 0, 'left' has no value", None, options=DEVICE)
    assert met.hint == "pass one"


@pytest.mark.parametrize(
    ("options", "asks"),
    [
        (MachineOptions(), "this run asks for exact numbers"),
        (MachineOptions(numerics="none"), "this run asks for numbers that nothing rounded"),
        (MachineOptions(numerics="device", overflow="nan"), "this run asks for another rule of overflow"),
    ],
)
def test_a_weight_as_the_device_has_it_is_rounded(options: MachineOptions, asks: str) -> None:
    of, _ = held()
    met = refused(of, f"'left' is there as the device has it, which is rounded; {asks}", None, options=options)
    assert met.hint == "pass the weight as the model has it, or run in device numerics"


def test_the_weight_of_a_transfer_is_the_one_of_its_first_buffer() -> None:
    codes = Codes(np.zeros((4, 64), np.uint16))
    of = program(weights={0: codes, 1: Codes(np.ones((4, 64), np.uint16))})
    to_device, alloc, *others = (op for op in of.host.walk() if op.name.startswith("spyre.kernel"))
    assert of.weight(to_device) is codes
    assert of.weight(alloc) is None
    assert of.weight(others[0]) is None
    twice = (
        host()
        .replace("(%d, %o)", "(%o, %d)")
        .replace("%r =", f"spyre.kernel.launch @sdsc_bundle (%o, %d) : {ROWS}, {ROWS}\n%r =")
    )
    of = program(twice, weights={1: codes, 3: Codes(np.zeros(0))})
    assert of.weight(next(op for op in of.host.walk() if op.name == "spyre.kernel.to_device")) is codes


def test_an_array_that_cannot_change_is_sent_once() -> None:
    resident, x, fixed = ResidentTensors(), np.array(numbers()), np.array(numbers())
    fixed.setflags(write=False)
    assert np.array_equal(ran(program(), fixed, resident=resident), -numbers())
    fixed.setflags(write=True)
    fixed[0, 0] = 5.0
    fixed.setflags(write=False)
    assert ran(program(), fixed, resident=resident)[0, 0] == 128.0  # nobody looked at it again
    assert ran(program(), fixed)[0, 0] == -5.0
    ran(program(), x, resident=resident)
    x[0, 0] = 5.0
    assert ran(program(), x, resident=resident)[0, 0] == -5.0


def test_memory_that_a_run_gives_back_serves_the_next() -> None:
    resident = ResidentTensors()
    ran(program(), resident=resident)
    assert sum(len(kept) for kept in resident.spare.values()) == 2
    assert np.array_equal(ran(program(), resident=resident), -numbers())


# --- overflows of what is sent


def sent(*values: float, options: MachineOptions = DEVICE, form: str = ROWS) -> dict[str, Any]:
    x = np.ones((4, 64), np.float32)
    x.reshape(-1)[: len(values)] = values
    log = FaultLog()
    run_program(program(host(type_=form) if form is not ROWS else None), [x], options, None, log)
    return {name: (met.tensor, met.count, met.largest) for name, met in log.overflows.items() if name.startswith("to")}


def test_numbers_beyond_the_largest_code_are_counted_by_their_tensor() -> None:
    name = "argument 0, 'left'"
    assert sent(1e10, -3e10, 2.0) == {f"to_device {name}": (name, 2, float(np.float32(3e10)))}
    assert sent(-1e10, -3e10) == {f"to_device {name}": (name, 2, float(np.float32(3e10)))}
    assert sent(1e10, 1e10) == {f"to_device {name}": (name, 2, float(np.float32(1e10)))}
    assert sent(8e9) == {}
    assert sent(float(dl16.BEYOND_LARGEST)) != {}
    assert sent(1e10, options=MachineOptions()) == {}


def test_what_fills_a_mask_is_no_overflow() -> None:
    largest = float(np.finfo(np.float32).min)
    assert sent(largest, largest) == {}
    assert sent(-np.inf, np.inf, np.nan) == {}
    assert sent(-np.inf, 1e10) != {}


# --- faults


def test_a_result_that_was_never_written_is_named() -> None:
    """The bundle writes the first two rows of four."""
    half = negation("-1 -2", "-3 -4")
    shrunk = replace(half, dims=(replace(half.dims[0], extent=2), half.dims[1]))
    small = replace(shrunk, operands=tuple(replace(o, extents=(2, 64)) for o in half.operands))
    text = bundle().replace("constant 256", "constant 128")
    log, back = FaultLog("collect"), ' loc("model.py":9:1)'
    found = ran(program(host(back=back), {"sdsc_0.json": small}, text), log=log)
    assert np.array_equal(found[:2], -numbers()[:2])
    (met,) = log.faults
    assert met.kind == FaultKind.UNWRITTEN_OUTPUT
    assert "128 elements were never written, the first at [2, 0]" in str(met)
    assert (met.place.op, met.place.tensor, met.place.low) == ("from_device", "result 0", 512 + 256)
    assert (met.place.line, met.place.level) == ("model.py:9", "spyre.kernel")
    assert met.where is not None
    assert met.where.startswith("the host program: ")
    unknown = program(host(), {"sdsc_0.json": small}, text)
    for op in unknown.host.walk():
        op.location = UnknownLoc()
    with pytest.raises(MachineFault, match="never written") as caught:
        ran(unknown)
    assert caught.value.place.line is None


def test_a_fault_says_where_and_not_the_whole_program() -> None:
    gone = negation("-1 -2", "-3 -9")
    with pytest.raises(MachineFault, match="symbol -9 has no address") as caught:
        ran(program(files={"sdsc_0.json": gone}))
    assert getattr(caught.value, "__notes__", []) == []


def test_arguments_are_as_many_as_the_program_takes() -> None:
    with pytest.raises(InputError, match="2 arrays for 1 arguments"):
        run_program(program(), [numbers(), numbers()])
    with pytest.raises(InputError, match=r"takes shape \(4, 64\), got \(4, 63\)"):
        ran(program(), numbers()[:, :63])


# --- host steps


def test_a_host_step_goes_to_the_executor() -> None:
    tensor = "tensor<4x64xf32>"
    step = (
        f'%y = spyre.kernel.host "aten.exp" because "no" (%x) {{self = #aten.operands<1>}} : ({tensor}) -> {tensor}\n'
    )
    text = host().replace("      %d = spyre.kernel.to_device %x", f"{step}%d = spyre.kernel.to_device %y")
    kinds: list[tuple[np.dtype[Any], bool]] = []

    def double(call: HostCall, operands: Sequence[Array], *, wide: bool) -> list[Array]:
        kinds.append((operands[0].dtype, wide))
        return [2 * operands[0]]

    of = program(text, executor=double)
    assert np.array_equal(ran(of), -2 * numbers())
    assert np.array_equal(ran(of, numbers().astype(np.float32), options=DEVICE), -2 * numbers())
    assert kinds == [(np.float64, False), (np.float32, False)]
    with pytest.raises(UnsupportedError, match="no host to run exp"):
        ran(program(text))


def test_a_program_has_a_main_function() -> None:
    other = parse(host().replace("@main", "@other"))
    with pytest.raises(InputError, match="no function 'main'"):
        run_program(replace(program(), host=other), [numbers()])

"""Bundles in time: order, loops, engines, scratchpads and compulsory bytes, all counted by hand."""

from __future__ import annotations

import pytest

from spyre_mlir.backend.directory import split_module
from spyre_mlir.dialects.superdsc.codec.describe import describe, describe_json
from spyre_mlir.errors import InputError
from spyre_mlir.hw.cost import Bottleneck
from spyre_mlir.machine.bundle.schedule import BundleLoop, Launch, Schedule, launches, read_schedule, unrolled
from spyre_mlir.machine.bundle.timeline import Engine, Timeline, make_timeline
from tests.unit.machine.bundle.test_run import parsed
from tests.unit.machine.programs import load
from tests.unit.transforms.test_place_lx import ALL, softmax, through

ADD, SUM = "a32_add_128x256_32core", "c32_sum_lastdim_128x256"
ADD_BYTES = 3 * 128 * 256 * 2
FILES = {"sdsc_0.json": ADD, "sdsc_1.json": SUM}
LOOP = """\
module {
  func.func @sdsc_bundle() {
    sdscbundle.sdsc_execute () {sdsc_filename="sdsc_1.json"}
    %0 = arith.constant 2 : index
    %1 = arith.constant 12 : index
    %2 = arith.constant 3 : index
    scf.for %i = %0 to %1 step %2 {
      sdscbundle.sdsc_execute () {sdsc_filename="sdsc_0.json"}
      sdscbundle.sdsc_execute () {sdsc_filename="sdsc_1.json"}
    }
    func.return
  }
}
"""


def schedule(text: str) -> Schedule:
    return read_schedule(parsed(text), lambda name: describe_json(load(FILES[name])))


def names(items: object) -> list[str]:
    return [launch.file for launch in items]  # type: ignore[attr-defined]


def test_loops_repeat_their_body() -> None:
    program = schedule(LOOP)
    assert isinstance(program.items[0], Launch) and isinstance(program.items[1], BundleLoop)
    assert program.items[1].trips == 4  # 2, 5, 8, 11
    assert names(launches(program.items)) == ["sdsc_1.json", "sdsc_0.json", "sdsc_1.json"]
    assert names(unrolled(program.items)) == ["sdsc_1.json", *["sdsc_0.json", "sdsc_1.json"] * 4]


def test_kernels_follow_each_other() -> None:
    timeline = make_timeline(schedule(LOOP))
    assert [k.work.trips for k in timeline.kernels] == [1, 4, 4]
    assert len(timeline.runs) == 9
    for (_, start, duration), (_, after, _) in zip(timeline.runs, timeline.runs[1:], strict=False):
        assert after == pytest.approx(start + duration)
    assert timeline.total_us == pytest.approx(sum(duration for _, _, duration in timeline.runs))
    add = ADD_BYTES / 150 / 1000 + 0.00574 * 128 * 256 * 2 / 1000
    assert timeline.kernels[1].cost.total == pytest.approx(4 * (add + 0.69))
    assert [k.cost.fixed for k in timeline.kernels] == pytest.approx([0, 4 * 0.69, 0])
    assert timeline.moved_bytes == 4 * ADD_BYTES + 5 * (128 * 256 * 2 + 128 * 128)


def test_loops_in_loops_begin_once() -> None:
    inner = LOOP.replace(
        'sdscbundle.sdsc_execute () {sdsc_filename="sdsc_0.json"}',
        'scf.for %j = %0 to %1 step %2 {\nsdscbundle.sdsc_execute () {sdsc_filename="sdsc_0.json"}\n}',
    )
    program = schedule(inner)
    assert [launch.trips for launch in launches(program.items)] == [1, 16, 4]
    # The first kernel of the inner loop begins its 16 iterations and the 4 of the outer one.
    assert [launch.iterations for launch in launches(program.items)] == [0, 20, 0]
    assert len(list(unrolled(program.items))) == 1 + 4 * (4 + 1)


def test_one_file_twice_takes_twice_as_long() -> None:
    run = 'sdscbundle.sdsc_execute () {sdsc_filename="sdsc_0.json"}\n'
    once, twice = (
        make_timeline(schedule(f"module {{\nfunc.func @sdsc_bundle() {{\n{run * times}func.return\n}}\n}}"))
        for times in (1, 2)
    )
    assert len(twice.kernels) == len(twice.runs) == 2
    assert twice.total_us == pytest.approx(2 * once.total_us)
    # The second reads the same tensors and writes the same result.
    assert twice.compulsory_bytes == once.compulsory_bytes == ADD_BYTES


def test_a_bundle_without_its_function() -> None:
    with pytest.raises(InputError, match="sdsc_bundle"):
        read_schedule(parsed("module {\n}"), lambda name: describe_json(load(name)))


def test_a_loop_of_unknown_length_counts_once() -> None:
    text = """\
module {
  func.func @sdsc_bundle(%n: !sdscbundle.input_arg<index>) {
    %0 = arith.constant 0 : index
    %1 = arith.constant 1 : index
    %2 = sdscbundle.input_arg_extract value from %n : !sdscbundle.input_arg<index> -> index
    scf.for %i = %0 to %2 step %1 {
      sdscbundle.sdsc_execute () {sdsc_filename="sdsc_0.json"}
    }
    func.return
  }
}
"""
    (loop,) = schedule(text).items
    assert isinstance(loop, BundleLoop) and loop.trips is None
    assert [launch.trips for launch in launches((loop,))] == [1]


def softmax_timeline(cores: int = 32) -> Timeline:
    module = through(softmax(512, 1024), *ALL, options={"divide-work": {"cores": cores}})
    _, bundle, files = split_module(module)
    return make_timeline(read_schedule(bundle, lambda name: describe(files[name])))


def test_a_softmax_in_the_scratchpads() -> None:
    timeline = softmax_timeline()
    functions = [k.launch.descriptor.op_func for k in timeline.kernels]
    assert functions == ["identity", "max", "sub", "exp", "sum", "realdiv"]
    one = 512 * 1024 * 2
    # Read once, written once; what must move is that and nothing else.
    assert timeline.moved_bytes == timeline.compulsory_bytes == 2 * one and timeline.traffic_ratio == 1
    assert timeline.roofline_us == pytest.approx(2 * one / 150 / 1000)
    ends, middle = one / 150 / 1000, 512 * 1024 / 32 / 70.4 / 1000
    assert timeline.total_us == pytest.approx(2 * ends + 4 * middle)
    assert timeline.times_by_bound == pytest.approx({"memory": 2 * ends, "compute": 4 * middle})
    assert timeline.kernels[0].cost.bound is Bottleneck.MEMORY and timeline.core_use == 1.0


def test_engines_of_a_kernel() -> None:
    timeline = softmax_timeline()
    first = [e for e in timeline.events if e.kernel == 0]
    assert [e.engine for e in first] == [Engine.LOAD, Engine.SFU]
    assert first[0].bytes == 512 * 1024 * 2 and first[0].cores == range(32)
    last = [e for e in timeline.events if e.kernel == 5]
    assert [e.engine for e in last] == [Engine.SFU, Engine.STORE]
    assert last[1].start_us + last[1].duration_us == pytest.approx(timeline.total_us)
    for event in timeline.events:
        _, start, duration = timeline.runs[event.kernel]
        assert start - 1e-9 <= event.start_us <= event.start_us + event.duration_us <= start + duration + 1e-9


def test_buffers_in_the_scratchpads() -> None:
    timeline = softmax_timeline()
    matrix, column = 16 * 1024 * 2, 16 * 128  # 16 rows of a core; a stick per row
    assert sorted(r.bytes for r in timeline.residents) == [column, column, matrix, matrix, matrix]
    times = [timeline.runs[n][1] for n in range(6)]
    copied, highest = timeline.residents[0], timeline.residents[1]
    assert (copied.kernel, copied.start_us, copied.bytes) == (0, 0.0, matrix)
    # The maximum is written by the second kernel and read for the last time by the third.
    assert (highest.kernel, highest.start_us, highest.end_us) == (1, pytest.approx(times[1]), pytest.approx(times[3]))
    assert all(r.cores == range(32) for r in timeline.residents)
    # The quotient's operands, and with them the last bytes, live to the end.
    assert max(r.end_us for r in timeline.residents) == pytest.approx(timeline.total_us)


def test_how_much_a_scratchpad_holds() -> None:
    timeline = softmax_timeline()
    matrix, column = 16 * 1024 * 2, 16 * 128
    held = timeline.occupancy()
    assert [time for time, _ in held] == pytest.approx([timeline.runs[n][1] for n in range(5)] + [timeline.total_us])
    # The difference takes the place of the input and the exponential that of the difference; the maximum is gone when
    # the exponential runs, and the sum comes into its place. The last kernel only reads.
    sizes = [matrix, matrix + column, matrix + column, matrix, matrix + column, 0]
    assert [size for _, size in held] == sizes
    assert timeline.occupancy(core=32) == ()


def test_the_pool_is_not_compulsory() -> None:
    """Without scratchpads the intermediates move, and need not."""
    module = through(softmax(512, 1024), "divide-work", "assign-pool", "convert-spyre-kernel-to-superdsc")
    _, bundle, files = split_module(module)
    timeline = make_timeline(read_schedule(bundle, lambda name: describe(files[name])))
    one, column = 512 * 1024 * 2, 512 * 128
    assert timeline.compulsory_bytes == 2 * one
    assert timeline.moved_bytes == 8 * one + 4 * column
    assert timeline.traffic_ratio == pytest.approx((8 * one + 4 * column) / (2 * one))

"""Records of stages: counts of ops, kernels and bytes."""

from __future__ import annotations

from spyre_mlir.pipeline import (
    lower,
)
from spyre_mlir.pipeline.records import StageRecord, record_of
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context
from tests.unit.pipeline.programs import program

CONTEXT = make_context()


def test_records_count_what_is_there() -> None:
    """A tensor of 4 x 128 in DL16 is 8 sticks, 1,024 bytes; each of 8 cores holds one stick in its scratchpad."""
    aten, loop, kernel, last = lower(program(), CONTEXT).records
    assert [r.kernels for r in (aten, loop, kernel, last)] == [0, 0, 2, 2]
    assert (aten.ops, loop.ops, kernel.ops) == (5, 9, 10)
    assert [r.device_bytes for r in (aten, loop, kernel, last)] == [0, 0, 2048, 2048]
    assert [r.lx_bytes for r in (aten, loop, kernel)] == [0, 0, 128]
    assert [r.traffic_bytes for r in (aten, loop, kernel)] == [0, 0, 2048]
    assert all((r.host_steps, r.integers, r.conversions, r.narrowed) == (0, 0, 0, 0) for r in (aten, loop, kernel))
    assert 0 < kernel.seconds < 60


def test_records_count_conversions_and_kernels_that_lose_precision() -> None:
    """The hardware adds and multiplies in float32; it has a hyperbolic tangent on DL16 alone, between conversions."""
    module = parse_module(
        """func.func @main(%x: tensor<4x65xf32>, %y: tensor<4x65xf32>) -> tensor<4x65xf32> {
          %0 = aten.add.Tensor(%x, %y) : (tensor<4x65xf32>, tensor<4x65xf32>) -> tensor<4x65xf32>
          %1 = aten.tanh(%0) : (tensor<4x65xf32>) -> tensor<4x65xf32>
          %2 = aten.mul.Tensor(%1, %y) : (tensor<4x65xf32>, tensor<4x65xf32>) -> tensor<4x65xf32>
          func.return %2 : tensor<4x65xf32>
        }""",
        CONTEXT,
    )
    options = {"convert-spyre-loop-to-spyre-kernel": {"keep_float32": True}}
    record = lower(module, CONTEXT, until="spyre.kernel", options=options).records[-1]
    assert (record.conversions, record.narrowed) == (2, 1)


TILES = "!spyre.tensor<[512, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>"
ROWS = "!spyre.tensor<[128, 128] x SEN169_FP16, order [1, 0], stick 1, extents [512, 128], hbm>"


def test_records_count_the_trips_of_loops_and_no_tile_twice() -> None:
    """Four trips read and write 128 x 128 elements of 2 bytes; two tensors of 512 x 128 lie in memory."""
    kernels = parse_module(
        f"""func.func @main(%x: tensor<512x128xf16>) -> tensor<512x128xf16> {{
          %d = spyre.kernel.to_device %x : tensor<512x128xf16> to {TILES}
          %o = spyre.kernel.alloc : {TILES}
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %c4 = arith.constant 4 : index
          scf.for %i = %c0 to %c4 step %c1 {{
            %dt = spyre.kernel.tile %d dim 0 at %i * 128 : {TILES} to {ROWS}
            %ot = spyre.kernel.tile %o dim 0 at %i * 128 : {TILES} to {ROWS}
            spyre.kernel.compute "relufwd" [d0 = 128, d1 = 128] ins(%dt[d0, d1] : {ROWS})
              outs(%ot[d0, d1] : {ROWS}) integers
          }}
          %r = spyre.kernel.from_device %o : {TILES} to tensor<512x128xf16>
          func.return %r : tensor<512x128xf16>
        }}""",
        CONTEXT,
    )
    record = record_of("spyre.kernel", kernels, 0.5)
    assert (record.kernels, record.integers, record.device_bytes) == (1, 1, 2 * 512 * 128 * 2)
    assert record.traffic_bytes == 4 * 2 * 128 * 128 * 2
    assert (record.level, record.seconds) == ("spyre.kernel", 0.5)


def test_records_count_the_pool() -> None:
    bundle = parse_module(
        "func.func @b() { %p = sdscbundle.device_mem_allocate 65536 bytes : index func.return }", CONTEXT
    )
    assert record_of("superdsc", bundle, 0.0).device_bytes == 65536


SUMMARY = StageRecord("superdsc", 1200, 3, 4096, 0.12345, host_steps=2)


def test_a_summary_is_one_line() -> None:
    assert SUMMARY.summary() == "level superdsc: 1200 ops, 3 kernels, 2 host steps, 4,096 device bytes, 0.123 s"
    assert StageRecord("aten", 5, 0, 0, 1.0).summary() == "level aten: 5 ops, 0 kernels, 1.000 s"


def test_a_record_counts_nothing_unless_it_is_told() -> None:
    nothing = {"lx_bytes": 0, "traffic_bytes": 0, "host_steps": 0, "integers": 0, "conversions": 0, "narrowed": 0}
    assert StageRecord("aten", 5, 0, 0, 1.0) == StageRecord("aten", 5, 0, 0, 1.0, **nothing)

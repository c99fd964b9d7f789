"""The levels and the passes that lead to each: their order, what may stand there, and what a stage leaves behind."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from xdsl.context import Context
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import FloatAttr, ModuleOp, f32
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from spyre_mlir.errors import InputError, LoweringError, UnsupportedError
from spyre_mlir.pipeline import (
    KTIR,
    LEVELS,
    OFF,
    STAGES,
    StageRecord,
    _record,
    check_level,
    lower,
    lower_last,
    lower_to_ktir,
    passes_to,
)
from spyre_mlir.plugins import registry
from spyre_mlir.text.render import module_text, parse_module
from spyre_mlir.transforms.utils.host_fallback import HostStepWarning
from spyre_mlir.universe import make_context

CONTEXT = make_context()
TO_LOOP = (
    "place-inputs,spread-experts,turn-heads,pad-heads,fold-padding,convolve-rows,decompose-aten,cse,convert-aten-to-spyre-loop,"
    "scale-results,split-products,update-in-place,forward-copies,join-parts,pack-weights,schedule-host-steps"
)
TO_KERNEL = (
    "cut-rows,cut-columns,choose-layouts,convert-spyre-loop-to-spyre-kernel,keep-on-device,"
    "view-copies,order-batches,plan,divide-work,forward-results,place-lx,assign-pool"
)


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    with registry.isolated():
        yield


def program(op: str = "relu") -> ModuleOp:
    return parse_module(
        f"""func.func @main(%x: tensor<4x128xf32>) -> tensor<4x128xf32> {{
          %0 = aten.{op}(%x) : (tensor<4x128xf32>) -> tensor<4x128xf32>
          %1 = aten.sigmoid(%0) : (tensor<4x128xf32>) -> tensor<4x128xf32>
          func.return %1 : tensor<4x128xf32>
        }}""",
        CONTEXT,
    )


def of_host() -> ModuleOp:
    """A program with an operator that the op table lacks."""
    return parse_module(
        """func.func @main(%x: tensor<4x128xf32>) -> tensor<4x128xf32> {
          %0 = aten.call "aten.special_bessel_j0"(%x) {self = #aten.operands<1>}
            : (tensor<4x128xf32>) -> tensor<4x128xf32>
          func.return %0 : tensor<4x128xf32>
        }""",
        CONTEXT,
    )


class Passes:
    """Watches, and notes the passes."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.open: list[str] = []

    def before(self, name: str, module: ModuleOp) -> None:
        self.open.append(name)

    def after(self, name: str, module: ModuleOp) -> None:
        assert self.open.pop() == name
        assert isinstance(module, ModuleOp)
        self.seen.append(name)


def passes_of(until: str = "superdsc", **named: Any) -> str:
    watch = Passes()
    lower(program(), CONTEXT, until=until, watch=watch, **named)
    assert not watch.open
    return ",".join(watch.seen)


def test_levels_in_their_order() -> None:
    assert LEVELS == ("aten", "spyre.loop", "spyre.kernel", "superdsc")


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_is_called_by_its_name(level: str) -> None:
    assert check_level(level) == level


def test_no_other_level_is_known() -> None:
    for call in (check_level, passes_to, lambda level: lower(program(), CONTEXT, until=level)):
        with pytest.raises(InputError, match="no level is called 'linalg'") as refused:
            call("linalg")
        assert refused.value.hint == "the levels are aten, spyre.loop, spyre.kernel, superdsc"


@pytest.mark.parametrize(
    ("level", "passes"),
    [
        ("aten", ""),
        ("spyre.loop", TO_LOOP),
        ("spyre.kernel", f"{TO_LOOP},{TO_KERNEL}"),
        ("superdsc", f"{TO_LOOP},{TO_KERNEL},convert-spyre-kernel-to-superdsc"),
    ],
)
def test_the_passes_to_a_level_are_those_that_run(level: str, passes: str) -> None:
    assert passes_to(level) == passes
    assert passes_of(level) == passes


def test_each_stage_has_the_ops_of_its_level() -> None:
    assert tuple(stage.level for stage in (*STAGES, KTIR)) == (*LEVELS, "ktir")


def test_what_a_pass_leaves_is_checked() -> None:
    @registry.register_pass("spyre.loop")
    class LeavesOne(ModulePass):
        name = "leaves-one"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            function = next(iter(op.ops))
            assert isinstance(function, FuncOp)
            function.body.block.insert_op_before(ConstantOp(FloatAttr(1.0, f32)), function.body.block.last_op)

    with pytest.raises(LoweringError, match=r"arith.constant is not legal at the level spyre.loop"):
        lower(program(), CONTEXT)


def test_lowering_keeps_a_module_per_level_and_the_one_it_was_given() -> None:
    module = program()
    before = module_text(module)
    lowered = lower(module, CONTEXT)
    assert tuple(lowered.modules) == LEVELS == tuple(r.level for r in lowered.records)
    assert lowered.modules["aten"] is module
    assert module_text(module) == before
    assert len(set(map(id, lowered.modules.values()))) == 4
    for stage in STAGES:
        stage.legal.check(lowered.modules[stage.level])
    assert lowered.host_steps == ()


def test_the_last_stage_alone_gives_the_last_level() -> None:
    lowered = lower(program(), CONTEXT, options={"convert-spyre-kernel-to-superdsc": {"version": "TS25"}})
    kernels = lowered.modules["spyre.kernel"]
    before = module_text(kernels)
    last = lower_last(kernels, CONTEXT, {"convert-spyre-kernel-to-superdsc": {"version": "TS25"}})
    assert module_text(last) == module_text(lowered.modules["superdsc"])
    assert module_text(last) != module_text(lower_last(kernels, CONTEXT, {}))
    assert module_text(kernels) == before


def test_files_that_are_known_are_not_rendered_again() -> None:
    lowered = lower(program(), CONTEXT)
    first = lowered.bundle()
    assert lowered.bundle() is not first
    lowered.rendered = first
    assert lowered.bundle() is first


def test_lowering_stops_at_a_level() -> None:
    lowered = lower(program(), CONTEXT, until="spyre.loop")
    assert tuple(lowered.modules) == ("aten", "spyre.loop")


def test_optional_passes_run_where_they_are_named() -> None:
    assert passes_of("aten", options={"outline-regions": {}}) == "outline-regions"
    assert passes_of("aten") == ""


def test_passes_that_are_off_are_left_out() -> None:
    kept = passes_of("spyre.loop").split(",")
    kept.remove("split-products")
    assert passes_of("spyre.loop", options={"split-products": OFF}).split(",") == kept


def test_passes_get_their_options() -> None:
    options = {"convert-spyre-kernel-to-superdsc": {"addresses": "concrete"}}
    concrete, symbolic = lower(program(), CONTEXT, options=options), lower(program(), CONTEXT)
    assert "symbolic" in module_text(symbolic.modules["superdsc"])
    assert "symbolic" not in module_text(concrete.modules["superdsc"])


@pytest.mark.parametrize(
    ("point", "before"),
    [
        ("aten", "place-inputs"),
        ("aten-decomposed", "convert-aten-to-spyre-loop"),
        ("spyre.loop", "cut-rows"),
        ("spyre.kernel", "view-copies"),
    ],
)
def test_passes_of_plugins_run_at_their_points(point: str, before: str) -> None:
    @registry.register_pass(point)
    class Nothing(ModulePass):
        name = "nothing-at-all"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            pass

    wanted = f"{TO_LOOP},{TO_KERNEL}".replace(before, f"nothing-at-all,{before}")
    assert passes_of("spyre.kernel") == wanted == passes_to("spyre.kernel")


def test_what_the_device_cannot_do_is_a_host_step() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lowered = lower(of_host(), CONTEXT)
    (step,) = lowered.host_steps
    assert step.op == "aten.special_bessel_j0"
    assert lowered.records[1].host_steps == 1
    with pytest.warns(HostStepWarning, match="special_bessel_j0"):
        lower(of_host(), CONTEXT, host_fallback="warn")
    with pytest.raises(UnsupportedError, match="special_bessel_j0"):
        lower(of_host(), CONTEXT, host_fallback="error")


def test_a_program_that_is_refused_is_lowered_again_with_more_on_the_host() -> None:
    module = program()

    class Refuses(ModulePass):
        """As a pass that meets what the device cannot do; it names the first op."""

        name = "refuses"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            if not module_text(op).count("host") and "aten.relu" in module_text(op):
                error = LoweringError("no relu today")
                error.origin = 0
                raise error

    registry.register_pass("aten")(Refuses)
    lowered = lower(module, CONTEXT)
    assert [(s.op, s.reason) for s in lowered.host_steps] == [("aten.relu", "no relu today")]
    assert lowered.modules["aten"] is module


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
    record = _record("spyre.kernel", kernels, 0.5)
    assert (record.kernels, record.integers, record.device_bytes) == (1, 1, 2 * 512 * 128 * 2)
    assert record.traffic_bytes == 4 * 2 * 128 * 128 * 2
    assert (record.level, record.seconds) == ("spyre.kernel", 0.5)


def test_records_count_the_pool() -> None:
    bundle = parse_module(
        "func.func @b() { %p = sdscbundle.device_mem_allocate 65536 bytes : index func.return }", CONTEXT
    )
    assert _record("superdsc", bundle, 0.0).device_bytes == 65536


SUMMARY = StageRecord("superdsc", 1200, 3, 4096, 0.12345, host_steps=2)


def test_a_summary_is_one_line() -> None:
    assert SUMMARY.summary() == "level superdsc: 1200 ops, 3 kernels, 2 host steps, 4,096 device bytes, 0.123 s"
    assert StageRecord("aten", 5, 0, 0, 1.0).summary() == "level aten: 5 ops, 0 kernels, 1.000 s"


def test_a_record_counts_nothing_unless_it_is_told() -> None:
    nothing = {"lx_bytes": 0, "traffic_bytes": 0, "host_steps": 0, "integers": 0, "conversions": 0, "narrowed": 0}
    assert StageRecord("aten", 5, 0, 0, 1.0) == StageRecord("aten", 5, 0, 0, 1.0, **nothing)


def test_summaries_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="spyre_mlir.pipeline"):
        lowered = lower(program(), CONTEXT, until="spyre.loop")
    assert [r.getMessage() for r in caplog.records] == [r.summary() for r in lowered.records]


def test_ktir_comes_of_the_kernel_level() -> None:
    kernels = lower(program(), CONTEXT, until="spyre.kernel").modules["spyre.kernel"]
    before = module_text(kernels)
    ktir = lower_to_ktir(kernels, CONTEXT)
    assert module_text(kernels) == before
    assert "ktdp." in module_text(ktir) and "spyre.kernel." not in module_text(ktir)
    with pytest.raises(LoweringError):
        lower_to_ktir(program(), CONTEXT)


def test_host_steps_are_known_from_the_loop_level_on() -> None:
    for level in ("spyre.loop", "spyre.kernel"):
        (step,) = lower(of_host(), CONTEXT, until=level, host_fallback="allow").host_steps
        assert step.reason

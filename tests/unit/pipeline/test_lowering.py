"""Lowering through the levels: modules, host steps, the last stage alone, KTIR."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator

import pytest
from xdsl.context import Context
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import FloatAttr, ModuleOp, f32
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from spyre_mlir.errors import LoweringError, UnsupportedError
from spyre_mlir.pipeline import (
    LEVELS,
    STAGES,
    lower,
    lower_last,
    lower_to_ktir,
)
from spyre_mlir.plugins import registry
from spyre_mlir.text.render import module_text, parse_module
from spyre_mlir.transforms.utils.host_fallback import HostStepWarning
from spyre_mlir.universe import make_context
from tests.unit.pipeline.programs import program

CONTEXT = make_context()


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    with registry.isolated():
        yield


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


def test_passes_get_their_options() -> None:
    options = {"convert-spyre-kernel-to-superdsc": {"addresses": "concrete"}}
    concrete, symbolic = lower(program(), CONTEXT, options=options), lower(program(), CONTEXT)
    assert "symbolic" in module_text(symbolic.modules["superdsc"])
    assert "symbolic" not in module_text(concrete.modules["superdsc"])


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

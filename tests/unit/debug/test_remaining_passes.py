"""Going on from any point of the pipeline: a program that is printed anywhere ends as one that was never printed."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.debug.remaining_passes import level_of, lower_on, remaining_passes
from spyre_mlir.errors import InputError
from spyre_mlir.frontend import import_program
from spyre_mlir.pipeline import LEVELS, passes_to
from spyre_mlir.text.render import module_text, parse_module
from spyre_mlir.universe import make_context
from tests.unit.transforms.levels import passed

PASSES = passes_to(LEVELS[-1]).split(",")


class Rows(nn.Module):
    """A softmax along columns behind a product: a change of layout is inserted, and the kernels share slices."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(64, 192)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.up(x), 0)


@pytest.fixture(scope="module")
def stops() -> dict[str, str]:
    """The text of a program after each pass, by the pass."""
    module = import_program(Rows().half(), (torch.randn(128, 64).half(),)).module
    found = {"": module_text(module)}
    for name in PASSES:
        found[name] = module_text(passed_one(found[list(found)[-1]], name))
    return found


def passed_one(text: str, name: str) -> ModuleOp:
    if name == "cse":
        from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination

        module = parse_module(text, make_context())
        CommonSubexpressionElimination().apply(make_context(), module)
        return module
    return passed(text, name)


# In the middle of the passes of the loop level a program does not show how far it is.
SHOWN = ["", "decompose-aten", "cut-columns", "choose-layouts", *PASSES[PASSES.index("choose-layouts") + 1 : -1]]


@pytest.mark.parametrize("stop", SHOWN)
def test_a_program_that_was_printed_anywhere_goes_on_as_one_that_was_not(stop: str, stops: dict[str, str]) -> None:
    names, text = remaining_passes(parse_module(stops[stop], make_context()), LEVELS[-1]), stops[stop]
    assert names == PASSES[len(PASSES) - len(names) :]
    following = PASSES[0] if not stop else PASSES[PASSES.index(stop) + 1]
    for name in names[: names.index(following) + 1]:
        text = module_text(passed_one(text, name))
    assert text == stops[following]


class Branches(nn.Module):
    """Control flow, whose functions hand over device tensors from the level of kernels on."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda y: torch.exp(y) * 2, lambda y: y - 1, (x,))


@pytest.mark.parametrize("stop", ["keep-on-device", "order-batches", "plan"])
def test_control_flow_that_was_printed_goes_on(stop: str) -> None:
    module = import_program(Branches(), (torch.randn(16, 64),)).module
    lower_on(module, make_context(), stop)
    again = parse_module(module_text(module), make_context())
    for one in (module, again):
        lower_on(one, make_context(), LEVELS[-1])
    assert "control.cond" in module_text(again)
    assert module_text(again) == module_text(module)


@pytest.mark.parametrize(
    ("stop", "following"),
    [
        ("", PASSES[0]),
        ("schedule-host-steps", "join-lanes"),
        ("choose-layouts", "choose-layouts"),
        ("convert-spyre-loop-to-spyre-kernel", "keep-on-device"),
        ("plan", "materialize-plan"),
        ("place-lx", "forward-results"),
    ],
)
def test_a_program_goes_on_with_the_pass_that_has_not_run(stop: str, following: str, stops: dict[str, str]) -> None:
    assert remaining_passes(parse_module(stops[stop], make_context()), LEVELS[-1])[0] == following


def test_the_end_is_a_level_or_a_pass(stops: dict[str, str]) -> None:
    module = parse_module(stops["schedule-host-steps"], make_context())
    assert level_of(module) == "spyre.loop"
    assert remaining_passes(module, "choose-layouts") == [
        "join-lanes",
        "cut-copies",
        "part-rows",
        "pad-rows",
        "cut-rows",
        "cut-columns",
        "choose-layouts",
    ]
    assert remaining_passes(module, "update-in-place", after="scale-results") == ["split-products", "update-in-place"]
    assert remaining_passes(module, "spyre.kernel")[-1] == "assign-pool"
    assert remaining_passes(module, "spyre.loop") == []


@pytest.mark.parametrize(
    ("to", "after", "message", "hint"),
    [
        ("decompose-aten", None, "beyond decompose-aten already: it is at the level spyre.loop", "join-lanes"),
        ("aten", None, "beyond aten already", "superdsc"),
        ("plan", "divide-work", "beyond plan already: it is behind divide-work", "inline-loops"),
        ("plna", None, "no level or pass of the pipeline is called 'plna'", "did you mean plan"),
        ("kernel", None, "no level or pass of the pipeline is called 'kernel'", "did you mean spyre.kernel?"),
        ("plan", "spyre.loop", "no level or pass of the pipeline is called 'spyre.loop'", "there are place-inputs"),
    ],
)
def test_what_does_not_follow_is_refused(
    to: str, after: str | None, message: str, hint: str, stops: dict[str, str]
) -> None:
    with pytest.raises(InputError, match=message) as refused:
        remaining_passes(parse_module(stops["schedule-host-steps"], make_context()), to, after)
    assert refused.value.hint is not None and hint in refused.value.hint


def test_a_program_of_no_level_is_refused() -> None:
    t = "tensor<4xf16>"
    body = f"%0 = spyre.loop.empty : {t}\n%1 = aten.relu(%x) : ({t}) -> {t}\nfunc.return %1 : {t}"
    text = f"func.func @main(%x: {t}) -> {t} {{\n{body}\n}}"
    with pytest.raises(InputError, match="ops of several levels") as refused:
        remaining_passes(parse_module(text, make_context()), "superdsc")
    assert refused.value.hint is not None and "-p runs passes" in refused.value.hint

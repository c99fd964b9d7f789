"""Hints that are followed, checked and refused, from the model to the kernels, and in the text of levels."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import nn
from xdsl.dialects.builtin import ModuleOp

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.hints import HINT, HintError
from spyre_mlir.dialects.spyre.kernel import AllocOp, KernelOp, device_tensor
from spyre_mlir.dialects.spyre.static_loop import trips_of
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.text.render import parse_module
from spyre_mlir.transforms.utils.hints import HintWarning
from spyre_mlir.universe import make_context
from tests.unit.transforms.levels import passed
from tests.unit.transforms.test_place_lx import softmax

X = torch.randn(512, 256, dtype=torch.float16)


class Model(nn.Module):
    """Two products with a function between them; the second one has a hint."""

    def __init__(self, **said: Any) -> None:
        super().__init__()
        self.up = nn.Linear(256, 1024, bias=False)
        self.down = nn.Linear(1024, 256, bias=False)
        self.said = said

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.silu(self.up(x))
        with spyre_mlir.hint(**self.said):
            x = self.down(x)
        return torch.softmax(x, -1)


class Rows(nn.Module):
    """A softmax with a hint."""

    def __init__(self, **said: Any) -> None:
        super().__init__()
        self.said = said

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with spyre_mlir.hint(**self.said):
            x = torch.softmax(x, -1)
        return x + 1


def compiled(model: nn.Module, **options: Any) -> CompiledModel:
    made = spyre_mlir.compile(model.half(), (X,), cache=False, **options)
    assert isinstance(made, CompiledModel)
    return made


def kernels(program: CompiledModel) -> list[KernelOp]:
    module = program._lowered.modules["spyre.kernel"]
    return [op for op in module.walk() if isinstance(op, KernelOp)]


@pytest.mark.parametrize(
    ("division", "expected"),
    [
        ({0: 8, 1: 4}, {"m": 8, "n": 4, "k": 1}),
        ({-2: 4, "k": 8}, {"m": 4, "n": 1, "k": 8}),
        ({"m": 1, "n": 1, "k": 1}, {"m": 1, "n": 1, "k": 1}),
        ({"n": 4}, {"m": 8, "n": 4, "k": 1}),
    ],
)
@pytest.mark.parametrize("together", [True, False])
def test_a_division_is_followed(division: dict[int | str, int], expected: dict[str, int], together: bool) -> None:
    """The planner divides the rows by itself; what a hint leaves open takes as many cores as there are."""
    program = compiled(Model(division=division))
    assert kernels(compiled(Model(division={0: 32})))[2].space_splits() == {"m": 32, "n": 1, "k": 1}
    if not together:
        aten = parse_module(program.mlir("aten"), make_context())
        module = spyre_mlir.pipeline.lower(aten, make_context(), options={"plan": {"together": False}}).modules
        found = [op for op in module["spyre.kernel"].walk() if isinstance(op, KernelOp)]
        assert found[2].space_splits() == expected
        return
    assert kernels(program)[2].space_splits() == expected
    assert program.verify(X)


def test_dimensions_concern_the_kernels_that_have_them() -> None:
    """Rows are divided in all five kernels of a softmax, columns where they are not reduced."""
    rows = kernels(compiled(Rows(division={0: 16})))
    assert [op.space_splits()["d0"] for op in rows[:5]] == [16] * 5
    columns = kernels(compiled(Rows(division={-1: 4})))
    assert [op.space_splits().get("d1") for op in columns[:5]] == [None, 4, 4, None, 4]


def test_operations_in_a_row_share_a_loop_and_others_have_none() -> None:
    """Loops by the last dimension but one; the planner by itself makes none of so few rows."""
    program = compiled(Rows(tile={-2: 8}))
    found = [(op.function_name, trips_of(op)) for op in kernels(program)]
    assert [t for name, t in found if name in ("max", "sub", "exp", "sum", "realdiv")] == [8] * 5
    assert program.verify(X)
    assert all(trips_of(op) == 1 for op in kernels(compiled(Rows(division={0: 16}))))


def test_a_result_stays_out_of_the_scratchpads() -> None:
    free, kept = compiled(Model(place="lx")), compiled(Model(place="hbm"))
    assert [device_tensor(k[2].output).space for k in map(kernels, (free, kept))] == ["lx", "hbm"]
    assert kept.timeline().moved_bytes > free.timeline().moved_bytes
    assert kept.verify(X)


def test_short_neighbours_follow_a_result_in_the_scratchpads() -> None:
    """Sixteen rows: short kernels have one division by themselves, over 16 cores, where the hint has 8."""

    class Short(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with spyre_mlir.hint(division={0: 8}, place="lx"):
                x = torch.exp(x)
            return torch.neg(x)

    made = spyre_mlir.compile(Short(), (torch.zeros(16, 64, dtype=torch.float16),), cache=False)
    assert isinstance(made, CompiledModel)
    first, second = kernels(made)
    assert [op.space_splits()["d0"] for op in (first, second)] == [8, 8]
    assert device_tensor(first.output).space == "lx"


def test_a_hint_overrides_the_planner_even_where_that_is_slower() -> None:
    """8,192 rows a core fit nowhere, so the planner has them in device memory or in loops; a hint for HBM ends both."""
    free = compiled(Rows(division={0: 32}))
    kept = compiled(Rows(place="hbm"))
    assert kept.timeline().kernels_us > free.timeline().kernels_us
    buffers = [op for op in kept._lowered.modules["spyre.kernel"].walk() if isinstance(op, AllocOp)]
    marked = [op for op in buffers if HINT in op.attributes]
    assert [device_tensor(op.result).space for op in marked] == ["hbm"]  # the result, not what the softmax makes inside


@pytest.mark.parametrize(
    ("said", "message", "hint"),
    [
        ({"division": {0: 3}}, "m over 3: equal slices of its 512 elements", "allowed are m: 1, 2, 4, 8, 16, 32"),
        ({"division": {1: 8}}, "n over 8: equal slices of its 4 pieces", "allowed are n: 1, 2, 4"),
        ({"division": {0: 32, 1: 4}}, "that is 128 slices, and the card has 32 cores", "n: 1, 2, 4"),
        ({"division": {"q": 2}}, "divides q, and no kernel", "batchmatmul: m = 512, n = 256, k = 1024"),
        ({"tile": {0: 3}}, "3 trips over m: equal blocks of its 512 elements", "m: 1, 2, 4, 8, 16, 32, 64"),
        ({"tile": {"k": 2}}, "2 trips over k: k stays whole: the kernel sums it", "n: 1, 2, 4; 1 is"),
        ({"tile": {2: 2}}, "tiles 2, and no kernel", "m = 512"),
        ({"division": {2: 2}}, "divides 2, and no kernel", "m = 512"),
        ({"division": {0: 8, 1: 4}, "place": "lx"}, "no plan keeps it there", "place=hbm"),
    ],
)
def test_what_cannot_be_followed_is_refused(said: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(HintError, match=message) as refused:
        compiled(Model(**said))
    assert refused.value.hint is not None and hint in refused.value.hint
    assert refused.value.where is not None
    assert refused.value.where.startswith("batchmatmul at ") and "test_hints.py:" in refused.value.where


def test_what_is_whole_in_the_scratchpads_cannot_be_read_in_trips() -> None:
    class Two(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with spyre_mlir.hint(place="lx"):
                x = torch.exp(x)
            with spyre_mlir.hint(tile={0: 4}):
                return torch.neg(x)

    with pytest.raises(HintError, match="4 trips over d0: a hint wants all of what exp makes in LX"):
        compiled(Two())


def test_a_loop_that_stays_whole_says_why() -> None:
    with pytest.raises(HintError, match="r over 2: the function reduces it") as refused:
        compiled(Rows(division={"r": 2}))
    assert refused.value.hint == "allowed are r: 1"


def test_a_result_for_the_host_cannot_be_in_the_scratchpads() -> None:
    class Last(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with spyre_mlir.hint(place="lx"):
                return torch.exp(x)

    with pytest.raises(HintError, match="in LX that cannot be there: it goes to the host") as refused:
        compiled(Last())
    assert refused.value.hint == 'take the hint away, or ask for place="hbm"'


def test_hints_that_concern_no_kernel_are_warned_of() -> None:
    class View(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with spyre_mlir.hint(place="lx"):
                x = x.view(256, 512)
            return torch.exp(x)

    with pytest.warns(HintWarning, match=r"a hint concerns no kernel: aten.view at .*test_hints.py:\d+$"):
        compiled(View())


def with_hint(text: str, function: str, said: str) -> str:
    """The text of kernels with a hint at the one that runs a function."""
    lines = text.splitlines()
    number = next(n for n, line in enumerate(lines) if f'compute "{function}"' in line)
    lines[number] += f" attributes {{spyre.hint = {said}}}"
    return "\n".join(lines)


def splits(module: ModuleOp) -> dict[str, dict[str, int]]:
    return {op.function_name: op.space_splits() for op in module.walk() if isinstance(op, KernelOp)}


def test_hints_in_the_text_of_kernels() -> None:
    text = with_hint(softmax(512, 1024), "exp", "{division = {n = 16 : i64}}")
    for passes in (("plan",), ("plan", "divide-work"), ("divide-work",)):
        assert list(splits(passed(text, *passes))["exp"].values()) == [2, 16]
    assert list(splits(passed(softmax(512, 1024), "plan"))["exp"].values()) == [SPYRE.cores_per_card, 1]
    divided = text.replace('compute "exp" [m = 512', 'compute "exp" [m = 512 over 32')
    with pytest.raises(HintError, match="a hint divides n over 16, and the program has it over 1"):
        passed(divided, "plan")


def test_a_place_in_the_text_of_a_plan_is_followed_or_refused() -> None:
    """Behind `plan` a hint at a buffer moves it to device memory; one for LX where it cannot be is an error."""
    planned = str(passed(softmax(512, 1024), "plan", "divide-work"))
    lines = planned.splitlines()
    place = next(n for n, line in enumerate(lines) if "spyre.kernel.alloc" in line and "[512, 1024]" in line)

    def said(where: str, number: int) -> str:
        head, tail = lines[number].split("spyre.kernel.alloc")
        return "\n".join(
            [
                *lines[:number],
                f'{head}spyre.kernel.alloc {{spyre.hint = {{place = "{where}"}}}}{tail}',
                *lines[number + 1 :],
            ]
        )

    def placed_at(text: str) -> list[str]:
        module = passed(text, "place-lx")
        return [device_tensor(op.result).space for op in module.walk() if isinstance(op, AllocOp)]

    free, moved = placed_at(planned), placed_at(said("hbm", place))
    assert free.count("lx") == moved.count("lx") + 1
    last = max(n for n, line in enumerate(lines) if "spyre.kernel.alloc" in line)
    with pytest.raises(HintError, match="in LX, and it is not there: it goes to the host") as refused:
        passed(said("lx", last), "place-lx")
    assert refused.value.hint == 'take the hint away, or ask for place="hbm"'


def test_a_hint_moves_what_the_plan_has_in_the_scratchpads_unless_it_has_an_address() -> None:
    placed = str(passed(softmax(512, 1024), "plan", "divide-work", "place-lx"))
    hinted = re.sub(r"spyre\.kernel\.alloc( at \d+ : i64)?", r'\g<0> {spyre.hint = {place = "hbm"}}', placed)
    with pytest.raises(HintError, match=r"in HBM, and the program has it at \d+ of the scratchpads") as refused:
        passed(hinted, "place-lx")
    assert refused.value.where is not None and "spyre.kernel.alloc at " in refused.value.where
    planned = re.sub(r" at \d+ : i64", "", hinted)
    assert "lx>" in planned
    module = passed(planned, "place-lx", "assign-pool")
    marked = [op for op in module.walk() if isinstance(op, AllocOp) and HINT in op.attributes]
    assert {device_tensor(op.result).space for op in marked} == {"hbm"}
    assert [op for op in marked if op.offset is None] == marked[-1:]  # the result, which is no part of the pool

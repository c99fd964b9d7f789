"""The notation says what it says, the rule of comparison tells right from wrong, and the page is of the outcomes."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from tests.op_cases.cases import cases, groups
from tests.op_cases.judge import NO_PROGRAM, PASSED, WRONG, Outcome, error, judged, program_of
from tests.op_cases.listed import LISTED, reason
from tests.op_cases.notation import NotationError, Tensor, make, parse, words
from tests.op_cases.page import FILE, page_text
from tests.op_cases.program import TEMPLATES, NotAProgramError, Program
from tests.op_cases.results import load, save

X = torch.tensor([[1.0, -2.0, 3.5], [0.25, 4.0, -0.5]], dtype=torch.float16)
F32, F16 = torch.float32, torch.float16


def made(word: str) -> torch.Tensor:
    return make(parse(word), torch.Generator().manual_seed(1))


def test_there_are_as_many_cases_as_were_published() -> None:
    assert (len(groups()), len(list(cases()))) == (158, 1858)
    assert len({case.id for case in cases()}) == 1858


def test_every_template_is_known() -> None:
    assert {group.template for group in groups()} == set(TEMPLATES)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("f16[67x256]{abs x10.0 ceil}", Tensor(F16, (67, 256), ("abs", "x10.0", "ceil"))),
        ("f32[]{=3.14}", Tensor(F32, (), ("=3.14",))),
        ("{f16[1x3]}", Tensor(F16, (1, 3), ())),
        ("bf16", torch.bfloat16),
        ("-inf", -math.inf),
        ("(0, -1)", (0, -1)),
        ("'fro'", "fro"),
        ("None", None),
        ("{p=0.5, training=False}", {"p": 0.5, "training": False}),
    ],
)
def test_words(word: str, value: object) -> None:
    assert parse(word) == value


def test_steps_are_apart_outside_brackets() -> None:
    assert words("=[[1, 2], [3, 4]] t(0, 1) abs") == ["=[[1, 2], [3, 4]]", "t(0, 1)", "abs"]


@pytest.mark.parametrize("word", ["f15[3]", "f16[3]{shouted}", "f16[3]{randomly(1)}", "three"])
def test_what_is_no_notation_is_refused(word: str) -> None:
    with pytest.raises(NotationError, match=r"shouted|randomly|f15|three"):
        made(word)


def test_values_of_steps() -> None:
    assert made("f16[2x3]{=[[1, -2, 3], [4, 5, 6]]}").tolist() == [[1, -2, 3], [4, 5, 6]]
    assert made("f16[4]{arange}").tolist() == [0, 1, 2, 3]
    whole = made("i64[200]{randint(-100, 100)}")
    assert whole.dtype == torch.int64 and -100 <= int(whole.min()) < -50 < 50 < int(whole.max()) < 100
    assert made("f16[64]{abs shifted}").min() >= 0.125
    assert made("f16[3x3]{ones scaled triu}").tolist()[0] == [0.0, -math.inf, -math.inf]


def test_transposed_tensors_have_the_shape_that_is_written() -> None:
    tensor = made("f16[2x4x3]{arange permute(0, 2, 1)}")
    assert tuple(tensor.shape) == (2, 4, 3) and tensor.stride() == (12, 1, 4)
    spread = made("i64[1x64]{randint(0, 100) as_strided}")
    assert tuple(spread.shape) == (1, 64) and spread.stride(1) == 2


def test_unique_values_differ_along_their_dimension() -> None:
    along = made("f16[67x256]{unique(dim=0)}")
    assert all(len(set(column.tolist())) == 67 for column in along.T)
    assert len(set(made("i64[67x256]{unique(dim=None)}").flatten().tolist())) == 67 * 256


def test_floating_values_are_of_dlfloat16() -> None:
    """Nine fraction bits: the tenth bit of a half is zero."""
    values = made("f16[1000]")
    mantissa, _ = torch.frexp(values.double())
    assert torch.equal(mantissa * 1024, (mantissa * 1024).round())


def test_a_function_that_differs_on_the_device_is_noticed() -> None:
    def wrong(x: torch.Tensor) -> torch.Tensor:
        return x + 1.0625 if torch.compiler.is_exporting() else x + 1.0

    outcome = judged(Program(wrong, (X,)))
    assert outcome.status == WRONG and outcome.ulps > outcome.allowed
    right = judged(Program(lambda x: x + 1.0, (X,)))
    assert (right.status, right.kernels, right.host) == (PASSED, 1, ())


def test_what_only_moves_must_be_exact_and_of_the_right_kind() -> None:
    assert judged(Program(lambda x: x.t() + 0.0, (X,))).allowed == 1
    assert judged(Program(lambda x: torch.cat([x, x]), (X,))).allowed == 0

    def other_shape(x: torch.Tensor) -> torch.Tensor:
        return x.t() * 1.0 if torch.compiler.is_exporting() else x * 1.0

    assert "shapes" in judged(Program(other_shape, (X,))).why


def test_units() -> None:
    one = torch.tensor([1.0])
    assert error(one + 2.0**-9, one, one, peak=False) == 1.0
    assert error(one + 2.0**-9, one, torch.tensor([4.0]), peak=False) == 0.25
    zero, tiny = torch.zeros(1, dtype=F16), torch.full((1,), 2.0**-24, dtype=F16)
    assert error(tiny, zero, zero, peak=False) == 1.0
    assert error(torch.tensor([2]), torch.tensor([1]), torch.tensor([1]), peak=False) == math.inf
    nan, inf = torch.tensor([math.nan]), torch.tensor([math.inf])
    assert error(nan, inf, inf, peak=False) == 0.0
    assert error(nan, one, one, peak=False) == math.inf
    assert error(one, nan, nan, peak=False) == math.inf


def test_infinity_stands_for_what_a_half_cannot_hold() -> None:
    infinity, large = torch.tensor([math.inf], dtype=F16), torch.tensor([106184.0], dtype=torch.float64)
    assert error(infinity, large, large, peak=False) == 0.0
    assert error(infinity, large * 0 + 65504, large, peak=False) == 0.25
    assert error(infinity, large / 4, large / 4, peak=False) > 1000
    assert error(-infinity, large, large, peak=False) > 1000
    assert error(torch.tensor([65504.0], dtype=F16), large, large, peak=False) > 100
    assert error(infinity.float(), large, large, peak=False) == math.inf


def test_a_result_that_leaves_the_program_is_no_program() -> None:
    case = next(case for case in cases() if case.template == "test_item_cpu")
    with pytest.raises(NotAProgramError, match="Python number"):
        program_of(case)


def test_outcomes_are_kept(tmp_path: Path) -> None:
    kept = {
        "b": Outcome(WRONG, "error", math.inf, 4.0, 3, ("aten.sort",), 1.5),
        "a": Outcome(PASSED, ulps=0.5, allowed=1.0, kernels=1),
    }
    save(kept, tmp_path / "results.json")
    found = load(tmp_path / "results.json")
    assert list(found) == ["a", "b"]
    assert found["a"] == kept["a"] and found["b"].host == ("aten.sort",) and found["b"].ulps < 0


def test_the_page_is_of_the_outcomes() -> None:
    assert FILE.read_text(encoding="utf-8") == page_text(load()), "try: python -m tests.op_cases --page"


def test_the_page_says_of_which_compiler_it_is() -> None:
    cases_ = [next(cases()).id, list(cases())[1].id]
    text = page_text({name: Outcome(PASSED, code=code) for name, code in zip(cases_, ("ab", "cd"), strict=True)})
    assert "Outcomes by state of the compiler" in text and "`ab` 1, `cd` 1" in text


def test_what_is_listed_fails_and_what_fails_is_listed() -> None:
    outcomes, named = load(), {case.id: case for case in cases()}
    assert set(outcomes) <= set(named)
    failing = {name for name, outcome in outcomes.items() if outcome.status not in (PASSED, NO_PROGRAM)}
    assert [name for name in sorted(failing) if not reason(named[name])] == []
    assert [n for n in sorted(outcomes) if n not in failing and reason(named[n]) in LISTED.values()] == []

"""Pass pipelines on the command line: nested spelling, passes with options, and errors that name the right word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import parse_pipeline

from spyre_mlir.cli.support.pipeline_text import flat_pipeline, make_passes, shown_passes, spec_text
from spyre_mlir.errors import InputError


@dataclass(frozen=True)
class PlainPass(ModulePass):
    """Has no options."""

    name = "plain"

    def apply(self, ctx: Context, op: ModuleOp) -> None: ...


@dataclass(frozen=True)
class DeepPass(ModulePass):
    """Has options."""

    name = "deep"
    most_depth: int = 1
    quick: bool = False
    kind: Literal["one", "two"] = "one"

    def apply(self, ctx: Context, op: ModuleOp) -> None: ...


AVAILABLE = {"plain": lambda: PlainPass, "deep": lambda: DeepPass}


@pytest.mark.parametrize(
    ("text", "flat"),
    [
        ("", ""),
        ("a", "a"),
        (" a , b ", "a,b"),
        ("a,b{x=1}", "a,b{x=1}"),
        ("builtin.module(a,func.func(b{x=1 y=2}),c)", "a,b{x=1 y=2},c"),
        ("builtin.module()", ""),
        ("any(a)", "a"),
        ("a,any(builtin.module(b))", "a,b"),
        ('a{x="},{\\""}', 'a{x="},{\\""}'),
        ("a-1.b_2{},c", "a-1.b_2{},c"),
    ],
)
def test_nested_pipelines_become_flat(text: str, flat: str) -> None:
    assert flat_pipeline(text) == flat


HINT = "write 'builtin.module(first-pass,second-pass{option=1})'"


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        (",a", 0, "expected a pass name"),
        ("(a)", 0, "expected a pass name"),
        ("{x=1}", 0, "expected a pass name"),
        ("a b", 2, "expected ',', options or a bracket after the name"),
        ("a{x=1}b", 6, "expected ',' or ')' after the options"),
        ("a{x=1}{y=2}", 6, "expected ',' or ')' after the options"),
        ("any(,a)", 4, "expected a pass name or ')'"),
        ("any(a)b", 6, "expected ',' or the end after ')'"),
        ("any(a)(b)", 6, "expected ',' or the end after ')'"),
        ("a,,b", 2, "expected a pass name after ','"),
        ("a,", 2, "expected a pass name after ','"),
        ("any(a,)", 6, "expected a pass name after ','"),
        ("a)", 1, "brackets do not match"),
        ("any(a", 5, "brackets do not match"),
        ("any(a))", 6, "brackets do not match"),
        ("plain(a)", 5, "only builtin.module, func.func, any can stand before '('"),
        ("a;b", 1, "this is no pass name, option list or bracket"),
        ("a{x=1", 1, "this is no pass name, option list or bracket"),
    ],
)
def test_what_is_no_pipeline_is_shown_at_its_place(text: str, place: int, message: str) -> None:
    with pytest.raises(InputError) as caught:
        flat_pipeline(text)
    assert caught.value.message == f"pass pipeline: {message}\n  {text}\n  {' ' * place}^"
    assert caught.value.hint == HINT


def test_passes_are_made_with_their_options() -> None:
    assert make_passes(AVAILABLE, "plain,deep{most-depth=3 quick=true},deep{most_depth=4}") == (
        PlainPass(),
        DeepPass(3, True),
        DeepPass(4),
    )


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("plan", "unknown pass 'plan'", "'plain'"),
        ("zzz", "unknown pass 'zzz'", "--list-passes lists them"),
        ("deep{quik=1}", "pass 'deep' has no option 'quik'", "'quick'"),
        ("deep{zzz=1}", "pass 'deep' has no option 'zzz'", "its options: most_depth, quick, kind"),
        ("plain{zzz=1}", "pass 'plain' has no option 'zzz'", "its options: none"),
    ],
)
def test_a_pass_or_option_that_is_not_there(text: str, message: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        make_passes(AVAILABLE, text)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_at_most_three_passes_are_proposed() -> None:
    available = {f"plain-{letter}": lambda: PlainPass for letter in "abcd"}
    with pytest.raises(InputError) as caught:
        make_passes(available, "plain-x")
    assert len((caught.value.hint or "").split(" or ")) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ('most-depth="x"', "option 'most_depth' takes a whole number, got x"),
        ("quick=2", "option 'quick' takes true or false, got 2"),
        ("most-depth=2 quick=maybe", "option 'quick' takes true or false, got maybe"),
        ("most-depth=1,2", "option 'most_depth' takes a whole number, got 1,2"),
        ("kind=other", "option 'kind' takes one of one, two, got other"),
    ],
)
def test_a_value_of_the_wrong_kind(options: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        make_passes(AVAILABLE, f"deep{{{options}}}")
    assert caught.value.message == f"pass 'deep': {message}"
    assert (caught.value.hint or "").startswith("its options are most_depth: ")


def test_passes_whose_result_is_shown() -> None:
    assert shown_passes(["a", "b", "a"], ["b"], everything=False) == {"b"}
    assert shown_passes(["a", "b", "a"], ["b"], everything=True) == {"a", "b"}
    assert shown_passes([], [], everything=True) == set()


@pytest.mark.parametrize(
    ("pipeline", "name", "hint"),
    [
        (["plain", "plane", "plain", "deep"], "plan", "'plain' or 'plane'"),
        (["plain", "deep", "plain"], "zzz", "it runs plain, deep"),
        ([], "zzz", "it runs none"),
    ],
)
def test_a_pass_that_does_not_run_cannot_be_shown(pipeline: list[str], name: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        shown_passes(pipeline, [name], everything=True)
    assert caught.value.message == f"--print-ir-after={name}: the pipeline does not run this pass"
    hints = caught.value.hint
    assert hints is not None
    assert sorted(hints.split(" or ")) == sorted(hint.split(" or "))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("cse", "cse"),
        ("a{b}", "a{b}"),
        ("a{b=1 c=true d=2.5}", "a{b=1 c=true d=2.5}"),
        ("a{b=x,y}", 'a{b="x","y"}'),
        ('a{b="c \\"d\\" \\\\ \\n"}', 'a{b="c \\"d\\" \\\\ \\n"}'),
    ],
)
def test_text_of_a_pass_with_options(given: str, text: str) -> None:
    (spec,) = parse_pipeline(given)
    assert spec_text(spec) == text
    assert list(parse_pipeline(text)) == [spec]

"""What a rule takes from the function that declares it, and what its findings say."""

from __future__ import annotations

from collections.abc import Iterator

from spyre_mlir.dialects.superdsc.check.rule import Finding, Problem, Rule, Severity, error, problem, warning
from spyre_mlir.dialects.superdsc.codec.cursor import Cursor


def _odd_one(subject: int) -> Iterator[Problem]:
    """Numbers are even.

    Zero is.
    """
    if subject % 2:
        yield Problem("$.n", "an even number", str(subject))


def test_a_declared_rule_takes_its_name_and_its_first_sentence() -> None:
    assert error("a book", "L")(_odd_one) == Rule(
        "-odd-one", Severity.ERROR, "Numbers are even.", "a book", "L", _odd_one
    )
    rule = warning("a paper", "C")(_odd_one)
    assert rule == Rule("-odd-one", Severity.WARNING, "Numbers are even.", "a paper", "C", _odd_one)
    assert [one.got for one in rule.find(3)] == ["3"]
    assert list(rule.find(4)) == []


def test_a_finding_adds_rule_and_file_to_a_problem() -> None:
    rule = error("a book", "L")(_odd_one)
    found = rule.finding("f.json", Problem("$.n", "an even number", "3", "add 1"))
    assert found == Finding("-odd-one", Severity.ERROR, "f.json", "$.n", "an even number", "3", "add 1")


def test_a_finding_reads_as_a_line_and_a_hint() -> None:
    found = Finding("even", Severity.WARNING, "f.json", "$.n", "an even number", "3")
    assert str(found) == "warning: even: f.json: $.n: expected an even number, got 3"
    found = Finding("even", Severity.ERROR, "f.json", "$.n", "an even number", "3", "add 1")
    assert str(found) == "error: even: f.json: $.n: expected an even number, got 3\n  try: add 1"


def test_a_problem_shows_its_place_unless_told_better() -> None:
    place = Cursor([1, "a"], "$.x")
    assert problem(place, "nothing") == Problem("$.x", "nothing", '[1,"a"]')
    assert problem(place, "nothing", "", "drop it") == Problem("$.x", "nothing", "", "drop it")


def test_rules_and_what_they_find_can_be_collected_once_each() -> None:
    rule, one = error("a book", "L")(_odd_one), Problem("$.n", "an even number", "3")
    assert len({rule, error("a book", "L")(_odd_one)}) == len({rule.finding("f", one), rule.finding("f", one)}) == 1
    assert len({one, Problem("$.n", "an even number", "3")}) == 1

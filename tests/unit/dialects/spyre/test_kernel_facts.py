"""Facts: computed once per identity and arguments, again after a failure."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from spyre_mlir.dialects.spyre.kernel_facts import fact, undivided_fact


@dataclass
class Subject:
    who: str
    asked: list[object] = field(default_factory=list)

    def identity(self) -> tuple[str, str]:
        return (__name__, self.who)

    def undivided_identity(self) -> tuple[str, str]:
        return (__name__, self.who.partition(" over ")[0])

    @undivided_fact
    def times(self, number: int) -> int:
        self.asked.append(number)
        return 2 * number

    @fact
    def plus(self, number: int, more: int = 0, *, sign: int = 1) -> int:
        """A sum."""
        self.asked.append((number, more, sign))
        return sign * (number + more)

    @fact
    def minus(self, number: int) -> int:
        self.asked.append(-number)
        if number == 0:
            raise ValueError("nothing")
        return -number


def test_an_answer_is_found_once() -> None:
    one, twin = Subject("once"), Subject("once")
    assert [one.plus(2), one.plus(2), twin.plus(2)] == [2, 2, 2]
    assert (one.asked, twin.asked) == ([(2, 0, 1)], [])


def test_other_arguments_questions_and_subjects_have_their_own_answers() -> None:
    one = Subject("apart")
    assert [one.plus(2), one.plus(3), one.plus(2, 4), one.minus(2)] == [2, 3, 6, -2]
    assert [one.plus(2, sign=-1), one.plus(2, sign=1), one.plus(2, more=4)] == [-2, 2, 6]
    assert len(one.asked) == 7
    other = Subject("apart, too")
    assert other.plus(2) == 2
    assert other.asked == [(2, 0, 1)]


def test_a_question_that_fails_is_asked_again() -> None:
    one = Subject("failing")
    for _ in range(2):
        with pytest.raises(ValueError, match="nothing"):
            one.minus(0)
    assert one.asked == [0, 0]


def test_a_fact_is_documented_as_its_method() -> None:
    assert Subject.plus.__name__ == "plus"
    assert Subject.plus.__doc__ == "A sum."


def test_an_object_that_becomes_another_has_the_answers_of_that() -> None:
    one = Subject("before")
    assert one.plus(2) == 2
    one.who = "after"
    assert one.plus(2) == 2
    one.who = "before"
    assert one.plus(2) == 2
    assert one.asked == [(2, 0, 1), (2, 0, 1)]


def test_facts_that_no_division_changes_are_shared_by_all_divisions() -> None:
    whole, divided = Subject("loops"), Subject("loops over 4")
    assert [whole.times(3), divided.times(3), whole.plus(2), divided.plus(2)] == [6, 6, 2, 2]
    assert (whole.asked, divided.asked) == ([3, (2, 0, 1)], [(2, 0, 1)])
    assert Subject("others over 4").times(3) == 6
    whole.who = "others"
    assert whole.times(4) == 8
    assert whole.asked[-1] == 4

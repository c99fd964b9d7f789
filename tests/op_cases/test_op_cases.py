"""The op cases of another front end through ours: one small case per template in every run, all of them when asked."""

from __future__ import annotations

import pytest

from tests.op_cases.cases import Case, cases
from tests.op_cases.judge import NO_PROGRAM, PASSED, run
from tests.op_cases.listed import LARGEST, TOO_LARGE, reason

SMALL = 1 << 17


def smallest_by_template() -> set[str]:
    """Ids of the smallest case of every template, if that is small at all."""
    found: dict[str, Case] = {}
    for case in cases():
        if (
            not reason(case)
            and case.elements <= SMALL
            and (case.template not in found or case.elements < found[case.template].elements)
        ):
            found[case.template] = case
    return {case.id for case in found.values()}


IN_EVERY_RUN = smallest_by_template()


def _marked(case: Case) -> object:
    marks = [] if case.id in IN_EVERY_RUN else [pytest.mark.slow(reason="the suite op-cases runs all cases")]
    if case.elements > LARGEST:
        marks.append(pytest.mark.skip(reason=TOO_LARGE))
    elif why := reason(case):
        marks.append(pytest.mark.xfail(reason=why, strict=True))
    return pytest.param(case, id=case.id, marks=marks)


@pytest.mark.parametrize("case", list(map(_marked, cases())))
def test_a_case_gives_what_torch_gives(case: Case) -> None:
    outcome = run(case)
    if outcome.status == NO_PROGRAM:
        pytest.skip(outcome.why)
    assert outcome.status == PASSED, f"{outcome.ulps} ulps of {outcome.allowed}: {outcome.why}"

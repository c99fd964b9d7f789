"""Cases that do not pass, with the reason, by patterns of their ids. Whatever is not listed passes.

A case on the list that passes fails the test run: it is to be taken off.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from tests.op_cases.cases import Case

# Elements of all tensors of a case. The hardware model keeps several numbers per element: beyond this a case takes
# minutes and gigabytes, and shows what its smaller neighbours in the group show.
LARGEST = 1 << 24
TOO_LARGE = "more than 16 million elements: minutes and gigabytes on the hardware model"

LISTED: dict[str, str] = {}


def reason(case: Case) -> str:
    """Why a case is listed; empty if it is not."""
    if case.elements > LARGEST:
        return TOO_LARGE
    return next((why for pattern, why in LISTED.items() if fnmatchcase(case.id, pattern)), "")

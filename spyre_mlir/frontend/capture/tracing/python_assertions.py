"""`assert` about a tensor: traced as an assertion that each call checks, where Python would look at a number.

Python asks for the truth of a tensor and jumps; that the jump is to what raises an `AssertionError` is read from its
code. A truth that decides anything else stays torch's to refuse.

Decision: docs/decisions/0167-functions-that-look-at-numbers-are-host-steps.md
"""

from __future__ import annotations

import dis
import linecache
import sys
from itertools import takewhile
from pathlib import Path
from types import FrameType
from typing import Any, cast

import torch

from spyre_mlir.frontend.torch_private import is_wrapped

_TRACING = (f"{Path(torch.__file__).parent}/", f"{Path(__file__).parents[2]}/")
_RAISING = frozenset({"LOAD_ASSERTION_ERROR", "LOAD_COMMON_CONSTANT"})


def truth(input: torch.Tensor) -> bool | None:
    """Return the truth that an `assert` expects of a tensor, and trace the assertion.

    None for a truth that decides something else, a tensor of several elements, and one of a function transform.
    """
    if input.numel() != 1 or is_wrapped(input):
        return None
    frame = _model_frame(sys._getframe())  # pyright: ignore[reportPrivateUsage]
    found = None if frame is None else _asserted(frame)
    if found is None:
        return None
    expected, message = found
    holds = input.reshape(()).ne(0) if expected else input.reshape(()).eq(0)
    cast(Any, torch)._assert_async(holds, message)
    return expected


def _model_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost call that is neither torch's nor that of this package's tracing."""
    while frame is not None and frame.f_code.co_filename.startswith(_TRACING):
        frame = frame.f_back
    return frame


def _asserted(frame: FrameType) -> tuple[bool, str] | None:
    """Which truth the instruction that a call is at asserts, and what is wrong otherwise; None if it asserts none."""
    code = [one for one in dis.get_instructions(frame.f_code) if one.opname != "NOT_TAKEN"]
    at = next((n for n, one in enumerate(code) if one.offset == frame.f_lasti), len(code))
    if at < len(code) and code[at].opname == "TO_BOOL":
        at += 1
    if at + 1 >= len(code) or "POP_JUMP" not in code[at].opname:
        return None
    on_true = code[at].opname.endswith("IF_TRUE")
    if not on_true and not code[at].opname.endswith("IF_FALSE"):
        return None
    target = next(n for n, one in enumerate(code) if one.offset == code[at].argval)
    for raising, expected in ((at + 1, on_true), (target, not on_true)):
        if _raises(code[raising]):
            return expected, _message(frame, code[raising + 1 :])
    return None


def _raises(instruction: dis.Instruction) -> bool:
    return instruction.opname in _RAISING and "AssertionError" in (instruction.argrepr or "AssertionError")


def _message(frame: FrameType, following: list[dis.Instruction]) -> str:
    """The text of an assertion, if it is one known text; else its line."""
    made = list(takewhile(lambda one: one.opname != "RAISE_VARARGS", following))
    texts = [one.argval for one in made if one.opname == "LOAD_CONST" and isinstance(one.argval, str)]
    if texts and made[0].opname == "LOAD_CONST" and all(o.opname in ("LOAD_CONST", "PRECALL", "CALL") for o in made):
        return texts[0]
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    return line or "an assertion of the model does not hold"


__all__ = ["truth"]

"""`assert` and `raise` about a tensor: traced as assertions that calls check, where Python would look at a number.

Python asks for the truth of a tensor and jumps; that the jump is to what raises an error is read from its code, as in
`if (x < 0).any(): raise ValueError("…")`, and in the checks of `torch.distributions`. A truth that decides anything
else stays torch's to refuse, and so does an error that the same function catches.

Decision: docs/decisions/0167-functions-that-look-at-numbers-are-host-steps.md
"""

from __future__ import annotations

import dis
import linecache
import sys
from itertools import pairwise, takewhile
from pathlib import Path
from types import FrameType
from typing import Any, cast

import torch

from spyre_mlir.frontend.torch_private import is_wrapped

_TORCH = Path(torch.__file__).parent
_TRACING = (f"{_TORCH}/", f"{Path(__file__).parents[2]}/")
# Code of torch that checks arguments in Python, as models do.
_CHECKING = f"{_TORCH}/distributions/"
_ASSERTING = frozenset({"LOAD_ASSERTION_ERROR", "LOAD_COMMON_CONSTANT"})
_RAISE = "RAISE_VARARGS"
# What no code has that does nothing but raise an error: jumps, results, values that are kept.
_DOES_MORE = ("JUMP", "RETURN", "STORE", "DELETE", "YIELD", "FOR_ITER", "SEND")
_OPEN = "…"


def truth(input: torch.Tensor) -> bool | None:
    """Return the truth that no error follows from, and trace the assertion of it.

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
    while frame is not None and _is_tracing(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _is_tracing(file: str) -> bool:
    return file.startswith(_TRACING) and not file.startswith(_CHECKING)


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
        if _asserts(code[raising]):
            return expected, _message(frame, code[raising + 1 :])
        made = list(takewhile(lambda one: one.opname != _RAISE, code[raising:]))
        if _only_raises(code, made, raising) and not _is_caught(frame, code[raising].offset):
            return expected, _text(frame, made)
    return None


def _asserts(instruction: dis.Instruction) -> bool:
    return instruction.opname in _ASSERTING and "AssertionError" in (instruction.argrepr or "AssertionError")


def _only_raises(code: list[dis.Instruction], made: list[dis.Instruction], at: int) -> bool:
    ends = at + len(made) < len(code)
    return ends and bool(made) and not any(word in one.opname for one in made for word in _DOES_MORE)


def _is_caught(frame: FrameType, offset: int) -> bool:
    """Whether the function has a `try` around an instruction; what `with` does with an error is to raise it again."""
    bytecode = dis.Bytecode(frame.f_code)
    handlers = {entry.target for entry in cast(Any, bytecode).exception_entries if entry.start <= offset < entry.end}
    code = list(bytecode)
    begun = [one.opname for before, one in pairwise(code) if before.offset in handlers]
    return any(name != "WITH_EXCEPT_START" for name in begun)


def _message(frame: FrameType, following: list[dis.Instruction]) -> str:
    """The text of an assertion, if it is one known text; else its line."""
    made = list(takewhile(lambda one: one.opname != _RAISE, following))
    texts = [one.argval for one in made if one.opname == "LOAD_CONST" and isinstance(one.argval, str)]
    if texts and made[0].opname == "LOAD_CONST" and all(o.opname in ("LOAD_CONST", "PRECALL", "CALL") for o in made):
        return texts[0]
    return _line(frame, frame.f_lineno)


def _text(frame: FrameType, made: list[dis.Instruction]) -> str:
    """The texts that an error is made of, with its words and numbers that are known; the line, if there are none."""
    parts: list[str] = []
    for before, one in pairwise(made):
        known: object = one.argval if one.opname == "LOAD_CONST" else None
        if one.opname.startswith("FORMAT"):
            local: object = frame.f_locals.get(before.argval) if before.opname.startswith("LOAD_FAST") else None
            known = str(local) if isinstance(local, str | int | float) else _OPEN
        parts += [known] if isinstance(known, str) else []
    line = None if made[0].positions is None else made[0].positions.lineno
    return " ".join("".join(parts).split()) or _line(frame, line)


def _line(frame: FrameType, number: int | None) -> str:
    line = "" if number is None else linecache.getline(frame.f_code.co_filename, number).strip()
    return line or "an assertion of the model does not hold"


__all__ = ["truth"]

"""Errors of torch about a model that it cannot trace: the reason in them, and what to write instead."""

from __future__ import annotations

import re
from ast import literal_eval
from itertools import takewhile
from traceback import extract_tb

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.capture.unsupported import DATA, OTHER_MEMORY, PADDED, WRITE
from spyre_mlir.frontend.locations import raised_at
from spyre_mlir.frontend.torch_private import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    GuardOnDataDependentSymNode,
    UnsupportedOperatorException,
)

_FIXES = "Suggested fixes:"

# What torch cannot trace, because it traces without the values of tensors.
NEEDS_VALUES = (DataDependentOutputException, DynamicOutputShapeException, UnsupportedOperatorException)
# What torch and models raise where they cannot go on: arguments, shapes or dtypes that do not fit, overloads that torch
# cannot write as Python, such as `random_.from`, and infinities that an integer tensor is filled with.
_UNFIT = (RuntimeError, TypeError, ValueError, IndexError, KeyError, AttributeError, AssertionError)
REFUSED = (*_UNFIT, SyntaxError, OverflowError)

# Dynamo's words for the error that a call in a branch or body met, and for its explanation of why tracing stopped.
_MET = re.compile(r"""\bgot \w+\(("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\)""")
_EXPLAINED = "Explanation: "
# What torch says where Python asks for the number itself.
SPECIALIZED = "Could not extract specialized"
_OF_EXAMPLES = "specialize_values=True compiles what the example inputs decide"
_SETS_MEMORY = "Can't call metadata mutating ops on non-Fake Tensor inputs"
_NESTED, _NESTED_OPERATOR = "/torch/nested/", "_nested_"
# What to write instead of functions of torch that look at the values of a tensor.
_INSTEAD = {
    "_detect_is_causal_mask": "say whether the mask is causal: tgt_is_causal=True (src_is_causal, or is_causal of an "
    "encoder), or False; otherwise torch compares its values",
    "_assert": "write torch._assert_async(condition, message) with a tensor as condition, which each call checks",
    "unbind": "loop over what has a known count, such as all experts, and let a mask choose rows in each turn; models "
    'of transformers: set_experts_implementation("grouped_mm")',
}

_TO_PYTHON = 'or torch.compile(model, backend="spyre"), which leaves the decision to Python'
# The same, by the end of the file of torch.
_IN_FILE = {
    "nn/modules/batchnorm.py": "give BatchNorm a momentum: with None it divides by a count that Python reads; "
    + _TO_PYTHON,
    "nn/modules/adaptive.py": "choose from all classes: -layer.log_prob(x).gather(1, target[:, None]).mean(), or "
    f"log_prob(x).argmax(1) for predict(x); {_TO_PYTHON}",
}


def decided_by_values(name: str, error: GuardOnDataDependentSymNode) -> UnsupportedError:
    """The message for a model in which Python needs the value of a tensor, or what it says of a size."""
    frames = extract_tb(error.__traceback__)
    called = {frame.name for frame in frames}
    condition = str(getattr(error, "cond", ""))
    instead = next((text for function, text in _INSTEAD.items() if function in called), None)
    in_files = (text for file, text in _IN_FILE.items() if any(f.filename.endswith(file) for f in frames))
    instead = instead or next(in_files, None)
    if instead is None and SPECIALIZED in str(error):
        instead = (
            "use the number as a size, a bound of a slice or a factor, torch.where or torch.cond instead of `if`, or "
            f"give it to the model as a number of Python; {_OF_EXAMPLES}"
        )
    elif instead is None and re.fullmatch(r"zuf\d+", condition):
        instead = (
            "write x.item() for float(x): item() gives a number that each call decides, for sizes, factors and "
            f"torch.where; {_OF_EXAMPLES}"
        )
    elif instead is None and re.fullmatch(r"(?:Eq|Ne)\(.*, 0\)", condition):
        instead = "if the size is never 0, write torch._check(y.shape[0] != 0) above this line, where y has this size"
    elif instead is None and "_bool" not in condition and not condition.startswith("Eq(") and condition:
        symbols = ", ".join(sorted(set(re.findall(r"\bz?uf?\d+\b", condition))))
        instead = (
            f"if it always holds, write torch._check({condition}) above this line, where {symbols} is what the model "
            f"reads from a tensor; else use torch.where, or torch.cond; {_OF_EXAMPLES}"
        )
    text = f"{name} decides its control flow or a shape by the values of a tensor: {first_line(error)}"
    instead = instead or f"use torch.where, or torch.cond, instead of `if`; {_OF_EXAMPLES}"
    return UnsupportedError(text, where=raised_at(error), hint=instead)


def without_values(
    error: DataDependentOutputException | DynamicOutputShapeException | UnsupportedOperatorException,
) -> UnsupportedError:
    """Return the message for an operator that torch cannot trace because it traces without values."""
    op = str(error.func).removesuffix(".default")
    if (known := without_form(op, error)) is not None:
        return known
    if isinstance(error, UnsupportedOperatorException):
        reason, hint = "torch cannot say the shape of its result", "register a fake implementation of the operator"
    elif isinstance(error, DataDependentOutputException):
        reason, hint = "its result is a Python value that depends on the data", DATA
    else:
        reason, hint = "the shape of its result depends on the data", DATA
    message = f"a part of this model cannot be expressed\n  1 x {op}: {reason}"
    return UnsupportedError(message, where=raised_at(error), hint=hint)


def without_form(name: str, error: Exception) -> UnsupportedError | None:
    """Return the message for what torch's own error says nothing of, nested tensors and exchanged memory; else None."""
    if _NESTED_OPERATOR in name or any(_NESTED in frame.filename for frame in extract_tb(error.__traceback__)):
        message = f"{name} has nested tensors, which have no form"
        return UnsupportedError(message, where=raised_at(error), hint=PADDED)
    if _SETS_MEMORY in str(error):
        return UnsupportedError(OTHER_MEMORY, where=raised_at(error), hint=WRITE)
    return None


def reason_of(error: Exception) -> str:
    """Return why torch refuses to trace: the error that it met, its explanation, or the first line of its message.

    The first line alone names no cause for a branch or body: it says that a call failed or was not captured completely.
    """
    text = str(error)
    if (met := _MET.search(text)) is not None:
        return " ".join(str(literal_eval(met.group(1))).split())
    first, *others = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    if not first.endswith(":") or not others:
        return first
    explained = next((line.removeprefix(_EXPLAINED) for line in others if line.startswith(_EXPLAINED)), None)
    return f"{first} {others[0]}" if explained is None else f"{others[0]}: {explained}"


def first_line(error: Exception) -> str:
    """Return the first line of an error's message."""
    return str(error).strip().split("\n", 1)[0]


def of_sizes(error: Exception) -> tuple[str, str | None]:
    """The message of an error; for an error about sizes with its reasons, and the ranges that torch suggests."""
    lines = str(error).strip().split("\n")
    if not lines[0].startswith("Constraints violated"):
        return reason_of(error), None
    reasons = [f"\n  {line.removeprefix('  - ').split('. If ')[0]}" for line in lines if line.startswith("  - ")]
    behind = lines[lines.index(_FIXES) + 1 :] if _FIXES in lines else []
    fixes = [line.strip() for line in takewhile(lambda line: line.startswith("  "), behind)]
    return "".join([lines[0].split("!")[0], *reasons]), f"as torch suggests, {'; '.join(fixes)}" if fixes else None

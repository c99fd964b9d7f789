"""Origin of a node in the user's model: file, line and module path."""

from __future__ import annotations

import re
import traceback
from functools import lru_cache
from pathlib import Path
from typing import cast

import torch
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, NameLoc, StringAttr, UnknownLoc

# Key in the notes on a node that was made from an op: the location of the op.
LOCATION = "spyre_location"
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in')
_TORCH = str(Path(torch.__file__).parent)
_PYTHON = str(Path(traceback.__file__).parent)
_OURS = str(Path(__file__).resolve().parents[1])
# Methods of modes, which pass a call on.
_PASSED_ON = ("__torch_function__", "__torch_dispatch__")


@lru_cache(maxsize=4096)
def _innermost_frame(stack_trace: str) -> tuple[str, int] | None:
    """The innermost frame of the model, else of torch; never one of ours, which runs graphs that Dynamo captured."""
    frames = [(file, int(line)) for file, line in _FRAME.findall(stack_trace) if not file.startswith(_OURS)]
    own = [frame for frame in frames if of_model(frame[0])]
    return (own or frames or [None])[-1]


def of_model(file: str) -> bool:
    """Return whether a file is neither torch's, ours nor Python's, nor made up by torch."""
    of_python = file.startswith(_PYTHON) and "site-packages" not in file
    return not of_python and not file.startswith((_TORCH, _OURS, "<"))


def place_in(text: str) -> str | None:
    """Return file and line of the model in a torch error that quotes a traceback."""
    frame = _innermost_frame(text)
    return None if frame is None else f"{frame[0]}:{frame[1]}"


def raised_at(error: BaseException) -> str | None:
    """Return file and line of the model at which torch raised an error while it ran the model."""
    frames = [(f.filename, f.lineno or 0) for f in traceback.extract_tb(error.__traceback__)]
    own = [f for f in frames if of_model(f[0])]
    return f"{own[-1][0]}:{own[-1][1]}" if own else None


def calls_of_model() -> tuple[str, ...]:
    """Return files and lines of the model that run now, the innermost one last."""
    frames = traceback.walk_stack(None)
    return tuple(f"{f.f_code.co_filename}:{line}" for f, line in frames if of_model(f.f_code.co_filename))[::-1]


def line_that_runs() -> str | None:
    """Return file and line of the model that runs now, the innermost one."""
    return next(reversed(calls_of_model()), None)


def raised_by_torch(error: BaseException) -> bool:
    """Return whether an error comes from torch (or from Python on its behalf) and not from a line of the model."""
    frames = traceback.extract_tb(error.__traceback__)
    while frames and frames[-1].name in _PASSED_ON:  # a function written in C has no frame of its own
        frames.pop()
    return bool(frames) and not of_model(frames[-1].filename) and not frames[-1].filename.startswith(_OURS)


def source_of(node: torch.fx.Node) -> tuple[str, int] | None:
    """Return file and line of the model that made the node, if torch recorded them."""
    trace = node.meta.get("stack_trace")
    return _innermost_frame(trace) if isinstance(trace, str) else None


def module_path(node: torch.fx.Node) -> str:
    """Return the path of the module that made the node, e.g. ``model.layers.0.mlp``; empty for the root."""
    stack = cast("dict[str, tuple[str, object]]", node.meta.get("nn_module_stack") or {})
    path = next(reversed(stack.values()))[0] if stack else ""
    return _user_path(path)


@lru_cache(maxsize=4096)
def _user_path(path: str) -> str:
    """Strict export spells paths ``L['self'].layers[0]``, functions ``G['m'].layers.0``, plain export ``layers.0``."""
    named = re.sub(r"^[LG]\['(\w+)'\]", r"\1", path.replace("L['self']", ""))
    plain = re.sub(r"\[['\"]?([^'\"\]]+)['\"]?\]", r".\1", named)
    return plain.strip(".")


@lru_cache(maxsize=4096)
def _location(file: str | None, line: int, path: str) -> LocationAttr:
    place: LocationAttr = UnknownLoc() if file is None else FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(0))
    return NameLoc(StringAttr(path), place) if path else place


def location_of(node: torch.fx.Node) -> LocationAttr:
    """Return the node's MLIR location: file and line, named with the module path."""
    if (known := node.meta.get(LOCATION)) is not None:
        return cast(LocationAttr, known)
    file, line = source_of(node) or (None, 0)
    return _location(file, line, module_path(node))


def place_of(node: torch.fx.Node) -> str:
    """Return the node's location for messages, e.g. ``model.py:12 (layers.0.mlp)``."""
    source = source_of(node)
    place = f"{source[0]}:{source[1]}" if source else f"node '{node.name}'"
    path = module_path(node)
    return f"{place} ({path})" if path else place

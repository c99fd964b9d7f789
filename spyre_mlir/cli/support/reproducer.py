"""Crash reproducers of mlir-opt: the module before the pass that failed, and the passes from there on, in one file."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.cli.support.output import PendingOutput
from spyre_mlir.errors import InputError
from spyre_mlir.text.render import module_text

_STRING = r'"(?:[^"\\]|\\.)*"'
_ENTRY = rf"\w+:\s*(?:{_STRING}|\w+)\s*"
_RESOURCE = re.compile(
    rf",?\s*external_resources:\s*\{{\s*mlir_reproducer:\s*\{{\s*(?P<entries>{_ENTRY}(?:,\s*{_ENTRY})*)\}}\s*\}}"
)
_ENTRIES = re.compile(rf"(?P<name>\w+):\s*(?P<value>{_STRING}|\w+)")
_EMPTY = re.compile(r"\{-#[\s,]*#-\}")
_ESCAPED = re.compile(r"\\(.)")


@dataclass(frozen=True)
class Reproducer:
    """The configuration that a reproducer holds.

    Attributes:
        pipeline: the passes, nested, as mlir-opt spells them.
        verify_each: whether the module is verified after every pass.
    """

    pipeline: str
    verify_each: bool = True

    def text(self) -> str:
        """Return the configuration as metadata of a file."""
        escaped = self.pipeline.replace("\\", "\\\\").replace('"', '\\"')
        return f"""{{-#
  external_resources: {{
    mlir_reproducer: {{
      pipeline: "{escaped}",
      disable_threading: true,
      verify_each: {str(self.verify_each).lower()}
    }}
  }}
#-}}
"""


def separated(text: str) -> tuple[str, Reproducer | None]:
    """Return a text without the configuration of a reproducer, and the configuration, if it holds one.

    Args:
        text: of a file; xDSL's parser reads no external resources.
    """
    start = text.rfind("{-#")
    match = None if start < 0 else _RESOURCE.search(text, start)
    if match is None:
        return text, None
    entries = {one["name"]: one["value"] for one in _ENTRIES.finditer(match["entries"])}
    rest = _EMPTY.sub("", text[: match.start()] + text[match.end() :])
    pipeline = entries.get("pipeline")
    if pipeline is None or not pipeline.startswith('"'):
        return rest, None
    return rest, Reproducer(_ESCAPED.sub(r"\1", pipeline[1:-1]), entries.get("verify_each") != "false")


def required(text: str, name: str) -> Reproducer:
    """Return the configuration of a reproducer.

    Raises:
        InputError: the text holds none.
    """
    _, found = separated(text)
    if found is None:
        raise InputError(
            "the file holds no pipeline of a reproducer",
            where=name,
            hint="name a file that --mlir-pass-pipeline-crash-reproducer has written, or give the passes by -p",
        )
    return found


def complete_text(module: ModuleOp) -> str:
    """Return the text of a module with its locations."""
    return module_text(module, locations=True)


class FailureRecorder:
    """Writer of a reproducer when a pass fails.

    Args:
        path: the file.
        passes: the pipeline, pass by pass with options.
        verify_each: whether the module is verified after every pass.
        text: the text of a module, complete with locations.

    Raises:
        OSError: the file cannot be written.
    """

    def __init__(self, path: str, passes: Sequence[str], *, verify_each: bool, text: Callable[[ModuleOp], str]) -> None:
        self._file = PendingOutput(path)
        self._path = path
        self._passes = passes
        self._verify_each = verify_each
        self._text = text
        self._next = 0
        self._module = ""

    def before(self, module: ModuleOp) -> None:
        """Keep a module before its next pass."""
        self._module = self._text(module)
        self._next += 1

    def only(self, module: ModuleOp, passed: str) -> None:
        """Keep a module before a pass, of which alone the reproducer is to be."""
        self._passes, self._next = (passed,), 0
        self.before(module)

    def restart(self) -> None:
        """Begin with the first pass again, for the next piece of the input."""
        self._next = 0

    def failed(self, error: Exception) -> None:
        """Write the module before the pass that failed."""
        if self._next == 0:
            return
        remaining = self._passes[self._next - 1 :]
        reason = (str(error) or type(error).__name__).splitlines()[0]
        configuration = Reproducer(f"builtin.module({','.join(remaining)})", self._verify_each)
        self._file.write(f"// {remaining[0]} fails: {reason}\n// spyre-opt {self._path} --run-reproducer\n")
        self._file.deliver(f"{self._module}\n\n{configuration.text()}")
        sys.stderr.write(f"note: the module before {remaining[0]} is in {self._path}; --run-reproducer runs it again\n")

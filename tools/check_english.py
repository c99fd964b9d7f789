"""Check the English of pages and of first lines of public docstrings: a list of phrases that no text here contains."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Phrase:
    """A forbidden phrase.

    Attributes:
        pattern: finds it, in any case.
        hint: the wording to use instead.
    """

    pattern: re.Pattern[str]
    hint: str


def _phrase(pattern: str, hint: str) -> Phrase:
    return Phrase(re.compile(pattern, re.IGNORECASE), hint)


PHRASES = (
    # A sentence that begins so is a question; a heading, title or docstring too.
    Phrase(
        re.compile(r"(?:^(?:#+ |\d+\. |[*-] |\| )*|(?<=[.:;] ))(?:What|Whether|Who)\b"), "begin with a noun or a verb"
    ),
    _phrase(r"\bof us\b", "name the package or the tool"),
    _phrase(r"\b(?:somebody|nobody)\b", "name the reader, the caller or the tool"),
    _phrase(r"\bculprits?\b", "first divergence"),
    _phrase(r"\bwitness(?:es)?\b", "oracle"),
    _phrase(r"\bfates?\b", "support: native, composed or host"),
    _phrase(r"\btrunk\b", "end to end"),
    _phrase(r"\bdoors?\b", "entry point"),
    _phrase(r"\bre-laid\b", "relaid out, relayout"),
    _phrase(r"\bwhole quotients?\b", "floor division"),
    _phrase(r"\b(?:foreign bundles?|bundles? of others)\b", "external bundle"),
    _phrase(r"\busual division\b", "default division"),
    _phrase(r"\bwhole numbers?\b(?! of)", "integer"),
    _phrase(r"\bbehind the point\b", "fraction"),
    _phrase(r"\b(?:made|composition) of others\b", "name the operations"),
    _phrase(r"\btaken apart\b", "decomposed"),
)
_FENCE = re.compile(r"^\s*```")
_CODE = re.compile(r"`[^`]*`")
_TARGET = re.compile(r"\]\([^)]*\)")


def prose_of_page(text: str) -> Iterator[tuple[int, str]]:
    """Numbered lines of a page without code and link targets."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, _TARGET.sub("]", _CODE.sub("`", line))


def prose_of_module(text: str) -> Iterator[tuple[int, str]]:
    """Numbered first lines of the docstrings of a module and of its public classes and functions, without code."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            continue
        docstring = ast.get_docstring(node)
        if docstring and not getattr(node, "name", "").startswith("_"):
            yield getattr(node, "lineno", 1), _CODE.sub("`", docstring.splitlines()[0])


def phrases_in(path: Path) -> list[str]:
    """A message for every forbidden phrase of a file."""
    text = path.read_text(encoding="utf-8")
    lines = prose_of_module(text) if path.suffix == ".py" else prose_of_page(text)
    return [
        f"{number}: {found[0].strip()!r}; try: {phrase.hint}"
        for number, line in lines
        for phrase in PHRASES
        for found in phrase.pattern.finditer(line)
    ]


def files_of(root: Path) -> list[Path]:
    """Pages and modules to check, in order."""
    pages = [root / "README.md", root / "CONTRIBUTING.md", *(root / "docs").rglob("*.md")]
    return sorted(path for path in [*pages, *(root / "spyre_mlir").rglob("*.py")] if path.exists())


def problems(root: Path) -> list[str]:
    """Messages about the phrases found, in order."""
    return [f"{path.relative_to(root)}:{message}" for path in files_of(root) for message in phrases_in(path)]


def main() -> int:
    bad = problems(ROOT)
    for message in bad:
        print(message)
    print(f"{len(files_of(ROOT))} files, {len(bad)} problems")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

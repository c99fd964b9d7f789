"""Check the English of pages and of first lines of public docstrings: a list of phrases that no text here contains.

`tools/data/english.txt` lists the files that still contain some, generated pages included; a file without any may not
stay on the list. `--update` drops such files, and adds none.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ALLOWED = Path("tools/data/english.txt")


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


def allowed_in(root: Path) -> list[str]:
    """Paths on the list of files that may still contain forbidden phrases."""
    path = root / ALLOWED
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [line for line in lines if line and not line.startswith("#")]


def problems(root: Path) -> list[str]:
    """Messages about files that are not on the list, and about files that need not be on it."""
    found = {str(path.relative_to(root)): phrases_in(path) for path in files_of(root)}
    allowed = allowed_in(root)
    told = [f"{name}:{message}" for name, messages in found.items() if name not in allowed for message in messages]
    return told + [f"{ALLOWED}: {name} has none of the phrases; remove it" for name in allowed if not found.get(name)]


def update(root: Path) -> None:
    """Remove files without forbidden phrases from the list."""
    path = root / ALLOWED
    stale = {name for name in allowed_in(root) if not (root / name).exists() or not phrases_in(root / name)}
    kept = [line for line in path.read_text(encoding="utf-8").splitlines() if line not in stale]
    path.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="drop files without such phrases from the list first")
    if parser.parse_args().update:
        update(ROOT)
    bad = problems(ROOT)
    for message in bad:
        print(message)
    print(f"{len(files_of(ROOT))} files, {len(bad)} problems, {len(allowed_in(ROOT))} files on the list")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

"""Fenced code blocks of Markdown pages, and what it takes to run them.

A `python` block runs in the namespace of its page, a `sh` block as one script. The block right behind one of
these, in another language, is what it prints: `…` stands for anything within a line, a line of its own for any lines.
A block without a language is a picture.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
ANY = "…"
# Commands that install or run everything; their words are checked, running them would run this test again.
DEVELOPER = "python3 tools/dev.py"


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text, the line it starts at, and what it prints."""

    language: str
    text: str
    line: int
    output: str | None = None


def read_blocks(page: Path) -> list[Block]:
    """The blocks that run, each with the block of output behind it, if there is one."""
    text = page.read_text(encoding="utf-8")
    found: list[Block] = []
    end = -1
    for match in FENCE.finditer(text):
        language = match["info"].strip()
        line = text.count("\n", 0, match.start()) + 1
        adjacent = text[end : match.start()].strip() == "" if end >= 0 else False
        if language in ("python", "sh"):
            found.append(Block(language, match["body"], line))
        elif adjacent and found and found[-1].output is None:
            found[-1] = Block(found[-1].language, found[-1].text, found[-1].line, match["body"])
        else:
            found.append(Block(language, match["body"], line))
        end = match.end()
    return found


def pattern(expected: str) -> re.Pattern[str]:
    """What output may look like: equal but for trailing spaces and what `…` stands for."""
    lines: list[str] = []
    for line in expected.strip("\n").splitlines():
        if line.strip() == ANY:
            lines.append(r"(?:[^\n]*\n)*?")
        else:
            lines.append(r"[^\n]*?".join(re.escape(part) for part in line.rstrip().split(ANY)) + r"[ ]*\n")
    return re.compile("".join(lines))

"""Links of the site: MkDocs shows `docs` alone, so a link to another file of the checkout becomes its name.

MkDocs calls `on_page_markdown` for every page, see `hooks` in mkdocs.yml.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Protocol

_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>(?!https?:|#|mailto:)[^)\s]+)\)")


class _File(Protocol):
    src_uri: str


class _Page(Protocol):
    file: _File


def inside(page: str, target: str) -> bool:
    """Return whether a link of a page stays in `docs`.

    Args:
        page: path of the page in `docs`.
        target: of the link.
    """
    depth = len(PurePosixPath(page).parent.parts)
    for part in PurePosixPath(target.partition("#")[0]).parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return False
    return True


def on_page_markdown(markdown: str, page: _Page, **_: object) -> str:
    """Replace links that leave `docs` by their texts."""
    return _LINK.sub(lambda m: m[0] if inside(page.file.src_uri, m["target"]) else m["text"], markdown)

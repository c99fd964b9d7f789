"""Pages in headless Chromium; tests skip, and say so, where it or playwright is absent."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def shown(html: str, folder: Path) -> Iterator[Any]:
    """A page in a browser, which must not complain."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    browser_path = shutil.which("chromium")
    if browser_path is None:
        pytest.skip("chromium is not installed")
    path = folder / "r.html"
    path.write_text(html, encoding="utf-8")
    complaints: list[str] = []
    with sync_api.sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=browser_path, args=flags)
        page = browser.new_context(offline=True).new_page()
        for event in ("console", "pageerror", "requestfailed"):
            page.on(event, lambda what: complaints.append(str(what)))  # pyright: ignore # optional library
        page.goto(path.as_uri())
        yield page
        browser.close()
    assert complaints == []

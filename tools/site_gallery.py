"""Files of the site's gallery: what `examples/gallery.py` writes, made anew by every build.

MkDocs calls `on_files`, see `hooks` in mkdocs.yml.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = "gallery"  # of the site; docs/gallery.md refers to files in it


@cache
def made() -> dict[str, bytes]:
    """Run the script, and return the files that it writes by their paths."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(ROOT / "examples" / "gallery.py"), folder]
        searched = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        done = subprocess.run(
            command, env=os.environ | {"PYTHONPATH": searched}, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"examples/gallery.py ends with {done.returncode}; the site needs torch\n{done.stderr}")
        written = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in written}


def on_files(files: Any, *, config: Any) -> Any:
    """Add the gallery to the files that MkDocs copies."""
    from mkdocs.structure.files import File  # pyright: ignore[reportMissingImports] # of the extra `docs`

    for name, content in made().items():
        files.append(File.generated(config, f"{FOLDER}/{name}", content=content))
    return files
